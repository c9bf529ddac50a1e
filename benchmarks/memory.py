"""Memory of a worker, and whether it grows.

    python benchmarks/memory.py [--submissions 2000] [--json FILE]

One worker grades a cheap notebook again and again, right and wrong in turn. After 100 submissions and after all of them, the memory of the
whole family is looked at while ten more are being graded: the worker, the process that students' processes are forked from, one of those,
and the checker. What they share is counted once (PSS). The most that was seen is told.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from classroom import CHAPTER, classroom
from family import memory
from measure import Figures, Target
from nbformat import writes
from nbformat.v4 import new_code_cell, new_notebook

from autograder.engine.interface import Submission
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.executor import WorkerExecutor

Seen = TypeVar("Seen")

EARLY, LOOKED_AT = 100, 10
# So much may be chance: how much of what is shared has been touched by whom, and what an allocator holds back.
NONE_MB = 20


def main() -> None:
    """Measure, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--submissions", type=int, default=2000, help="how many are graded (default: 2000)")
    parser.add_argument("--json", type=Path, help="where to write the figures for write_docs.py")
    options = parser.parse_args()
    if options.submissions <= EARLY + LOOKED_AT:
        parser.error(f"--submissions must be more than {EARLY + LOOKED_AT}")
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        package = classroom(Path(folder), 1).package()
        early, late = measured(GradingSettings(seed=1, package=package), options.submissions)
    figures = Figures(
        "memory",
        f"python benchmarks/memory.py --submissions {options.submissions}",
        ("after", "whole family, MiB", "largest process, MiB", "processes at once"),
        [(EARLY, *early), (options.submissions, *late)],
        [
            Target("memory per worker", max(early[0], late[0]) / 1024, 1, most=True, unit=" GiB"),
            Target(
                f"growth from {EARLY} to {options.submissions}", late[0] - early[0], NONE_MB, most=True, unit=" MiB"
            ),
        ],
    )
    figures.tell(options.json)


def measured(settings: GradingSettings, submissions: int) -> tuple[tuple[float, float, int], tuple[float, float, int]]:
    """Return what is seen early and what is seen at the end."""
    notebooks = [writes(notebook(triangle)) for triangle in ("tril", "triu")]
    executor = WorkerExecutor(settings)
    graded = 0

    def grade(count: int) -> None:
        nonlocal graded
        for _ in range(count):
            execution = executor.grade_one(Submission(f"student-{graded}", CHAPTER, notebooks[graded % 2]))
            if execution.failure or execution.isolation != "sandbox":
                raise RuntimeError(f"{execution.failure or 'not graded in the sandbox'}")
            graded += 1

    try:
        grade(EARLY)
        early = _while_grading(executor, lambda: grade(LOOKED_AT))
        grade(submissions - graded - LOOKED_AT)
        return early, _while_grading(executor, lambda: grade(LOOKED_AT))
    finally:
        executor.close()


def notebook(triangle: str) -> object:
    """Return a notebook with one exercise in it, as a worker gets it."""
    source = (
        f"def causal_mask(T, device=None):\n    return torch.ones(T, T, dtype=torch.bool, device=device).{triangle}()"
    )
    test = {"grade": True, "grade_id": "test_causal_mask", "locked": True, "points": 1, "schema_version": 3}
    return new_notebook(
        cells=[
            new_code_cell("import torch\nfrom tfcourse import check"),
            new_code_cell(source),
            new_code_cell(
                "check(causal_mask)\ncheck(causal_mask, hidden=True)",
                metadata={"nbgrader": {**test, "solution": False, "task": False}},
            ),
        ]
    )


def _while_grading(executor: WorkerExecutor, grade: Callable[[], None]) -> tuple[float, float, int]:
    process = executor._process
    assert process is not None
    seen = watched(lambda: memory(process.pid), grade)
    most = max(seen, key=lambda one: sum(one.values()))
    return sum(most.values()) / 2**20, max(most.values()) / 2**20, max(map(len, seen))


def watched(look: Callable[[], Seen], work: Callable[[], None]) -> list[Seen]:
    """Return what a look gives, again and again, while something is done."""
    seen: list[Seen] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            seen.append(look())
            over.wait(0.01)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        work()
    finally:
        over.set()
        watcher.join()
    return seen


if __name__ == "__main__":
    main()
