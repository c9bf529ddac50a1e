"""A chapter that was released under other points is not graded without a word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.course.folder import Course
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.grading import released_points as module
from autograder.grading.autograde import autograde
from autograder.grading.plugin import configured
from autograder.grading.regrade import regrade, to_regrade
from autograder.grading.released_points import current_points, refuse_changed_points
from autograder.grading.replay import replay
from autograder.record.gradebook_writer import GradebookWriter
from autograder.record.results import read_results
from autograder.submission.manifest import Manifest, SourceCell, released_manifest
from autograder.submission.problem import Problem, add_problems
from autograder.submission.test_cells import OUT_OF_RANGE

from .conftest import CHAPTER as SMALL
from .scripted import Scripted

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


@pytest.mark.parametrize("other", [{}, {"an_older_exercise": 4.0}], ids=["as they are", "one that only one side has"])
def test_the_same_points_are_graded_whatever_questions_in_words_are_worth(
    released: Callable[..., Course], other: dict[str, float]
) -> None:
    refuse_changed_points(released(**other), CHAPTER)


def test_other_points_are_refused_with_both_sums_the_exercises_and_the_way_on(released: Callable[..., Course]) -> None:
    worth = current_points(ROOT, CHAPTER)
    course = released(gelu=worth["gelu"] + 2, layer_norm=worth["layer_norm"] - 0.5)
    total = sum(worth.values())
    with pytest.raises(CourseError) as refused:
        refuse_changed_points(course, CHAPTER)
    assert all(word in refused.value.what for word in (f"{total + 1.5:g} to {total:g}", "gelu, layer_norm"))
    assert f"tfcourse regrade {CHAPTER} --new-points" in refused.value.do


def test_a_course_without_its_project_is_graded_as_it_was_released(
    released: Callable[..., Course], monkeypatch: pytest.MonkeyPatch
) -> None:
    course = released(gelu=1.0)

    def nowhere() -> Path:
        raise CourseError("not inside the project")

    monkeypatch.setattr(module, "project_root", nowhere)
    refuse_changed_points(course, CHAPTER)


def test_a_check_that_gives_other_points_than_its_cell_stops_the_run_and_costs_no_one_a_point(
    course: Course, filled: Callable[..., Any], hand_in: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for student in ("ann", "ben"):
        hand_in(student, filled(SMALL, answer="Because."), SMALL)
    settings = GradingSettings(seed=7)
    autograde(course, SMALL, device="cpu", settings=settings, make_executor=Scripted())
    before = {result.student: result.score for result in read_results(course, SMALL)}
    for total in (2.0, 98.0):
        changed = Scripted(totals={"causal_mask": total})
        worth = {cell.name: cell.points for cell in released_manifest(course, SMALL).cells}["test_causal_mask"]
        chosen = to_regrade(course, SMALL, ("ann", "ben"), settings)
        for dry_run in (True, False):
            with pytest.raises(CourseError) as refused:
                regrade(course, chosen, settings, dry_run=dry_run, make_executor=changed)
            assert all(word in refused.value.what for word in ("causal_mask", f"{total:g} points", f"{worth:g}"))
        with pytest.raises(CourseError):
            replay(course, SMALL, "ann", make_executor=changed)
        hand_in("cem", filled(SMALL, answer="Because, too."), SMALL)
        with pytest.raises(CourseError):
            autograde(course, SMALL, device="cpu", settings=settings, make_executor=changed)
        assert {result.student: result.score for result in read_results(course, SMALL)} == before
        with GradebookWriter(course, SMALL, configured(course)).gradebook() as gradebook:
            stored = {one.student_id: one.score for one in gradebook.assignment_submissions(SMALL)}
        assert stored == before
        monkeypatch.setattr(module, "current_points", lambda project, chapter, to=total: {"causal_mask": to})
        with pytest.raises(CourseError) as refused:
            replay(course, SMALL, "ann", make_executor=changed)
        assert refused.value.do.endswith(f"regrade {SMALL} --new-points --course {course.root}")
        monkeypatch.undo()


def test_an_impossible_score_leaves_a_submission_without_a_grade(
    course: Course, filled: Callable[..., Any], hand_in: Callable[..., Path]
) -> None:
    class Impossible(Scripted):
        def grade_one(self, submission: Submission) -> Execution:
            execution = super().grade_one(submission)
            notebook = nbformat.reads(execution.notebook, as_version=4)
            add_problems(
                notebook, [Problem(OUT_OF_RANGE, "The test gave 99 points, of at most 4.", "test_causal_mask")]
            )
            return replace(execution, notebook=nbformat.writes(notebook))

    hand_in("ann", filled(SMALL, answer="Because."), SMALL)
    for _ in range(2):  # nor does the second time count as 0
        (result,) = autograde(course, SMALL, device="cpu", settings=GradingSettings(seed=7), make_executor=Impossible())
        assert result.status == "not recorded"
        assert "test_causal_mask" in str(result.problems[0])
