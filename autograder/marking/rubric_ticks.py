"""Tick rubric items, and carry the ticks of marked answers over to a rubric that has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from autograder.course.authoring.rubrics import Rubric
from autograder.grading.record.marks_journal import RubricTick, Ticks
from autograder.marking.graded_notebooks import folded
from autograder.marking.questions import Answer, Question

SHARES = (0.0, 0.5, 1.0)
# Two wordings that are less alike than this are two items.
_ALIKE = 0.6
# Differences of sums of halves and tenths are rounding errors below this.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Move:
    """What a changed rubric means for one marked answer."""

    answer: Answer
    ticks: Ticks  # its ticks under the changed rubric
    # its points under the changed rubric; those it has if the marker set them to something else than the sum
    points: float
    is_override: bool  # whether the marker set the points to something else than the sum

    @property
    def moves(self) -> bool:
        """Whether the points change."""
        return self.answer.state.points is None or abs(self.points - self.answer.state.points) > _EQUAL


def unticked(rubric: Rubric) -> Ticks:
    """Return a rubric's items with none of them ticked."""
    return tuple(RubricTick(item.wording, item.points or 0.0, 0.0) for item in rubric.items)


def ticked(rubric: Rubric, shares: Sequence[float]) -> Ticks:
    """Return a rubric's items, each with its share.

    Args:
        shares: how much of each item the answer has: 0, 0.5 or 1.

    Raises:
        ValueError: if there is not one such share per item.
    """
    items = unticked(rubric)
    if len(shares) != len(items) or any(share not in SHARES for share in shares):
        raise ValueError(f"{list(shares)} are not {len(items)} shares of 0, 0.5 or 1")
    return tuple(RubricTick(item.text, item.points, float(share)) for item, share in zip(items, shares, strict=True))


def earned(ticks: Ticks, most: float) -> float:
    """Return the points of ticked items, at most what the question is worth."""
    return min(most, sum(tick.earned for tick in ticks))


def rubric_version(rubric: Rubric | None) -> str:
    """Return a hash of a rubric's items: the page sends it back with each mark."""
    items = [[tick.text, tick.points] for tick in unticked(rubric)] if rubric else []
    return hashlib.sha256(json.dumps(items).encode()).hexdigest()[:16]


def current_shares(ticks: Ticks | None, rubric: Rubric | None) -> tuple[float, ...]:
    """Return the shares of an answer's ticks; none if it was marked without a rubric or with another one."""
    if not ticks or rubric is None or _items(ticks) != _items(unticked(rubric)):
        return ()
    return tuple(tick.share for tick in ticks)


def carried_over(ticks: Ticks, rubric: Rubric) -> Ticks:
    """Return a changed rubric's items with the shares that an answer has.

    An item keeps its share if its wording is the same, or else if its wording is the most similar one among the items that are left. A
    new item is not ticked.

    Args:
        ticks: the answer's ticks under the rubric before.
        rubric: the rubric now.
    """
    now = unticked(rubric)
    before_of = _counterparts([tick.text for tick in ticks], [tick.text for tick in now])
    return tuple(
        RubricTick(item.text, item.points, ticks[before_of[index]].share if index in before_of else 0.0)
        for index, item in enumerate(now)
    )


def rubric_moves(question: Question, rubric: Rubric | None) -> list[Move]:
    """Return the new points of answers that were marked with an earlier version of a rubric; empty if it has not changed."""
    if rubric is None or not rubric.items:
        return []
    now = _items(unticked(rubric))
    return [
        _move(answer, answer.ticks, rubric, question.points)
        for answer in question.answers
        if answer.ticks and _items(answer.ticks) != now
    ]


def moves_version(moves: Iterable[Move]) -> str:
    """Return a hash of a list of moves: what a person has seen before the rubric is applied."""
    contents = [[m.answer.student, m.answer.version, m.points, [tick.to_json() for tick in m.ticks]] for m in moves]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:16]


def _move(answer: Answer, ticks: Ticks, rubric: Rubric, most: float) -> Move:
    points = answer.state.points or 0.0
    is_override = abs(points - earned(ticks, most)) > _EQUAL
    now = carried_over(ticks, rubric)
    return Move(answer, now, points if is_override else earned(now, most), is_override)


def _items(ticks: Ticks) -> list[tuple[str, float]]:
    return [(tick.text, tick.points) for tick in ticks]


def _counterparts(before: Sequence[str], now: Sequence[str]) -> dict[int, int]:
    """Return for each item now the item before that it continues, by position."""
    scores = [
        (1.0 if folded(old) == folded(new) else SequenceMatcher(None, folded(old), folded(new)).ratio(), -i, -j)
        for i, new in enumerate(now)
        for j, old in enumerate(before)
    ]
    counterparts: dict[int, int] = {}
    for score, i, j in sorted(scores, reverse=True):
        if score >= _ALIKE and -i not in counterparts and -j not in counterparts.values():
            counterparts[-i] = -j
    return counterparts
