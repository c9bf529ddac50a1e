"""A class is graded: the scores are those predicted, with any number of jobs, here and in nbgrader itself."""

from __future__ import annotations

import gc
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader.api import Gradebook
from sqlalchemy.exc import OperationalError

from autograder.course.folder import CONFIG_NAME, Course
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.engine import as_ungradable
from autograder.errors import CourseError
from autograder.feedback.pages import write_feedback
from autograder.gradebook.transactions import _Unit
from autograder.grading import autograde as module
from autograder.grading import recorder
from autograder.grading.autograde import autograde
from autograder.grading.course_settings import configured_settings
from autograder.grading.plugin import configured
from autograder.grading.submissions import submitted_students
from autograder.record.gradebook_writer import GradebookWriter, Recorded, RecordError
from autograder.record.journal import open_journal
from autograder.record.results import GradeResult, read_result, read_results
from autograder.selftest.sample_class import SAVED_AS, SampleStudent, sample_class

from .conftest import CHAPTER
from .scripted import Scripted

STUDENTS = 7
# The course's own seed; whatever isolation there is will do for submissions that we have made ourselves.
WEAKER = GradingSettings(seed=None, allow_weaker=True)


@dataclass(frozen=True)
class Graded:
    """A sample class, graded with two jobs."""

    course: Course
    students: list[SampleStudent]
    results: list[GradeResult]
    told: list[str]


