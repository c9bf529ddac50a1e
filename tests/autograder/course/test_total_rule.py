"""A total becomes points, a grade and a pass as the rule says, also where a boundary is reached exactly."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import pytest

from autograder.course.course_file import course_file_path, read_course_file
from autograder.course.course_rules import ExerciseRule, TotalRule, graded_exercise
from autograder.errors import CourseError

SHARES = {"01": 0.8, "02": 0.0, "03": 0.5, "04": 0.5}
WEIGHTS = {"01": 1.0, "02": 1.0, "03": 1.0, "04": 3.0}


@pytest.mark.parametrize(("number", "dropped"), [(0, ()), (1, ("02",)), (2, ("02", "04")), (9, ("02", "03", "04"))])
def test_the_lowest_chapters_are_dropped_and_one_always_counts(number: int, dropped: tuple[str, ...]) -> None:
    assert TotalRule(drop_lowest=number).dropped_chapters(SHARES, WEIGHTS) == dropped


def test_with_equal_weights_no_other_chapters_give_a_better_mean() -> None:
    equal = dict.fromkeys(SHARES, 1.0)
    dropped = TotalRule(drop_lowest=2).dropped_chapters(SHARES, equal)
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
    assert re.findall(r"\d+", rule.sentence()) == ["60", "2", "50", "90", "75"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (ExerciseRule(), (3.0, 4.0)),
        (ExerciseRule(points=10), (7.5, 10.0)),
        (ExerciseRule(count="drop"), (0.0, 0.0)),
        (ExerciseRule(count="full"), (4.0, 4.0)),
        (ExerciseRule(count="full", points=10), (10.0, 10.0)),
        (ExerciseRule(count="bonus"), (3.0, 0.0)),
        (ExerciseRule(count="bonus", points=2), (1.5, 0.0)),
        (ExerciseRule(points=0), (0.0, 0.0)),
    ],
)
def test_three_of_four_points_count(rule: ExerciseRule, expected: tuple[float, float]) -> None:
    assert rule.count_points(3.0, 4.0) == expected


def test_a_rule_is_said_in_words() -> None:
    assert str(ExerciseRule(points=5, count="bonus")) == "5 points, a bonus"
    assert str(ExerciseRule(count="drop")) == "dropped"


def test_a_test_cell_belongs_to_its_exercise() -> None:
    assert (graded_exercise("test_causal_mask"), graded_exercise("question_query_key")) == (
        "causal_mask",
        "question_query_key",
    )


@pytest.mark.parametrize("text", ['count = "half"', "points = -1", "wieght = 2"])
def test_a_rule_that_has_no_meaning_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    course_file_path(tmp_path).write_text(f"[chapters.07_decoding.exercises.beam_search]\n{text}\n", encoding="utf-8")
    with pytest.raises(CourseError, match="line 2"):
        read_course_file(tmp_path)
