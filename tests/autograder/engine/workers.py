"""Submissions for a real worker, what came of them, and the processes behind it."""

from __future__ import annotations

import base64
import os
import select
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.utils import determine_grade

from autograder.engine.interface import Execution, Submission
from autograder.engine.workers.executor import WorkerExecutor
from autograder.intake.notebook.problem import Problem, read_problems
from tests.corpus.material import mark

# Longer than any wait in here on a busy machine, so that what never comes does not keep a run forever.
PATIENCE = 120.0


Cell = tuple[str, str | None]


BEFORE: tuple[Cell, ...] = (("def good(x):\n    return 2 * x", None), ("assert good(2) == 4", "good"))


def submission(*cells: Cell, student: str = "ann", **files: bytes) -> Submission:
    """A submission of (source, name of the test or None)."""
    made = [
        new_code_cell(
            source,
            id=f"cell-{number}",
            metadata={} if name is None else mark(name, grade=True, locked=True, points=1.0),
        )
        for number, (source, name) in enumerate(cells)
    ]
    packed = {name: base64.b64encode(data).decode() for name, data in files.items()}
    return Submission(student, "any", nbformat.writes(new_notebook(cells=made)), packed)


class Graded:
    """What came of a submission."""

    def __init__(self, execution: Execution) -> None:
        assert execution.failure == ""
        self.execution = execution
        self.notebook = nbformat.reads(execution.notebook, as_version=4)

    @property
    def points(self) -> dict[str, float]:
        """The points that nbgrader gives, by test."""
        tests = [cell for cell in self.notebook.cells if "nbgrader" in cell.metadata]
        return {cell.metadata.nbgrader.grade_id: determine_grade(cell)[0] for cell in tests}

    @property
    def problems(self) -> list[Problem]:
        """What has gone wrong; that a lecturer should read some code is no problem of the run's."""
        return [problem for problem in read_problems(self.notebook) if problem.kind != "worth a look"]

    def printed(self, index: int) -> str:
        """What a cell has printed."""
        return "".join(output.text for output in self.notebook.cells[index].outputs if output.output_type == "stream")

    def errors(self) -> dict[str, str]:
        """The errors, as a student reads them, by cell."""
        return {
            cell.metadata.get("nbgrader", {}).get("grade_id", str(index)): f"{output.ename}: {output.evalue}"
            for index, cell in enumerate(self.notebook.cells)
            for output in cell.outputs
            if output.output_type == "error"
        }


def grade(executor: WorkerExecutor, *cells: Cell, **files: bytes) -> Graded:
    return Graded(executor.grade_one(submission(*cells, **files)))


def until(there: Callable[[], Any]) -> Any:
    """Wait for something, and return it."""
    give_up = monotonic() + PATIENCE
    while not (found := there()):
        assert monotonic() < give_up, "it never came"
        sleep(0.01)
    return found


def children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def family(pid: int) -> list[int]:
    """All that descend from a process."""
    return [one for child in children(pid) for one in (child, *family(child))]


def zygote_of(executor: WorkerExecutor) -> int:
    assert executor._process is not None
    return zygote_below(executor._process.pid)


def zygote_below(parent: int) -> int:
    ours = children(parent)
    (found,) = [pid for pid in ours if b"autograder.engine.student.zygote" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found


def kill_group(pid: int) -> None:
    """Kill a process with all of its group, as a machine does that has run out of memory, and wait until it is gone."""
    handle = os.pidfd_open(pid)
    os.killpg(pid, signal.SIGKILL)
    assert ended(handle)


def ended(handle: int) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    over = bool(poll.poll(PATIENCE * 1000))
    os.close(handle)
    return over


class Background:
    """Grades a submission while the test does something to who grades it."""

    def __init__(self, executor: WorkerExecutor, what: Submission) -> None:
        self._executions: list[Execution] = []
        self._thread = threading.Thread(target=lambda: self._executions.append(executor.grade_one(what)))
        self._thread.start()

    def result(self) -> Execution:
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        return self._executions[0]


def checkers(executor: WorkerExecutor) -> list[int]:
    """Return the processes that decide about submissions: copies of the worker."""
    assert executor._process is not None
    return [
        pid for pid in children(executor._process.pid) if b"engine.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]


def kill_checker(executor: WorkerExecutor, known: set[int] | None = None) -> None:
    """Kill the process that decides about a submission, once it is there."""
    assert executor._process is not None
    worker = executor._process.pid
    known = set() if known is None else known

    def there() -> list[int]:
        return [pid for pid in checkers(executor) if pid not in known]

    def waits() -> bool:
        # For a checker, that is. A zygote that is being started is a copy of the worker for a moment, in which the worker can do nothing.
        return Path(f"/proc/{worker}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] == "S"

    def settled() -> list[int]:
        first = there()
        sleep(0.1)
        return [pid for pid in first if waits() and pid in there()]

    (checker,) = until(settled)
    known.add(checker)
    handle = os.pidfd_open(checker)
    os.kill(checker, signal.SIGKILL)
    assert ended(handle)


def kill_zygote(executor: WorkerExecutor) -> None:
    """Kill the process that students' processes are forked from, once it has forked one."""
    zygote = zygote_of(executor)
    until(lambda: family(zygote))
    kill_group(zygote)


def kill_worker(executor: WorkerExecutor) -> None:
    """Kill the worker, once it has a checker, and see its zygote end with it."""
    assert executor._process is not None
    worker, zygote = executor._process, os.pidfd_open(zygote_of(executor))
    until(lambda: len(children(worker.pid)) > 1)
    kill_group(worker.pid)
    assert ended(zygote), "the zygote of the worker that was killed lives on"