@pytest.fixture(scope="module")
def graded(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    root = tmp_path_factory.mktemp("graded") / "course"
    shutil.copytree(pristine, root)
    course = Course.open(root)
    students = sample_class(Path.cwd(), course, [CHAPTER], students=STUDENTS, seed=4, predict=True)
    told: list[str] = []
    results = autograde(
        course,
        CHAPTER,
        jobs=2,
        device="cpu",
        settings=WEAKER,
        progress=lambda result: told.append(result.student),
    )
    return Graded(course, students, results, told)


def gradebook_scores(root: Path) -> dict[str, dict[str, float | None]]:
    """Every auto score in a gradebook, by student and cell."""
    found: dict[str, dict[str, float | None]] = {}
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        for student in gradebook.students:
            for submission in student.submissions:
                for grade in submission.notebooks[0].grades:
                    found.setdefault(student.id, {})[grade.name] = grade.auto_score
    return found


def copy_of(graded: Graded, path: Path, students: list[str], *, plugin: bool = True) -> Path:
    """A course with the same submissions of some students and an empty gradebook."""
    shutil.copytree(
        graded.course.root, path, ignore=shutil.ignore_patterns("autograded", "results", "feedback", "gradebook.db")
    )
    for folder in (path / "submitted").iterdir():
        if folder.name not in students:
            shutil.rmtree(folder)
    config = path / "nbgrader_config.py"
    text = config.read_text(encoding="utf-8")
    if not plugin:
        text = "\n".join(line for line in text.splitlines() if "configure" not in line)
    config.write_text(text, encoding="utf-8")
    return path


def odd(graded: Graded, oddity: str) -> str:
    return next(student.id for student in graded.students if student.chapters[CHAPTER].oddity == oddity)


def test_every_score_in_the_gradebook_is_the_one_predicted(graded: Graded) -> None:
    seen = gradebook_scores(graded.course.root)
    assert len(seen) == STUDENTS
    kinds = set()
    for student in graded.students:
        work = student.chapters[CHAPTER]
        for name, expected in work.exercises.items():
            kinds.add(expected.kind)
            assert seen[student.id][f"test_{name}"] == pytest.approx(expected.score), (student.id, name, expected)
        assert sum(score or 0 for score in seen[student.id].values()) == pytest.approx(work.score)
    assert kinds == {"right", "mistake", "stub", "broken"}, (
        "the class is too tame to prove anything; draw it from another seed"
    )


def test_results_say_what_the_gradebook_says(graded: Graded) -> None:
    seen = gradebook_scores(graded.course.root)
    assert [result.student for result in graded.results] == sorted(seen)
    assert sorted(graded.told) == sorted(seen)
    for result in graded.results:
        for exercise in result.exercises:
            assert seen[result.student][f"test_{exercise.name}"] == exercise.score
            if exercise.verdict is not None:
                assert (exercise.verdict.exercise, exercise.verdict.score) == (exercise.name, exercise.score)
        assert read_result(graded.course, CHAPTER, result.student) == replace(result, unchanged=True)


def test_a_known_mistake_is_named_in_the_results(graded: Graded) -> None:
    results = {result.student: result for result in graded.results}
    named = 0
    for student in graded.students:
        for name, expected in student.chapters[CHAPTER].exercises.items():
            if expected.kind == "mistake" and expected.score < expected.max_score:
                (exercise,) = (item for item in results[student.id].exercises if item.name == name)
                assert exercise.verdict is not None
                named += expected.mistake in [diagnosis.name for diagnosis in exercise.verdict.diagnoses]
    assert named >= 1


def test_a_result_says_which_questions_were_answered(graded: Graded) -> None:
    for student, result in zip(graded.students, graded.results, strict=True):
        answered = bool(student.chapters[CHAPTER].answered)
        assert [(q.name, q.answered) for q in result.questions] == [("question_root", answered)]


def test_a_file_that_is_no_notebook_gets_a_name_and_no_points(graded: Graded) -> None:
    result = next(result for result in graded.results if result.student == odd(graded, "not a notebook"))
    assert result.status == "not gradable"
    assert [problem.kind for problem in result.problems] == ["not a notebook"]
    assert {exercise.score for exercise in result.exercises} == {0.0}


def test_a_submission_without_metadata_is_graded_like_any_other(graded: Graded) -> None:
    result = next(result for result in graded.results if result.student == odd(graded, "stripped"))
    assert result.status == "graded"
    assert [problem.kind for problem in result.problems] == ["metadata restored"]


def test_a_late_submission_is_late_in_nbgraders_eyes(graded: Graded) -> None:
    with GradebookWriter(graded.course, CHAPTER, configured(graded.course)).gradebook() as gradebook:
        assert gradebook.find_submission(CHAPTER, odd(graded, "late")).total_seconds_late > 0
        assert gradebook.find_submission(CHAPTER, odd(graded, "")).total_seconds_late == 0


def test_students_have_their_names_in_the_gradebook(graded: Graded) -> None:
    with GradebookWriter(graded.course, CHAPTER, configured(graded.course)).gradebook() as gradebook:
        for student in graded.students:
            found = gradebook.find_student(student.id)
            assert f"{found.first_name} {found.last_name}" == student.name


def test_what_has_not_changed_is_not_graded_again(graded: Graded, monkeypatch: pytest.MonkeyPatch) -> None:
    again = autograde(graded.course, CHAPTER, device="cpu", make_executor=never)
    assert again == [replace(result, unchanged=True) for result in graded.results]


def never(settings: GradingSettings) -> Any:
    class Never:
        def grade_one(self, submission: Submission) -> Execution:
            raise AssertionError(f"{submission.student} was run again")

        def close(self) -> None:
            pass

    return Never()


@pytest.fixture(scope="module")
def few(graded: Graded) -> list[str]:
    """Students whose submissions are run again in other ways: an odd one, a broken one, an ordinary one."""
    return sorted([odd(graded, "stripped"), odd(graded, "broken cell"), odd(graded, "not a notebook")])


def test_any_number_of_jobs_gives_the_same_bytes_of_results_and_feedback(
    graded: Graded, few: list[str], pristine: Path, tmp_path: Path
) -> None:
    write_feedback(graded.course, CHAPTER, configured(graded.course), students=few)
    expected = written(graded.course.root, few)
    assert len(expected) == 3 * len(few)  # a result, a page, and nbgrader's time stamp
    for jobs in (1, 3):
        root = copy_of(graded, tmp_path / str(jobs), few)
        shutil.copy(pristine / "gradebook.db", root / "gradebook.db")
        results = autograde(Course.open(root), CHAPTER, jobs=jobs, device="cpu", settings=WEAKER)
        write_feedback(Course.open(root), CHAPTER, configured(Course.open(root)))
        assert [(result.student, result.unchanged) for result in results] == [(student, False) for student in few]
        assert written(root, few) == expected


def written(root: Path, students: list[str]) -> dict[str, bytes]:
    """Every byte of results and feedback of some students."""
    found = [path for folder in ("results", "feedback") for path in sorted((root / folder).rglob("*"))]
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in found
        if path.is_file() and {path.stem, *path.parts} & set(students)
    }


