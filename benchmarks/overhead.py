"""CPU seconds per submission beyond the student's own cells and the check's own arithmetic, and where they go.

    python benchmarks/overhead.py [--students 24] [--json FILE]

The whole is what one more submission costs when everything is warm: of the main process, which sanitises and records, and of the worker
with all its processes. The work itself is what the same cells and the same questions cost in one warm process that nobody is protected
from. The difference is the overhead; the rows below it are parts of it that can be measured alone, and need not add up to it.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from time import process_time
from typing import Any

import nbformat
import torch
from classroom import CHAPTER, Classroom, classroom
from family import cpu_seconds
from measure import Figures, Target, adopt_orphans, cpu_of_self, wait_for_orphans
from nbformat import reader

from autograder.checking.decision import decide
from autograder.checking.sheet import Sheet
from autograder.checking.subject import LocalSubject
from autograder.checks import exercises
from autograder.engine.checker.deferred_tests import parse_check_cell
from autograder.engine.checker.remote_subject import pack_request
from autograder.engine.checker.zygote_client import ZygoteClient
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.engine.student import forbidden
from autograder.engine.student.cell_shell import make_shell
from autograder.engine.transport.observations import observation_to_dict
from autograder.engine.transport.serialization import pack, unpack
from autograder.engine.workers.executor import WorkerExecutor
from autograder.engine.workers.sandbox_settings import engine_settings, student_environment
from autograder.grading import run
from autograder.grading.autograde import autograde
from autograder.grading.record.gradebook_writer import GradebookWriter
from autograder.intake.notebook.test_cells import is_test
from autograder.static_analysis.cell_ast import parse_cell
from autograder.static_analysis.suspicious_code import find_suspicious


def main() -> None:
    """Measure, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--students", type=int, default=24, help="submissions (default: 24)")
    parser.add_argument("--json", type=Path, help="where to write the figures for write_docs.py")
    options = parser.parse_args()
    torch.set_num_threads(1)
    forbidden.prepare()
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        room = classroom(Path(folder), options.students)
        notebooks = [nbformat.reads(text, as_version=4) for text in room.sanitised().values()]
        main_cpu, worker_cpu, within = whole(room)
        cells, checks = work_itself(notebooks)
        gc.collect()
        gc.freeze()  # as in a worker: what is there is not looked through for garbage again and again
        parts = {**within, **alone(room, notebooks)}
    wait_for_orphans()
    overhead = main_cpu + worker_cpu - cells - checks
    rows: list[tuple[str, float]] = [
        ("total: main process", main_cpu),
        ("total: worker and its processes", worker_cpu),
        ("work: the student's cells", cells),
        ("work: tests and judges", checks),
        ("**overhead**", overhead),
        *((f"overhead: {name}", seconds) for name, seconds in parts.items()),
    ]
    figures = Figures(
        "overhead",
        f"python benchmarks/overhead.py --students {options.students}",
        ("CPU per submission", "ms"),
        [(name, 1000 * seconds) for name, seconds in rows],
        [Target("overhead per submission", overhead, 0.20, most=True, unit=" s")],
    )
    figures.tell(options.json)


class _Kept:
    """An executor that outlives the run that it was made for: the second run finds it warm."""

    def __init__(self) -> None:
        self.worker: WorkerExecutor | None = None

    def make(self, settings: GradingSettings) -> _Kept:
        if self.worker is None:
            self.worker = WorkerExecutor(settings)
        return self

    def grade_one(self, submission: Submission) -> Execution:
        assert self.worker is not None
        return self.worker.grade_one(submission)

    def close(self) -> None:
        pass


def whole(room: Classroom) -> tuple[float, float, dict[str, float]]:
    """Return CPU seconds per submission of the main process and of the worker's family, and those of parts of the former."""
    kept, count = _Kept(), len(room.students)
    timed = {"sanitising": _timed(run, "submission"), "recording": _timed(GradebookWriter, "record")}
    try:
        autograde(room.course, CHAPTER, device="cpu", force=True, make_executor=kept.make)
        assert kept.worker is not None
        assert kept.worker._process is not None
        pid = kept.worker._process.pid
        for spent in timed.values():
            spent.clear()
        main_before, worker_before = cpu_of_self(), cpu_seconds(pid)
        results = autograde(room.course, CHAPTER, device="cpu", force=True, make_executor=kept.make)
        main_cpu, worker_cpu = cpu_of_self() - main_before, cpu_seconds(pid) - worker_before
    finally:
        if kept.worker is not None:
            kept.worker.close()
    if any(result.status != "graded" for result in results):
        raise RuntimeError("not every submission was graded")
    return main_cpu / count, worker_cpu / count, {name: sum(spent) / count for name, spent in timed.items()}


