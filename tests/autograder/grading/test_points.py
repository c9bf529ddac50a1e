"""A chapter that was released under other points is not graded without a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading import released_points as module
from autograder.grading.released_points import current_points, refuse_changed_points
from autograder.submission.manifest import Manifest, SourceCell

ROOT = Path(__file__).parents[3]
CHAPTER = "05_transformer"


def cell(name: str, points: float, *, grade: bool = True) -> SourceCell:
    """A cell of a release."""
    return SourceCell(name, "code", "", None, locked=True, grade=grade, solution=False, task=False, points=points)


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Course]:
    """Release the chapter under other points for some exercises."""

    def make(**other: float) -> Course:
        worth = current_points(ROOT, CHAPTER) | other
        cells = tuple(cell(f"test_{name}", points) for name, points in worth.items())
        questions = (cell("question_norm", 99.0), cell("prompt", 0.0, grade=False))
        monkeypatch.setattr(module, "released_manifest", lambda course, chapter: Manifest(chapter, cells + questions))
        monkeypatch.setattr(module, "project_root", lambda: ROOT)
        return Course(tmp_path)

    return make


def test_the_points_of_now_are_those_of_the_checks() -> None:
    from autograder.checks import exercises

    expected = {name: item.points for name, item in exercises().items() if item.chapter == CHAPTER}
    assert current_points(ROOT, CHAPTER) == expected
    assert current_points(ROOT, "77_unheard_of") == {}


def test_the_same_points_are_graded_whatever_questions_in_words_are_worth(released: Callable[..., Course]) -> None:
    refuse_changed_points(released(), CHAPTER)


def test_other_points_are_refused_with_both_sums_the_exercises_and_the_way_on(released: Callable[..., Course]) -> None:
    worth = current_points(ROOT, CHAPTER)
    course = released(gelu=worth["gelu"] + 2, layer_norm=worth["layer_norm"] - 0.5)
    total = sum(worth.values())
    with pytest.raises(CourseError) as refused:
        refuse_changed_points(course, CHAPTER)
    assert refused.value.what == (
        f"points of {CHAPTER} changed from {total + 1.5:g} to {total:g} since it was released (gelu, layer_norm)"
    )
    assert f"tfcourse regrade {CHAPTER} --new-points" in refused.value.do


def test_an_exercise_that_only_one_side_has_is_no_difference(released: Callable[..., Course]) -> None:
    refuse_changed_points(released(an_older_exercise=4.0), CHAPTER)


def test_a_course_without_its_project_is_graded_as_it_was_released(
    released: Callable[..., Course], monkeypatch: pytest.MonkeyPatch
) -> None:
    course = released(gelu=1.0)

    def nowhere() -> Path:
        raise CourseError("not inside the project")

    monkeypatch.setattr(module, "project_root", nowhere)
    refuse_changed_points(course, CHAPTER)