def test_nbgrader_itself_gives_the_same_scores(graded: Graded, few: list[str], pristine: Path, tmp_path: Path) -> None:
    root = copy_of(graded, tmp_path / "course", few)
    shutil.copy(pristine / "gradebook.db", root / "gradebook.db")
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", CHAPTER], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    expected = gradebook_scores(graded.course.root)
    assert gradebook_scores(root) == {student: expected[student] for student in few}


def test_stock_nbgrader_gives_the_same_scores_to_an_ordinary_submission(
    graded: Graded, pristine: Path, tmp_path: Path
) -> None:
    ordinary = odd(graded, "")
    root = copy_of(graded, tmp_path / "course", [ordinary], plugin=False)
    shutil.copy(pristine / "gradebook.db", root / "gradebook.db")
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "autograde", CHAPTER], cwd=root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert gradebook_scores(root)[ordinary] == gradebook_scores(graded.course.root)[ordinary]


# What follows runs no kernel.


@dataclass(frozen=True)
class Echo:
    """An executor that runs nothing: every test cell gives one point."""

    def grade_one(self, submission: Submission) -> Execution:
        if submission.student == "unlucky":
            return Execution(submission.student, "", 0.0, "OSError: no space left on device")
        notebook = nbformat.reads(submission.notebook, as_version=4)
        for cell in notebook.cells:
            if cell.metadata.get("nbgrader", {}).get("grade_id", "").startswith("test_"):
                cell.outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "1"}, execution_count=1)]
        return Execution(submission.student, nbformat.writes(notebook), 0.1)

    def close(self) -> None:
        """Hold nothing."""


def echo(settings: GradingSettings) -> Echo:
    return Echo()


Fill = Callable[..., Any]
HandIn = Callable[..., Path]


