"""Writing feedback pages for a class.

    python benchmarks/feedback.py [--students 100] [--json FILE]

The class is graded once, which is not measured. Then all pages are written twice; the second time is told.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from time import perf_counter

from classroom import CHAPTER, Classroom, classroom
from measure import Cost, Figures, Target, cpu_of_self

from autograder.grading.autograde import autograde
from autograder.grading.feedback.pages import write_feedback
from autograder.grading.plugin import autograder_config


def main() -> None:
    """Measure, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--students", type=int, default=100, help="pages (default: 100)")
    parser.add_argument("--json", type=Path, help="where to write the figures for write_docs.py")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        room = classroom(Path(folder), options.students, ordinary=False)
        autograde(room.course, CHAPTER, jobs=2, device="cpu")
        written(room)
        pages, cost = written(room)
    figures = Figures(
        "feedback",
        f"python benchmarks/feedback.py --students {options.students}",
        ("pages", "wall s", "CPU s", "CPU ms a page"),
        [(pages, cost.wall, cost.cpu, 1000 * cost.cpu / pages)],
        [Target(f"feedback for {pages} students", cost.wall, 5, most=True, unit=" s")],
    )
    figures.tell(options.json)


def written(room: Classroom) -> tuple[int, Cost]:
    """Write all pages; return how many, and what it took."""
    begin, cpu = perf_counter(), cpu_of_self()
    pages = write_feedback(room.course, CHAPTER, autograder_config(room.course))
    return len(pages), Cost(perf_counter() - begin, cpu_of_self() - cpu)


if __name__ == "__main__":
    main()
