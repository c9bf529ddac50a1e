"""Processor milliseconds of each chapter's checks on the reference: asking and judging, warm, visible and hidden rows together.

    python benchmarks/checks.py [--every] [--json FILE] [CHAPTER ...]

As in grading, the hidden check does not ask the visible questions again.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from time import process_time

import torch
from measure import Figures, Target

from autograder.checking.decision import decide
from autograder.checking.exercise import Exercise
from autograder.checking.subject import LocalSubject
from autograder.checks import exercises

ROUNDS = 3
SLOWEST = 3
CHAPTER_MS, EXERCISE_MS = 400, 120


def main() -> None:
    """Measure, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--every", action="store_true", help="name every exercise, not only the slowest")
    parser.add_argument("--json", type=Path, help="where to write the figures for write_docs.py")
    parser.add_argument("chapters", nargs="*", help="numbers of chapters, such as 05 (default: all)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    spent: dict[str, dict[str, float]] = {}
    for exercise in exercises().values():
        if not options.chapters or exercise.chapter[:2] in options.chapters:
            spent.setdefault(exercise.chapter, {})[exercise.name] = milliseconds(exercise)
    if not spent:
        parser.error(f"no chapter has the number {' or '.join(options.chapters)}; chapters are 01 to 13")
    command = ["python benchmarks/checks.py", *["--every"] * options.every, *options.chapters]
    figures = Figures("checks", " ".join(command), ("chapter", "exercises", "ms", "slowest"))
    for chapter, of_exercise in sorted(spent.items()):
        slowest = sorted(of_exercise, key=of_exercise.__getitem__, reverse=True)[: None if options.every else SLOWEST]
        named = ", ".join(f"`{name}` {of_exercise[name]:.0f}" for name in slowest)
        figures.rows.append((chapter, len(of_exercise), f"{sum(of_exercise.values()):.0f}", named))
    figures.targets = [
        Target(
            "the slowest chapter", max(sum(each.values()) for each in spent.values()), CHAPTER_MS, most=True, unit=" ms"
        ),
        Target(
            "the slowest exercise",
            max(max(each.values()) for each in spent.values()),
            EXERCISE_MS,
            most=True,
            unit=" ms",
        ),
    ]
    figures.tell(options.json)


def milliseconds(exercise: Exercise) -> float:
    """Return the processor milliseconds of the check on the reference; the fewest of some rounds, after one that is not counted."""
    sheets = [exercise.sheet(hidden=hidden, seed=int(hidden)) for hidden in (False, True)]
    spent = []
    for _ in range(1 + ROUNDS):
        begin = process_time()
        subject = LocalSubject(exercise.reference)
        if not all(decide(sheet, subject).passed for sheet in sheets):
            raise RuntimeError(f"{exercise.name}: the reference fails its own check")
        spent.append(process_time() - begin)
    return 1e3 * min(spent[1:])


if __name__ == "__main__":
    main()
