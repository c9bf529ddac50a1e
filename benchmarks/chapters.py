"""Grading against stock nbgrader in every chapter: the whole command, and one more submission, on the same submissions.

    python benchmarks/chapters.py [--students 36] [--stock 2] [--json FILE] [CHAPTER ...]

It does for each chapter what ``grading.py`` does for one, with two workers and one round.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from classroom import PROJECT, classroom
from grading import BIN, Turn, prepare_stock, stock_nbgrader, tfcourse
from measure import Figures, Target

from autograder.course.authoring.chapter import find_chapter, load_chapters

_COLUMNS = (
    "chapter",
    "stock: wall s each",
    "stock: one more, s",
    "tfcourse: wall s each",
    "tfcourse: one more, s",
    "against stock, whole command",
    "against stock, one more",
    "first grade after s",
)
WHOLE, STEADY = 14, 20


def main() -> None:
    """Measure, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--students", type=int, default=36, help="submissions that ours grades (default: 36)")
    parser.add_argument("--stock", type=int, default=2, help="of these, how many stock nbgrader grades (default: 2)")
    parser.add_argument("--json", type=Path, help="where to write the figures for write_docs.py")
    parser.add_argument("chapters", nargs="*", help="chapters, as numbers or folders (default: all)")
    options = parser.parse_args()
    if not 2 <= options.stock <= options.students or options.students < 12:
        parser.error("--stock must be 2 or more, --students at least that and 12")
    names = [find_chapter(PROJECT, name).name for name in options.chapters] or [
        chapter.name for chapter in load_chapters(PROJECT)
    ]
    os.environ["PATH"] = os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])
    command = f"python benchmarks/chapters.py --students {options.students} --stock {options.stock}"
    figures = Figures("chapters", " ".join([command, *options.chapters]), _COLUMNS)
    ratios = []
    for name in names:
        stock, ours = one_turn_each(name, options.students, options.stock)
        whole = (stock.cold / options.stock) / (ours.cold / options.students)
        ratios.append((whole, stock.steady / ours.steady))
        times = (stock.cold / options.stock, stock.steady, ours.cold / options.students, ours.steady)
        figures.rows.append((name, *times, *(f"{ratio:.1f}×" for ratio in ratios[-1]), ours.first))
        print(f"{name}: {ratios[-1][0]:.1f}× and {ratios[-1][1]:.1f}×", file=sys.stderr, flush=True)
    least_whole, least_steady = (min(column) for column in zip(*ratios, strict=True))
    figures.targets = [
        Target("the whole command against stock, the slowest chapter", least_whole, WHOLE, unit="×"),
        Target("one more submission against stock, the slowest chapter", least_steady, STEADY, unit="×"),
    ]
    figures.tell(options.json)


def one_turn_each(chapter: str, students: int, stock_students: int) -> tuple[Turn, Turn]:
    """Let stock nbgrader and our command grade a chapter, one after the other."""
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        room = classroom(Path(folder) / "course", students, chapter=chapter)
        prepare_stock(room, Path(folder) / "stock", stock_students)
        return stock_nbgrader(room, Path(folder) / "stock", stock_students), tfcourse(room, 2)


if __name__ == "__main__":
    main()
