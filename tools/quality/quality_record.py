"""Read and write ``quality.json``: what was measured of each exercise's check, one exercise per line, so that changes of two merge."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from autograder.checking.exercise import BANDS, Exercise

FILE = "quality.json"

Record: TypeAlias = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class MistakeResult:
    """The result of one known mistake."""

    mistake: str  # its name
    kind: str  # its class, which determines its band of points
    explanation: str  # the message for a student who makes the mistake
    visible: float  # fraction of the points that it keeps on the visible tests
    all: float  # fraction of the points that it keeps on visible and hidden tests
    caught_by: tuple[str, ...]  # the aspects that it fails, over all tests
    taken_for: tuple[str, ...]  # the mistakes that the check recognises, over all tests

    @property
    def caught(self) -> bool:
        """Whether the mistake's score is within the band of its class, in the pre-check and in the grader."""
        low, high = BANDS[self.kind]
        return all(low - 1e-9 <= share <= high + 1e-9 for share in (self.visible, self.all))

    @property
    def recognised(self) -> bool:
        """Whether the check names this mistake and no other."""
        return self.taken_for == (self.mistake,)


@dataclass(frozen=True)
class Quality:
    """The quality of one exercise's check."""

    exercise: str  # name of the exercise
    chapter: str
    points: float
    outcomes: tuple[MistakeResult, ...]  # one per known mistake, in the order of the declaration
    unproven: tuple[str, ...]  # aspects that no known mistake fails
    for_nothing: float  # the highest share of a solution that computes nothing (see :func:`trivial_solutions`)
    # the highest share of a solution that looks up recorded answers (``tools.quality.nearest_answer``)
    by_lookup: float


def to_record(quality: Quality) -> dict[str, Any]:
    """Return the results of one exercise as they are committed: without what its declaration says, such as explanations."""
    mistakes = {
        outcome.mistake: [outcome.visible, outcome.all, list(outcome.caught_by), list(outcome.taken_for)]
        for outcome in quality.outcomes
    }
    return {
        "points": quality.points,
        "mistakes": mistakes,
        "unproven": list(quality.unproven),
        "for nothing": quality.for_nothing,
        "by lookup": quality.by_lookup,
    }


def read_record(folder: Path) -> Record:
    """Return the committed results by exercise."""
    path = folder / FILE
    record: Record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return record


def write_record(folder: Path, qualities: Iterable[Quality], names: Sequence[str]) -> Record:
    """Add results to the committed ones, drop the results of former exercises, and return the new record."""
    record = read_record(folder) | {quality.exercise: to_record(quality) for quality in qualities}
    record = {name: record[name] for name in names if name in record}
    lines = (f"{json.dumps(name)}: {json.dumps(results)}" for name, results in record.items())
    (folder / FILE).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    return record


def from_record(exercise: Exercise, record: Mapping[str, Any]) -> Quality:
    """Return the committed results of one exercise.

    Raises:
        KeyError: if a known mistake has no results yet.
    """
    outcomes = []
    for item in exercise.misconceptions:
        visible, points, caught_by, taken_for = record["mistakes"][item.name]
        outcomes.append(
            MistakeResult(item.name, item.kind, item.explanation, visible, points, tuple(caught_by), tuple(taken_for))
        )
    return Quality(
        exercise=exercise.name,
        chapter=exercise.chapter,
        points=record["points"],
        outcomes=tuple(outcomes),
        unproven=tuple(record["unproven"]),
        for_nothing=record["for nothing"],
        by_lookup=record["by lookup"],
    )