def _timed(owner: Any, name: str) -> list[float]:
    """Have a method note what each call of it takes, and return where."""
    spent: list[float] = []
    method = getattr(owner, name)

    def measured(*args: Any, **kwargs: Any) -> Any:
        begin = process_time()
        try:
            return method(*args, **kwargs)
        finally:
            spent.append(process_time() - begin)

    setattr(owner, name, measured)
    return spent


def work_itself(notebooks: Iterable[Any]) -> tuple[float, float]:
    """Return CPU seconds per submission of the student's cells, and of asking and judging, all warm and in this process."""
    notebooks = list(notebooks)
    for _ in range(2):  # the second time, everything has been asked and compared once
        cells = checks = 0.0
        for notebook in notebooks:
            shell = make_shell()
            for cell in notebook.cells:
                if cell.cell_type != "code":
                    continue
                begin = process_time()
                if is_test(cell):
                    for sheet in _sheets(cell):
                        candidate = shell.user_ns.get(sheet.exercise)
                        if callable(candidate):
                            decide(sheet, LocalSubject(candidate))
                    checks += process_time() - begin
                else:
                    shell.run(cell.source, lambda output: None)
                    cells += process_time() - begin
    return cells / len(notebooks), checks / len(notebooks)


def _sheets(cell: Any) -> list[Sheet]:
    exercise = exercises().get(cell.metadata.nbgrader.grade_id.removeprefix("test_"))
    return [exercise.sheet(hidden=hidden, seed=int(hidden)) for hidden in (False, True)] if exercise else []


def alone(room: Classroom, notebooks: list[Any]) -> dict[str, float]:
    """Return the CPU seconds of parts of the overhead that can be measured by themselves."""
    return {
        "student's process: fork, isolation, end": child(room),
        "serialization of requests and answers, on both sides": wire(notebooks[0]),
        "JSON of the notebook in the worker": per_call(lambda: json.dumps(reader.reads(json.dumps(notebooks[0]))), 20),
        "names in the student's code": per_call(lambda: read_text(notebooks[0]), 20),
        "refusing forbidden functions": refusing(notebooks[0]),
    }


def child(room: Classroom, times: int = 50) -> float:
    """Return what it takes to have a sandboxed process and to end it."""
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        zygote = ZygoteClient(engine_settings(GradingSettings()), student_environment(GradingSettings(), Path(folder)))
        try:
            zygote.make_ready()
            zygote.fork_child(2**20).close()
            before = cpu_seconds(os.getpid())
            for _ in range(times):
                zygote.fork_child(2**20).close()
            return (cpu_seconds(os.getpid()) - before) / times
        finally:
            zygote.close()


def per_call(action: Callable[[], object], times: int) -> float:
    """Return the CPU seconds of something, with those of its children that have ended."""
    action()
    before = os.times()
    for _ in range(times):
        action()
    after = os.times()
    return (sum(after[:4]) - sum(before[:4])) / times


def read_text(notebook: Any) -> None:
    """Look for conspicuous names in a notebook's code, as if nobody had parsed it before."""
    parse_cell.cache_clear()
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "code" and not is_test(cell)]
    find_suspicious(sources)


def refusing(notebook: Any) -> float:
    """Return what it takes to refuse what a notebook's exercises forbid, in a process for each set of forbidden functions."""
    checks = [parse_check_cell(cell, 0) for cell in notebook.cells if is_test(cell)]
    sets = {check.forbidden for check in checks if check is not None and check.forbidden}
    forbidden.prepare()

    def refuse() -> None:
        for names in sets:
            child = os.fork()
            if not child:
                forbidden.refuse_permanently(names)
                os._exit(0)
            os.waitpid(child, 0)

    return per_call(refuse, 5)


def _all_sheets(notebook: Any) -> list[Sheet]:
    return [sheet for cell in notebook.cells if is_test(cell) for sheet in _sheets(cell)]


def wire(notebook: Any) -> float:
    """Return what it takes to carry the requests and the right answers of a notebook's questions."""
    carried = []
    for sheet in _all_sheets(notebook):
        subject = LocalSubject(exercises()[sheet.exercise].reference)
        probes = (*sheet.rules, *(probe for section in sheet.sections for probe in section.probes))
        carried += [
            (pack_request(one), observation_to_dict(subject.observe(one))) for probe in probes for one in probe.requests
        ]

    def carry() -> None:
        for request, observation in carried:
            unpack(request)
            unpack(pack(observation))

    return per_call(carry, 5)


if __name__ == "__main__":
    if "KINETO_LOG_LEVEL" not in os.environ:
        # PyTorch's profiler writes to its log unless it is told not to before it is loaded, as a student's process is.
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "KINETO_LOG_LEVEL": "99"})
    main()
