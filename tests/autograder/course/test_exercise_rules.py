"""A rule counts points that were earned otherwise, and keeps the share that a student earned."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course.course_file import course_file_path, read_course_file
from autograder.course.exercise_rules import ExerciseRule, exercise_of
from autograder.errors import CourseError


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
    assert rule.counted(3.0, 4.0) == expected


def test_a_rule_is_said_in_words() -> None:
    assert str(ExerciseRule(points=5, count="bonus")) == "5 points, a bonus"
    assert str(ExerciseRule(count="drop")) == "dropped"


def test_a_test_cell_belongs_to_its_exercise() -> None:
    assert (exercise_of("test_causal_mask"), exercise_of("question_query_key")) == ("causal_mask", "question_query_key")


@pytest.mark.parametrize("text", ['count = "half"', "points = -1", "wieght = 2"])
def test_a_rule_that_has_no_meaning_is_refused_with_its_line(tmp_path: Path, text: str) -> None:
    course_file_path(tmp_path).write_text(f"[chapters.07_decoding.exercises.beam_search]\n{text}\n", encoding="utf-8")
    with pytest.raises(CourseError, match="line 2"):
        read_course_file(tmp_path)
