"""From ``tfcourse validate NOTEBOOK`` to the verdict, on a warm machine.

    python benchmarks/validate.py [--runs 5] [--json FILE]

A student's machine: the students' package of chapter 03 alone, and a notebook in which everything is right. One run warms the disk's cache
and is not counted; of the others the median is told. Rows of their own say what of it is Python, and what is ``import torch``, which nobody
can save.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

from classroom import CHAPTER, PROJECT
from measure import Cost, Figures, Target, cost_of

from autograder.course.authoring.chapter import find_chapter
from autograder.course.release.student_build import build_student_wheel


def main() -> None:
    """Measure, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=5, help="runs that count (default: 5)")
    parser.add_argument("--json", type=Path, help="where to write the figures for write_docs.py")
    options = parser.parse_args()
    figures = Figures(
        "validate",
        f"python benchmarks/validate.py --runs {options.runs}",
        ("what", "wall s, median", "wall s, least", "CPU s, median"),
    )
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        measure(Path(folder), options.runs, figures)
    figures.tell(options.json)


def measure(folder: Path, runs: int, figures: Figures) -> None:
    """Run the command, and what it cannot do without, and put the figures into the table."""
    wheel = build_student_wheel(PROJECT, find_chapter(PROJECT, CHAPTER), folder)
    shutil.unpack_archive(wheel, folder / "packages", "zip")
    os.environ["PYTHONPATH"] = str(folder / "packages")
    notebook = PROJECT / "solutions" / CHAPTER / "exercises.ipynb"
    validate = [sys.executable, "-P", "-m", "autograder.checking.validate", "validate", notebook]
    total = repeated(validate, runs)
    rows = {
        "tfcourse validate, as a student has it": total,
        "of that, Python twice: the command, and the notebook's process": repeated(
            [sys.executable, "-P", "-c", ""], runs, twice=True
        ),
        "of that, import torch": repeated([sys.executable, "-P", "-c", "import torch"], runs),
    }
    for name, costs in rows.items():
        walls = [cost.wall for cost in costs]
        figures.rows.append((name, median(walls), min(walls), median(cost.cpu for cost in costs)))
    figures.targets.append(
        Target(
            "from the command to the verdict, median", median(cost.wall for cost in total), 1.5, most=True, unit=" s"
        )
    )


def repeated(command: list[object], runs: int, *, twice: bool = False) -> list[Cost]:
    """Return what a command takes, after one run that does not count."""
    costs = [cost_of([str(word) for word in command]) for _ in range(runs + 1)][1:]
    return [Cost(2 * cost.wall, 2 * cost.cpu) for cost in costs] if twice else costs


if __name__ == "__main__":
    main()
