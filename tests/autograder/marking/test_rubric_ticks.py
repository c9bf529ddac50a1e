"""Ticks add up, and follow a rubric that has changed."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.course.authoring.rubrics import Rubric
from autograder.grading.record.marks_journal import MarkState
from autograder.marking.questions import Answer, Question
from autograder.marking.rubric_ticks import (
    carry_over_ticks,
    current_shares,
    earned_points,
    moves_version,
    rubric_moves,
    rubric_version,
    tick_items,
    unticked_items,
)
from autograder.marking.server import parse_points

BEFORE = Rubric("q", "", "- 2 points: the variance of a score\n- 1 point: the square root\n- 1 point: examples")


def _rubric(*items: str) -> Rubric:
    return Rubric("q", "", "\n".join(f"- {item}" for item in items))


def _question(points: float, shares: tuple[float, ...], most: float = 4.0) -> Question:
    answer = Answer("bob", "text", None, MarkState(points, False, None), "g", "c", None, tick_items(BEFORE, shares))
    return Question("q", "Q", "", most, (answer,), 0)


def test_half_an_item_earns_half_its_points() -> None:
    assert earned_points(tick_items(BEFORE, (1, 0.5, 0)), 4.0) == 2.5
    assert earned_points(tick_items(BEFORE, (1, 1, 1)), 3.0) == 3.0


@pytest.mark.parametrize("shares", [(1, 1), (1, 1, 2), (1, 1, 0.25), (1, 1, 1, 1)])
def test_other_shares_are_refused(shares: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="are not 3 shares"):
        tick_items(BEFORE, shares)


def test_a_page_knows_the_ticks_of_its_own_rubric_only() -> None:
    ticks = tick_items(BEFORE, (1, 0.5, 0))
    assert current_shares(ticks, BEFORE) == (1, 0.5, 0)
    assert current_shares(ticks, _rubric("2 points: another")) == current_shares(ticks, None) == ()
    assert current_shares(None, BEFORE) == ()


def test_new_points_move_an_answer() -> None:
    now = _rubric("1 point: the variance of a score", "2 points: the square root", "1 point: examples")
    (move,) = rubric_moves(_question(2.5, (1, 0.5, 0)), now)
    assert (move.points, move.changes_points, move.is_override) == (2.0, True, False)
    assert current_shares(move.ticks, now) == (1, 0.5, 0)


def test_reordered_and_reworded_items_keep_their_ticks() -> None:
    now = _rubric("1 point: a new demand", "1 point: the square root of the width", "2 points: the variance of a score")
    assert current_shares(carry_over_ticks(tick_items(BEFORE, (1, 0.5, 1)), now), now) == (0, 0.5, 1)


def test_a_removed_item_takes_its_points_along() -> None:
    now = _rubric("2 points: the variance of a score", "1 point: examples")
    (move,) = rubric_moves(_question(3.0, (1, 1, 0)), now)
    assert move.points == 2.0


def test_points_set_by_hand_stay() -> None:
    (move,) = rubric_moves(_question(3.5, (1, 0, 0)), _rubric("1 point: the variance of a score"))
    assert (move.points, move.changes_points, move.is_override) == (3.5, False, True)
    assert [tick.points for tick in move.ticks] == [1.0]


def test_points_stay_at_what_the_question_is_worth() -> None:
    (move,) = rubric_moves(_question(4.0, (1, 1, 1)), _rubric("9 points: the variance of a score"))
    assert move.points == 4.0


@pytest.mark.parametrize("rubric", [BEFORE, None, _rubric()])
def test_nothing_moves_without_another_rubric(rubric: Rubric | None) -> None:
    assert rubric_moves(_question(2.0, (1, 0, 0)), rubric) == []


def test_answers_marked_without_a_rubric_do_not_move() -> None:
    question = _question(2.0, (1, 0, 0))
    question = replace(question, answers=(replace(question.answers[0], ticks=None),))
    assert rubric_moves(question, _rubric("1 point: the variance of a score")) == []


def test_versions_tell_rubrics_and_moves_apart() -> None:
    now = _rubric("1 point: the variance of a score")
    assert len({rubric_version(rubric) for rubric in (BEFORE, now, None)}) == 3
    assert moves_version(rubric_moves(_question(2.0, (1, 0, 0)), now)) != moves_version(
        rubric_moves(_question(2.5, (1, 0.5, 0)), now)
    )
    assert [tick.share for tick in unticked_items(now)] == [0]


@given(st.integers(0, 999), st.text("0123456789", min_size=1, max_size=4), st.sampled_from(".,"))
def test_comma_and_point_separate_the_decimals(whole: int, decimals: str, separator: str) -> None:
    expected = whole + Fraction(int(decimals), 10 ** len(decimals))
    assert parse_points(f" {whole}{separator}{decimals} ") == float(expected)


@pytest.mark.parametrize(("text", "points"), [("0,5", 0.5), (",5", 0.5), ("3", 3.0), ("", None), (" ", None)])
def test_a_number_or_nothing_is_read(text: str, points: float | None) -> None:
    assert parse_points(text) == points


@pytest.mark.parametrize(
    "text",
    [
        "1.000,5",
        "1,000.5",
        "1,5,0",
        "5,",
        "+1",
        "-1",
        "1e1",
        "0x2",
        "nan",
        "inf",
        "½",
        "٣",
        "1 000",
        "1_0",
        "'2",
        "2 points",
    ],
)
def test_anything_else_is_refused_and_named(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        parse_points(text)
