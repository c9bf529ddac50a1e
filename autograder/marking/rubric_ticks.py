"""Tick rubric items, and transfer the ticks of marked answers to a changed rubric."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from autograder.course.authoring.rubrics import Rubric
from autograder.grading.record.marks_journal import RubricTick, Ticks
from autograder.marking.graded_notebooks import fold_text
from autograder.marking.questions import Answer, Question

SHARES = (0.0, 0.5, 1.0)
# Two wordings that are less alike than this are two items.
_ALIKE = 0.6
# Differences of sums of halves and tenths are rounding errors below this.
_EQUAL = 1e-9


@dataclass(frozen=True)
class Move:
    """The effect of a changed rubric on one marked answer."""

    answer: Answer
    ticks: Ticks  # its ticks under the changed rubric
    # its points under the changed rubric; those it has if the marker set them to something other than the sum
    points: float
    is_override: bool  # whether the marker set the points to something other than the sum

    @property
    def changes_points(self) -> bool:
        """Whether the points change."""
        return self.answer.state.points is None or abs(self.points - self.answer.state.points) > _EQUAL


def unticked_items(rubric: Rubric) -> Ticks:
    """Return a rubric's items, all unticked."""
    return tuple(RubricTick(item.wording, item.points or 0.0, 0.0) for item in rubric.items)


def tick_items(rubric: Rubric, shares: Sequence[float]) -> Ticks:
    """Return a rubric's items with the given shares.

    Args:
        shares: how much of each item the answer has: 0, 0.5 or 1.

    Raises:
        ValueError: if there is not one such share per item.
    """
    items = unticked_items(rubric)
    if len(shares) != len(items) or any(share not in SHARES for share in shares):
        raise ValueError(f"{list(shares)} are not {len(items)} shares of 0, 0.5 or 1")
    return tuple(RubricTick(item.text, item.points, float(share)) for item, share in zip(items, shares, strict=True))


def earned_points(ticks: Ticks, most: float) -> float:
    """Return the sum of ticked items, limited to the question's points."""
    return min(most, sum(tick.earned for tick in ticks))


def rubric_version(rubric: Rubric | None) -> str:
    """Return a hash of a rubric's items, which the page sends back with each mark."""
    items = [[tick.text, tick.points] for tick in unticked_items(rubric)] if rubric else []
    return hashlib.sha256(json.dumps(items).encode()).hexdigest()[:16]


def current_shares(ticks: Ticks | None, rubric: Rubric | None) -> tuple[float, ...]:
    """Return the shares of an answer's ticks; empty if it was marked without a rubric or with another version."""
    if not ticks or rubric is None or _item_values(ticks) != _item_values(unticked_items(rubric)):
        return ()
    return tuple(tick.share for tick in ticks)


def carry_over_ticks(ticks: Ticks, rubric: Rubric) -> Ticks:
    """Transfer an answer's shares to the items of a changed rubric.

    An item keeps its share if its wording is the same, or else if its wording is the most similar one among the items that are left. A
    new item is not tick_items.

    Args:
        ticks: the answer's ticks under the rubric before.
        rubric: the rubric now.
    """
    now = unticked_items(rubric)
    before_of = _match_items([tick.text for tick in ticks], [tick.text for tick in now])
    return tuple(
        RubricTick(item.text, item.points, ticks[before_of[index]].share if index in before_of else 0.0)
        for index, item in enumerate(now)
    )


def rubric_moves(question: Question, rubric: Rubric | None) -> list[Move]:
    """Return the effects of a changed rubric on answers marked with an earlier version; empty if it is unchanged."""
    if rubric is None or not rubric.items:
        return []
    now = _item_values(unticked_items(rubric))
    return [
        _build_move(answer, answer.ticks, rubric, question.points)
        for answer in question.answers
        if answer.ticks and _item_values(answer.ticks) != now
    ]


def moves_version(moves: Iterable[Move]) -> str:
    """Return a hash of a list of moves, to detect that they changed since a marker saw them."""
    contents = [[m.answer.student, m.answer.version, m.points, [tick.to_json() for tick in m.ticks]] for m in moves]
    return hashlib.sha256(json.dumps(contents, sort_keys=True).encode()).hexdigest()[:16]


def _build_move(answer: Answer, ticks: Ticks, rubric: Rubric, most: float) -> Move:
    points = answer.state.points or 0.0
    is_override = abs(points - earned_points(ticks, most)) > _EQUAL
    now = carry_over_ticks(ticks, rubric)
    return Move(answer, now, points if is_override else earned_points(now, most), is_override)


def _item_values(ticks: Ticks) -> list[tuple[str, float]]:
    return [(tick.text, tick.points) for tick in ticks]


def _match_items(before: Sequence[str], now: Sequence[str]) -> dict[int, int]:
    """Match a changed rubric's items to the previous ones by wording; return previous positions by new position."""
    scores = [
        (
            1.0 if fold_text(old) == fold_text(new) else SequenceMatcher(None, fold_text(old), fold_text(new)).ratio(),
            -i,
            -j,
        )
        for i, new in enumerate(now)
        for j, old in enumerate(before)
    ]
    counterparts: dict[int, int] = {}
    for score, i, j in sorted(scores, reverse=True):
        if score >= _ALIKE and -i not in counterparts and -j not in counterparts.values():
            counterparts[-i] = -j
    return counterparts
