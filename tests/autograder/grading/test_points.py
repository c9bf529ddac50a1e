"""A chapter that was released under other points is not graded without a word."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
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
from autograder.grading.plugin import autograder_config
from autograder.grading.record.gradebook_writer import GradebookWriter
from autograder.grading.record.results import read_result, read_results, result_path
from autograder.grading.record.signatures import Signature, read_signatures, signatures_path
from autograder.grading.regrade import regrade, select_for_regrade
from autograder.grading.released_points import current_points, refuse_changed_points
from autograder.grading.replay import replay
from autograder.intake.notebook.manifest import Manifest, SourceCell
from autograder.intake.notebook.problem import Problem, add_problems
from autograder.intake.notebook.test_cells import OUT_OF_RANGE

from .conftest import CHAPTER as SMALL
from .conftest import Fill, HandIn, Snapshot
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


@pytest.mark.parametrize("other", [{}, {"an_older_exercise": 4.0}], ids=["equal", "another exercise"])
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
    changed = Scripted(totals={"causal_mask": 98.0})
    chosen = select_for_regrade(course, SMALL, ("ann", "ben"), settings)
    hand_in("cem", filled(SMALL, answer="Because, too."), SMALL)
    runs: list[Callable[[], object]] = [
        lambda: regrade(course, chosen, settings, dry_run=True, make_executor=changed),
        lambda: regrade(course, chosen, settings, make_executor=changed),
        lambda: replay(course, SMALL, "ann", make_executor=changed),
        lambda: autograde(course, SMALL, device="cpu", settings=settings, make_executor=changed),
    ]
    for run in runs:
        with pytest.raises(CourseError, match="causal_mask"):
            run()
    assert {result.student: result.score for result in read_results(course, SMALL)} == before
    with GradebookWriter(course, SMALL, autograder_config(course)).gradebook() as gradebook:
        assert {one.student_id: one.score for one in gradebook.assignment_submissions(SMALL)} == before
    monkeypatch.setattr(module, "current_points", lambda project, chapter: {"causal_mask": 98.0})
    with pytest.raises(CourseError) as refused:
        replay(course, SMALL, "ann", make_executor=changed)
    assert refused.value.do.endswith(f"regrade {SMALL} --new-points --course {course.root}")


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


SIGNATURE = Signature("sheet", "structure", "f", (0.5,))


@dataclass
class Describing(Scripted):
    """Gives points, and the same signature for a wrong answer of everybody."""

    def grade_one(self, submission: Submission) -> Execution:
        """Give the points and the signature."""
        return replace(super().grade_one(submission), signatures={"soft_lookup": SIGNATURE.to_dict()})


def grade(course: Course, executor: Scripted, *, force: bool = False) -> None:
    autograde(course, SMALL, device="cpu", settings=GradingSettings(seed=7), make_executor=executor, force=force)


@pytest.fixture
def graded(course: Course, filled: Fill, hand_in: HandIn) -> Course:
    """A course in which Ann is graded, with a signature."""
    hand_in("ann", filled(answer="Because."))
    grade(course, Describing())
    return course


def test_signatures_are_kept_beside_the_results_as_long_as_the_submission(
    graded: Course, snapshot: Snapshot, filled: Fill, hand_in: HandIn
) -> None:
    kept = signatures_path(graded, SMALL, "ann")
    result = read_result(graded, SMALL, "ann")
    assert result is not None
    assert read_signatures(graded, SMALL, "ann", result.submission) == {"soft_lookup": SIGNATURE}
    assert kept.is_relative_to(graded.root / "journal")
    before = snapshot(graded.root)
    for executor in (Scripted(), Describing()):
        assert replay(graded, SMALL, "ann", make_executor=executor).is_same
    assert snapshot(graded.root) == before, "a replay neither sees nor writes them"
    signatures, recorded = kept.read_bytes(), result_path(graded, SMALL, "ann").read_bytes()
    grade(graded, Scripted())
    assert kept.read_bytes() == signatures, "unchanged"
    grade(graded, Scripted(), force=True)
    assert result_path(graded, SMALL, "ann").read_bytes() == recorded, "a result is the same bytes without them"
    assert not kept.exists()
    hand_in("ben", filled(answer="Because."))
    grade(graded, Describing(), force=True)
    assert kept.exists()
    grade(graded, Scripted({"ann": None}), force=True)
    assert not kept.exists(), "a failure of the grader takes them back"
    grade(graded, Describing(), force=True)
    shutil.rmtree(graded.folder("submitted", "ann"))
    grade(graded, Describing())
    assert not kept.exists()
    assert signatures_path(graded, SMALL, "ben").exists()


def test_an_unwritable_file_costs_no_grade(graded: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("autograder.grading.record.signatures.write_atomically", full)
    grade(graded, Describing(), force=True)
    result = read_result(graded, SMALL, "ann")
    assert result is not None
    assert result.status == "graded"