def test_a_failure_of_the_grader_is_told_and_tried_again(course: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("unlucky", filled())
    hand_in("ann", filled())
    first = autograde(course, CHAPTER, device="cpu", make_executor=echo)
    assert [(result.student, result.status, result.score) for result in first] == [
        ("ann", "graded", 3.0),
        ("unlucky", "not recorded", 0.0),
    ]
    assert "no space left" in first[1].problems[0].what
    again = autograde(course, CHAPTER, device="cpu", make_executor=echo)
    assert [result.unchanged for result in again] == [True, False]


def test_a_submission_that_changed_is_graded_again(course: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("ann", filled())
    hand_in("cem", filled())
    autograde(course, CHAPTER, device="cpu", make_executor=echo)
    hand_in("ann", filled(answer="I know it now."))
    assert [r.unchanged for r in autograde(course, CHAPTER, device="cpu", make_executor=echo)] == [False, True]
    (course.root / "submitted" / "cem" / CHAPTER / "timestamp.txt").write_text("2026-03-01 10:00:00 UTC")
    assert [r.unchanged for r in autograde(course, CHAPTER, device="cpu", make_executor=echo)] == [True, False]
    assert [r.unchanged for r in autograde(course, CHAPTER, device="cpu", make_executor=echo, force=True)] == [
        False,
        False,
    ]


def test_a_grade_of_other_checks_is_kept(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ann", filled())
    autograde(course, CHAPTER, device="cpu", make_executor=echo)
    monkeypatch.setattr("autograder.grading.course_settings.checks_hash", lambda: "another")
    (again,) = autograde(course, CHAPTER, device="cpu", make_executor=never)
    assert again.unchanged
    assert again.provenance.checks not in ("", "another")


def test_what_was_begun_and_not_recorded_is_graded_again_whatever_its_result_says(
    course: Course, filled: Fill, hand_in: HandIn
) -> None:
    hand_in("ann", filled())
    hand_in("ben", filled())
    first = autograde(course, CHAPTER, device="cpu", make_executor=echo)
    with open_journal(course, CHAPTER) as journal:
        journal.begun("ben", first[1].submission)
    assert [r.unchanged for r in autograde(course, CHAPTER, device="cpu", make_executor=echo)] == [True, False]
    assert [r.unchanged for r in autograde(course, CHAPTER, device="cpu", make_executor=never)] == [True, True]
    shutil.rmtree(course.root / "journal")
    assert [r.unchanged for r in autograde(course, CHAPTER, device="cpu", make_executor=echo)] == [False, False]


def test_what_the_gradebook_does_not_have_is_graded_again_whatever_its_result_says(
    course: Course, filled: Fill, hand_in: HandIn
) -> None:
    hand_in("ann", filled())
    older = (course.root / "gradebook.db").read_bytes()
    hand_in("ben", filled())
    autograde(course, CHAPTER, device="cpu", make_executor=echo)
    (course.root / "gradebook.db").write_bytes(older)
    assert [r.unchanged for r in autograde(course, CHAPTER, device="cpu", make_executor=echo)] == [False, False]
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        test = next(
            grade for grade in gradebook.find_submission(CHAPTER, "ann").notebooks[0].grades if grade.auto_score
        )
        test.auto_score -= 0.5
        gradebook.db.commit()
    assert [r.unchanged for r in autograde(course, CHAPTER, device="cpu", make_executor=echo)] == [False, True]
    assert [r.unchanged for r in autograde(course, CHAPTER, device="cpu", make_executor=never)] == [True, True]


def test_a_grade_says_what_it_was_made_with(course: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("ann", filled())
    (result,) = autograde(course, CHAPTER, device="cpu", settings=WEAKER, make_executor=echo)
    made = result.provenance
    assert result.seed == course.secret_seed()
    assert (len(made.checks), made.limits, made.isolation) == (64, WEAKER.limits(), "none")
    assert made.environment["nbgrader"]
    assert (len(result.submission), len(result.source)) == (64, 64)


def test_a_configured_seed_is_taken_and_no_secret_one_is_drawn(course: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("ann", filled())
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("\nc.GradingLimits.seed = 5\n")
    (result,) = autograde(course, CHAPTER, device="cpu", make_executor=echo)
    assert result.seed == 5
    assert not (course.root / "secret_seed").exists()


def test_another_seed_or_another_test_makes_an_old_grade_stale(course: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("ann", filled())
    autograde(course, CHAPTER, device="cpu", make_executor=echo)
    (other,) = autograde(course, CHAPTER, device="cpu", make_executor=echo, settings=GradingSettings(seed=1))
    assert (other.unchanged, other.seed) == (False, 1)
    with GradebookWriter(course, CHAPTER, configured(course)).gradebook() as gradebook:
        gradebook.find_source_cell("test_causal_mask", CHAPTER, CHAPTER).source += "\n# stricter"
        gradebook.db.commit()
    (again,) = autograde(course, CHAPTER, device="cpu", make_executor=echo, settings=GradingSettings(seed=1))
    assert not again.unchanged


def test_points_that_a_person_gave_survive_a_regrade(course: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("ann", filled(answer="Because."))
    autograde(course, CHAPTER, device="cpu", make_executor=echo)
    books = GradebookWriter(course, CHAPTER, configured(course))
    with books.gradebook() as gradebook:
        grade = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ann")
        grade.manual_score, grade.needs_manual_grade = 3, False
        gradebook.db.commit()
    autograde(course, CHAPTER, device="cpu", make_executor=echo, force=True)
    with books.gradebook() as gradebook:
        assert gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ann").manual_score == 3


def test_a_folder_without_its_notebook_gets_zeros_as_in_nbgrader(course: Course, filled: Fill, hand_in: HandIn) -> None:
    hand_in("ann", filled()).rename(course.root / "submitted" / "ann" / CHAPTER / "other.ipynb")
    (result,) = autograde(course, CHAPTER, device="cpu", make_executor=never)
    assert (result.status, result.problems[0].kind, result.max_score) == ("not gradable", "no notebook", 14.0)
    (again,) = autograde(course, CHAPTER, device="cpu", make_executor=never)
    assert again.unchanged
    assert gradebook_scores(course.root)["ann"] == dict.fromkeys(gradebook_scores(course.root)["ann"], 0)


def test_a_submission_of_which_nothing_comes_is_not_passed_over(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ann", filled())
    monkeypatch.setattr("autograder.grading.dispatch.run_concurrently", lambda *arguments, **options: iter(()))
    with pytest.raises(RuntimeError, match="no result for ann"):
        autograde(course, CHAPTER, device="cpu", make_executor=echo)


def lost(settings: GradingSettings) -> Any:
    class Lost(Echo):
        def grade_one(self, submission: Submission) -> Execution:
            done = super().grade_one(submission)
            if submission.student != "ann":
                return done
            notebook = as_ungradable(submission.notebook, "ClosedError")
            return Execution(
                submission.student, notebook, 0.1, "grading it did not come to an end, twice (ClosedError)"
            )

    return Lost()


def test_what_is_lost_in_one_run_may_be_the_machines_fault_and_in_the_next_run_counts(
    course: Course, filled: Fill, hand_in: HandIn
) -> None:
    hand_in("ann", filled())
    hand_in("ben", filled())

    def graded(make_executor: Any) -> list[tuple[str, float]]:
        results = autograde(course, CHAPTER, device="cpu", make_executor=make_executor)
        assert [result.student for result in results] == ["ann", "ben"]
        assert results[1].status == "graded"
        return [(result.status, result.score) for result in results[:1]]

    assert graded(echo) == [("graded", 3.0)]
    hand_in("ann", filled(answer="Another attempt."))
    assert graded(lost) == [("not recorded", 0.0)]
    assert gradebook_scores(course.root)["ann"]["test_causal_mask"] == 0, "the earlier grade was another file's"
    hand_in("ann", filled(answer="And another one."))
    assert graded(lost) == [("not recorded", 0.0)]
    assert graded(lost) == [("not gradable", 0.0)]
    assert gradebook_scores(course.root)["ann"]["test_causal_mask"] == 0
    assert graded(echo) == [("not gradable", 0.0)], "unchanged"


def refuse(patched: pytest.MonkeyPatch, reason: str, *students: str) -> None:
    """Let the database refuse to commit what is about some students."""
    settle, recorded = _Unit.settle, [""]

    def watched(record: Any) -> Any:
        def about(books: GradebookWriter, student: str, *arguments: str) -> Any:
            recorded[0] = student
            try:
                return record(books, student, *arguments)
            finally:
                recorded[0] = ""

        return about

    def commit(session: Any) -> None:
        if recorded[0] in students:
            raise OperationalError("COMMIT", {}, sqlite3.OperationalError(reason))
        settle(session)

    patched.setattr(_Unit, "settle", commit)
    for name in ("record", "record_zero"):
        patched.setattr(GradebookWriter, name, watched(getattr(GradebookWriter, name)))


def test_a_gradebook_that_is_in_use_fails_one_and_stops_nobody(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for student in ("ann", "ben", "cem"):
        hand_in(student, filled())
    (course.root / "submitted" / "ben" / CHAPTER / f"{CHAPTER}.ipynb").unlink()
    with monkeypatch.context() as patched:
        refuse(patched, "database is locked", "ann", "ben")
        results = autograde(course, CHAPTER, device="cpu", make_executor=echo)
    assert [result.status for result in results] == ["not recorded", "not recorded", "graded"]
    assert all("database is locked" in result.problems[0].what for result in results[:2])
    results = autograde(course, CHAPTER, device="cpu", make_executor=echo)
    assert [result.status for result in results] == ["graded", "not gradable", "graded"]


def test_a_disk_that_is_full_ends_the_run_and_keeps_what_was_graded(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    for student in ("ann", "ben", "cem"):
        hand_in(student, filled())
    with monkeypatch.context() as patched:
        refuse(patched, "database or disk is full", "ben")
        with pytest.raises(CourseError, match="disk is full") as caught:
            autograde(course, CHAPTER, device="cpu", make_executor=echo)
    assert "Free some space" in caught.value.do
    results = autograde(course, CHAPTER, device="cpu", make_executor=echo)
    assert [(result.status, result.unchanged) for result in results] == [
        ("graded", True), ("graded", False), ("graded", False),
    ]  # fmt: skip


def test_a_late_penalty_is_nbgraders(course: Course, filled: Fill, hand_in: HandIn) -> None:
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("\nc.LateSubmissionPlugin.penalty_method = 'zero'\n")
    with GradebookWriter(course, CHAPTER, configured(course)).gradebook() as gradebook:
        gradebook.update_or_create_assignment(CHAPTER, duedate="2026-03-01 00:00:00 UTC")
    hand_in("ann", filled()).with_name("timestamp.txt").write_text("2026-03-02 00:00:00 UTC")
    (result,) = autograde(course, CHAPTER, device="cpu", make_executor=echo)
    assert (result.score, result.late_penalty) == (3.0, 3.0)


def test_only_the_students_that_are_asked_for_are_graded(course: Course, filled: Fill, hand_in: HandIn) -> None:
    for student in ("ann", "ben", "cem"):
        hand_in(student, filled())
    results = autograde(course, CHAPTER, students=["cem", "ben"], device="cpu", make_executor=echo)
    assert [(result.student, result.status) for result in results] == [("ben", "graded"), ("cem", "graded")]
    assert [result.student for result in read_results(course, CHAPTER)] == ["ben", "cem"]


@pytest.mark.parametrize(("student", "says"), [("b[e]n", "letters, digits"), ("Con.2", "con or nul")])
def test_an_id_that_no_folder_should_have_is_told_and_stops_nobody(
    course: Course, filled: Fill, hand_in: HandIn, student: str, says: str
) -> None:
    hand_in(student, filled())
    hand_in("zoe", filled())
    results = autograde(course, CHAPTER, device="cpu", make_executor=echo)
    assert [(result.student, result.status) for result in results] == [(student, "not recorded"), ("zoe", "graded")]
    assert results[0].problems[0].kind == "unsafe name"
    assert says in results[0].problems[0].do


def test_what_was_set_aside_for_the_run_is_looked_through_for_garbage_again(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ann", filled())
    frozen: list[int] = []
    monkeypatch.setattr(recorder, "write_result", lambda *about: frozen.append(gc.get_freeze_count()))
    autograde(course, CHAPTER, device="cpu", make_executor=echo)
    assert frozen[0] > 0
    assert gc.get_freeze_count() == 0
    with pytest.raises(CourseError):
        autograde(course, CHAPTER, device="cpu", make_executor=echo, students=["nobody"])
    assert gc.get_freeze_count() == 0


def test_what_nbgrader_refuses_to_record_is_told_and_stops_nobody(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ann", filled())
    hand_in("cem", filled())
    record = GradebookWriter.record

    def refuse(self: GradebookWriter, student: str, executed: Any, settled: Collection[str]) -> Recorded:
        if student == "ann":  # The notebook on the way back is not the one that was sent.
            executed.cells[0].source += "!"
        return record(self, student, executed, settled)

    monkeypatch.setattr(module.GradebookWriter, "record", refuse)
    results = autograde(course, CHAPTER, device="cpu", make_executor=echo)
    assert [result.status for result in results] == ["not recorded", "graded"]
    assert "not the one to be recorded" in results[0].problems[0].what


def test_wrong_wishes_are_refused_with_what_to_do(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.engine.settings.cuda_is_there", lambda: False)
    with pytest.raises(CourseError, match="no submission"):
        autograde(course, CHAPTER, device="cpu")
    hand_in("ann", filled())
    with pytest.raises(CourseError, match=r"no submission for .* by ghost"):
        autograde(course, CHAPTER, students=["ann", "ghost"], device="cpu")
    with pytest.raises(CourseError, match="not released"):
        autograde(course, "99_nothing", device="cpu")
    with pytest.raises(CourseError, match="no CUDA device"):
        autograde(course, CHAPTER, device="cuda")
    with pytest.raises(CourseError, match="0 jobs"):
        autograde(course, CHAPTER, jobs=0, device="cpu")


def test_a_course_without_a_gradebook_gets_none_by_asking(tmp_path: Path) -> None:
    course = Course.open(tmp_path / "new", create=True)
    with pytest.raises(CourseError, match="not released"):
        autograde(course, CHAPTER, device="cpu")
    assert not (course.root / "gradebook.db").exists()


def test_limits_are_those_of_the_courses_configuration(course: Course) -> None:
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("\nc.Execute.timeout = 17\nc.KernelExecute.seed = 5\n")
    assert configured_settings(course) == GradingSettings(cell_seconds=17, exercise_seconds=17, seed=5)
    with (course.root / "nbgrader_config.py").open("a") as config:
        config.write("\nc.GradingLimits.cell_seconds = 18\nc.GradingLimits.memory_mb = 512\n")
    assert configured_settings(course) == GradingSettings(cell_seconds=18, exercise_seconds=17, seed=5, memory_mb=512)


def test_submissions_are_listed_in_order(course: Course, filled: Fill, hand_in: HandIn) -> None:
    for student in ("zoe", "ann"):
        hand_in(student, filled())
    assert submitted_students(course, CHAPTER) == ["ann", "zoe"]


def test_a_sample_class_is_the_same_for_the_same_seed_and_spares_real_submissions(
    course: Course, filled: Fill, hand_in: HandIn
) -> None:
    first = sample_class(Path.cwd(), course, [CHAPTER], students=3, seed=1)
    saved = (course.root / SAVED_AS).read_bytes()
    files = {path: path.read_bytes() for path in course.root.glob("submitted/*/*/*")}
    assert sample_class(Path.cwd(), course, [CHAPTER], students=3, seed=1) == first
    assert (course.root / SAVED_AS).read_bytes() == saved
    assert {path: path.read_bytes() for path in course.root.glob("submitted/*/*/*")} == files

    def done(students: list[SampleStudent], *, predicted: bool) -> list[tuple[str, str]]:
        exercises = [item for student in students for item in student.chapters[CHAPTER].exercises.values()]
        assert {item.score is not None for item in exercises if item.kind == "mistake"} == {predicted}
        assert all(item.score is not None for item in exercises if item.kind != "mistake")
        return [(item.kind, item.mistake) for item in exercises]

    predicted = sample_class(Path.cwd(), course, [CHAPTER], students=3, seed=1, predict=True)
    assert done(predicted, predicted=True) == done(first, predicted=False)
    assert {path: path.read_bytes() for path in course.root.glob("submitted/*/*/*")} == files
    hand_in("real", filled())
    with pytest.raises(CourseError, match="real students here: real"):
        sample_class(Path.cwd(), course, [CHAPTER], students=3)


def test_in_a_class_of_two_chapters_somebody_misses_one(course: Course) -> None:
    made = sample_class(Path.cwd(), course, [CHAPTER, "04_multi_head"], students=5, seed=0)
    missing = [student.id for student in made if student.chapters["04_multi_head"].oddity == "not handed in"]
    assert len(missing) == 1
    assert not (course.root / "submitted" / missing[0] / "04_multi_head").exists()
    assert (course.root / "submitted" / missing[0] / CHAPTER).exists()


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        ("'penalties.PerHour'", "penalties.PerHour"),
        ("'broken_penalties.PerHour'", "invalid syntax"),
        ("'helpless_penalties.PerHour'", "no rate is set"),
    ],
    ids=["not there", "no Python", "cannot be made"],
)
def test_a_penalty_class_that_cannot_be_used_is_one_error_for_the_run_before_anything_is_run(
    course: Course,
    filled: Callable[..., Any],
    hand_in: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    plugin: str,
    said: str,
) -> None:
    (course.root / "broken_penalties.py").write_text("class PerHour(:\n", encoding="utf-8")
    (course.root / "helpless_penalties.py").write_text(
        "from nbgrader.plugins import BasePlugin\n\nclass PerHour(BasePlugin):\n"
        "    def __init__(self, **more):\n        raise ValueError('no rate is set')\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(course.root))
    with (course.root / CONFIG_NAME).open("a", encoding="utf-8") as file:
        file.write(f"\nc.AssignLatePenalties.plugin_class = {plugin}\n")
    for student in ("ann", "ben"):
        hand_in(student, filled())
    executor = Scripted()
    with pytest.raises(CourseError, match=said) as refused:
        autograde(course, CHAPTER, device="cpu", make_executor=executor)
    assert refused.value.where == str(course.root / CONFIG_NAME)
    assert executor.ran == []
    assert read_results(course, CHAPTER) == []


@pytest.mark.parametrize("broken", ["sanitise", "record"])
def test_what_fails_in_two_runs_gets_no_points(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    hand_in("ann", filled())
    hand_in("ben", filled())
    real = getattr(GradebookWriter, broken)

    def refuse(books: GradebookWriter, student: str, *rest: Any, **options: Any) -> Any:
        if student == "ann":
            raise RecordError("RecursionError: maximum recursion depth exceeded", by_submission=True)
        return real(books, student, *rest, **options)

    def statuses() -> list[str]:
        return [result.status for result in autograde(course, CHAPTER, device="cpu", make_executor=echo)]

    assert statuses() == ["graded", "graded"]
    hand_in("ann", filled(answer="Another file."))
    monkeypatch.setattr(GradebookWriter, broken, refuse)
    assert statuses() == ["not recorded", "graded"]
    assert gradebook_scores(course.root)["ann"]["test_causal_mask"] == 0
    assert statuses() == ["not gradable", "graded"]
    assert statuses() == ["not gradable", "graded"], "unchanged"
    assert gradebook_scores(course.root)["ann"]["test_causal_mask"] == 0
    assert gradebook_scores(course.root)["ben"]["test_causal_mask"] == 1
    monkeypatch.setattr(GradebookWriter, broken, real)
    hand_in("ann", filled())
    assert statuses() == ["graded", "graded"]
    assert gradebook_scores(course.root)["ann"]["test_causal_mask"] == 1


def test_a_gradebook_that_fails_costs_nobody_anything(
    course: Course, filled: Fill, hand_in: HandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand_in("ann", filled())
    autograde(course, CHAPTER, device="cpu", make_executor=echo)

    def refuse(*arguments: Any, **options: Any) -> Any:
        raise RecordError("OperationalError: database is locked")

    monkeypatch.setattr(GradebookWriter, "record", refuse)
    for _ in range(3):
        (result,) = autograde(course, CHAPTER, device="cpu", make_executor=echo, force=True)
        assert result.status == "not recorded"
    assert gradebook_scores(course.root)["ann"]["test_causal_mask"] == 1, "the same file"


def test_a_persons_points_for_an_earlier_file_wait_for_another_look(
    course: Course, filled: Fill, hand_in: HandIn
) -> None:
    hand_in("ann", filled(answer="Because."))
    hand_in("ben", filled())
    autograde(course, CHAPTER, device="cpu", make_executor=echo)
    books = GradebookWriter(course, CHAPTER, configured(course))
    with books.gradebook() as gradebook:
        grade = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ann")
        grade.manual_score, grade.needs_manual_grade = 3, False
        gradebook.db.commit()
    hand_in("ann", filled(answer="Another file."))
    autograde(course, CHAPTER, device="cpu", make_executor=lost)
    with books.gradebook() as gradebook:
        grade = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ann")
        assert (grade.manual_score, grade.needs_manual_grade) == (3, True)
