"""A total becomes points, a grade and a pass as the rule says, also where a boundary is reached exactly."""

from __future__ import annotations

from itertools import combinations

import pytest

from autograder.course.total_rule import TotalRule

SHARES = {"01": 0.8, "02": 0.0, "03": 0.5, "04": 0.5}
WEIGHTS = {"01": 1.0, "02": 1.0, "03": 1.0, "04": 3.0}


@pytest.mark.parametrize(("number", "dropped"), [(0, ()), (1, ("02",)), (2, ("02", "04")), (9, ("02", "03", "04"))])
def test_the_lowest_chapters_are_dropped_and_one_always_counts(number: int, dropped: tuple[str, ...]) -> None:
    assert TotalRule(drop_lowest=number).dropped(SHARES, WEIGHTS) == dropped


def test_with_equal_weights_no_other_chapters_give_a_better_mean() -> None:
    equal = dict.fromkeys(SHARES, 1.0)
    dropped = TotalRule(drop_lowest=2).dropped(SHARES, equal)
    best = max(sum(SHARES[name] for name in kept) / 2 for kept in combinations(SHARES, 2))
    assert sum(share for name, share in SHARES.items() if name not in dropped) / 2 == best


@pytest.mark.parametrize(
    ("share", "grade"), [(1.0, "A"), (0.9, "A"), (0.1 + 0.2 + 0.6, "A"), (0.8999, "B"), (0.5, "C"), (0.4999, "")]
)
def test_a_total_has_the_highest_grade_that_it_reaches(share: float, grade: str) -> None:
    assert TotalRule(grades={"C": 50, "A": 90, "B": 75}).grade(share) == grade


@pytest.mark.parametrize(("share", "passed"), [(0.5, True), (0.1 * 5, True), (0.4999, False)])
def test_a_total_passes_from_the_mark_on(share: float, passed: bool) -> None:
    assert TotalRule(pass_mark=50).passed(share) is passed
    assert TotalRule().passed(share) is None


def test_the_rule_is_said_in_words() -> None:
    rule = TotalRule(drop_lowest=2, scale=60, pass_mark=50, grades={"B": 75, "A": 90})
    assert rule.points(0.75) == 45.0
    assert rule.sentence() == (
        "The total has 60 points. Each student's 2 chapters with the lowest shares do not count. A student passes with 50 %. "
        "Grades: A from 90 %, B from 75 %."
    )
    assert TotalRule(drop_lowest=1).sentence().endswith("Each student's chapter with the lowest share does not count.")
