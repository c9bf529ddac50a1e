"""Where it is open which of a student's notebooks counts, no score is recorded until a person has chosen."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from click.testing import CliRunner, Result

from autograder.commands.main import main
from autograder.course.folder import Course
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.grading import choose as module
from autograder.grading.autograde import autograde
from autograder.grading.choose import choose
from autograder.grading.plugin import autograder_config
from autograder.grading.record.gradebook_writer import GradebookWriter
from autograder.grading.record.results import GradeResult, Notebook, read_results
from autograder.grading.reports.class_report import read_student_work, summarise_chapters
from autograder.grading.reports.export import export, open_choices_message
from autograder.grading.reports.grades import read_grades
from autograder.intake.downloads.collect import collect

from .conftest import CHAPTER, Fill, HandIn
from .scripted import Scripted, without_workers

POINTS = {"causal_mask": 3.0}
EXECUTOR = Scripted({"ada/a.ipynb": POINTS})


@pytest.fixture
def open_course(course: Course, filled: Fill, hand_in: HandIn, right: dict[str, str]) -> Course:
    """A course in which Ada has two solved notebooks, and Bo one."""
    hand_in("bo", filled(**right))
    for name, answer in (("a", "One."), ("b", "Two.")):
        path = hand_in("ada", filled(answer=answer, **right))
        path.rename(path.with_name(f"{name}.ipynb"))
    return course


def graded(course: Course, executor: Scripted = EXECUTOR) -> dict[str, GradeResult]:
    """Collect what is there, grade it, and return everybody's result."""
    collect(course, CHAPTER)
    results = autograde(course, CHAPTER, device="cpu", settings=GradingSettings(seed=7), make_executor=executor)
    return {result.student: result for result in results}


def exported(course: Course, folder: Path) -> dict[str, str]:
    """Return everybody's score as it is exported."""
    (made,) = export(read_grades(course, [CHAPTER]), "csv", folder)
    return {row["student_id"]: row["score"] for row in csv.DictReader(made.path.open(encoding="utf-8"))}


def test_both_scores_are_told_and_neither_is_recorded(open_course: Course, tmp_path: Path) -> None:
    result = graded(open_course)["ada"]
    assert (result.status, result.score) == ("to decide", 0)
    assert result.notebooks == (Notebook("a.ipynb", 5, 14), Notebook("b.ipynb", 3, 14))
    (problem,) = result.problems
    assert ("a.ipynb (5 of 14" in problem.what, f"choose ada {CHAPTER}" in problem.do) == (True, True)
    executor = Scripted()
    assert graded(open_course, executor)["ada"].unchanged
    assert executor.ran == []
    grades = read_grades(open_course, [CHAPTER])
    assert {grade.student: grade.waits_for for grade in grades} == {"ada": "choice", "bo": ""}
    assert exported(open_course, tmp_path) == {"ada": "", "bo": "3.00"}
    assert "1 submission" in open_choices_message(grades)
    assert [
        (summary.undecided, summary.graded, summary.absent)
        for summary in summarise_chapters(read_student_work(open_course, [CHAPTER]))
    ] == [(("ada",), ("bo",), ())]
    with GradebookWriter(open_course, CHAPTER, autograder_config(open_course)).gradebook() as gradebook:
        assert [s.student_id for s in gradebook.assignment_submissions(CHAPTER)] == ["bo"]


def test_what_was_chosen_counts_and_a_new_choice_undoes_it(open_course: Course, tmp_path: Path) -> None:
    graded(open_course)
    for name, points in (("b.ipynb", 3.0), ("a.ipynb", 5.0)):
        choose(open_course, "ada", CHAPTER, name)
        assert exported(open_course, tmp_path)["ada"] == "", "a choice has no score before it is graded"
        result = graded(open_course, Scripted({"ada": POINTS} if name == "a.ipynb" else {}))["ada"]
        assert (result.status, result.score) == ("graded", points)
        assert exported(open_course, tmp_path)["ada"] == f"{points:.2f}"


@pytest.mark.parametrize("last", ["write_result", "write_journal"])
def test_a_choice_that_is_cut_short_is_made_or_still_open(
    open_course: Course, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, last: str
) -> None:
    graded(open_course)
    choose(open_course, "ada", CHAPTER, "b.ipynb")
    graded(open_course)
    work = getattr(module, last)

    def stopping(*arguments: Any) -> None:
        work(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, last, stopping)
    with pytest.raises(KeyboardInterrupt):
        choose(open_course, "ada", CHAPTER, "a.ipynb")
    monkeypatch.undo()
    assert exported(open_course, tmp_path)["ada"] == ""
    result = graded(open_course, Scripted({"ada": POINTS}))["ada"]
    assert result.status == "graded"
    name = "b.ipynb" if last == "write_result" else "a.ipynb"
    folder = open_course.folder("submitted", "ada", CHAPTER)
    assert (folder / f"{CHAPTER}.ipynb").read_bytes() == (folder / name).read_bytes()


def test_the_same_download_leaves_a_choice_and_another_notebook_opens_it(
    open_course: Course, tmp_path: Path, filled: Fill, hand_in: HandIn, right: dict[str, str]
) -> None:
    download = tmp_path / "download"
    for student in ("ada", "bo"):
        shutil.copytree(open_course.folder("submitted", student, CHAPTER), download / student)
    graded(open_course)
    choose(open_course, "ada", CHAPTER, "b.ipynb")
    graded(open_course)
    assert collect(open_course, CHAPTER, download).unchanged == ["ada", "bo"]
    assert graded(open_course)["ada"].unchanged
    shutil.copy(download / "bo" / f"{CHAPTER}.ipynb", download / "ada" / "c.ipynb")
    assert collect(open_course, CHAPTER, download).replaced == ["ada"]
    result = graded(open_course)["ada"]
    assert [notebook.file for notebook in result.notebooks] == ["a.ipynb", "b.ipynb", "c.ipynb"]
    later = hand_in("ada", filled(answer="Three.", **right)).read_bytes()
    assert graded(open_course)["ada"].status == "graded"
    assert (open_course.folder("submitted", "ada", CHAPTER) / f"{CHAPTER}.ipynb").read_bytes() == later


@pytest.mark.parametrize(
    ("student", "file"), [("ada", "c.ipynb"), ("ada", "../b.ipynb"), ("bo", "a.ipynb"), ("zoe", "a")]
)
def test_what_cannot_be_chosen_is_refused_and_changes_nothing(
    open_course: Course, snapshot: Callable[[Path], dict[str, str]], student: str, file: str
) -> None:
    graded(open_course)
    before = snapshot(open_course.root)
    with pytest.raises(CourseError):
        choose(open_course, student, CHAPTER, file)
    assert snapshot(open_course.root) == before


def test_the_commands_say_what_is_to_decide_and_end_with_1_until_somebody_chooses(
    open_course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_workers(monkeypatch, EXECUTOR)

    def run(*words: str) -> Result:
        return CliRunner().invoke(main, [*words, "--course", str(open_course.root)], catch_exceptions=False)

    done = run("autograde", CHAPTER, "--device", "cpu", "--jobs", "1")
    assert (done.exit_code, "to decide: ada" in done.stdout) == (1, True)
    assert "to decide: ada" in run("report", CHAPTER).stdout
    done = run("export", CHAPTER)
    assert (done.exit_code, "to decide: 1 submission" in done.stdout) == (1, True)
    assert run("choose", "ada", CHAPTER, "b.ipynb", "--device", "cpu", "--jobs", "1").exit_code == 0
    assert run("export", CHAPTER).exit_code == 0
    assert {result.student: result.score for result in read_results(open_course, CHAPTER)} == {"ada": 3, "bo": 3}
    (open_course.folder("submitted", "bo", CHAPTER) / f"{CHAPTER} (conflicted copy 2026-11-02).ipynb").write_text("{}")
    done = run("autograde", CHAPTER, "--device", "cpu", "--jobs", "1")
    assert (done.exit_code, "conflicted copy" in done.stdout) == (1, True), "a person has to say which version counts"


@pytest.fixture
def two_attempts(course: Course, tmp_path: Path, filled: Fill, right: dict[str, str]) -> Path:
    """A download in which Ada's second notebook solves more, and counts."""
    folder = tmp_path / "downloads" / "Ada_5_assignsubmission_file_"
    folder.mkdir(parents=True)
    nbformat.write(filled(answer="One."), folder / "first.ipynb")
    nbformat.write(filled(answer="Two.", **right), folder / "second.ipynb")
    nbformat.write(filled(**right), tmp_path / "other.ipynb")
    return folder.parent


def test_the_other_notebook_of_a_download_can_be_taken(course: Course, tmp_path: Path, two_attempts: Path) -> None:
    first, second = (
        (two_attempts / "Ada_5_assignsubmission_file_" / f"{name}.ipynb").read_bytes() for name in ("first", "second")
    )
    path = course.folder("submitted", "ada", CHAPTER) / f"{CHAPTER}.ipynb"
    (problem,) = collect(course, CHAPTER, two_attempts).problems
    assert path.read_bytes() == second
    assert f"choose ada {CHAPTER} first.ipynb --course {course.root}" in problem.do
    path.with_name("timestamp.txt").write_text("2026-10-24 18:00:00 UTC")
    choose(course, "ada", CHAPTER, "first.ipynb")
    assert path.read_bytes() == first
    assert path.with_name("timestamp.txt").read_text() == "2026-10-24 18:00:00 UTC"
    # The same download brings the same notebook.
    (problem,) = collect(course, CHAPTER, two_attempts).problems
    assert "first.ipynb" in problem.what
    assert path.read_bytes() == first
    choose(course, "ada", CHAPTER, "second.ipynb")
    assert path.read_bytes() == second
    choose(course, "ada", CHAPTER, "before.ipynb")
    assert path.read_bytes() == first
    # Another notebook ends what was taken.
    shutil.copy(tmp_path / "other.ipynb", two_attempts / "Ada_5_assignsubmission_file_" / f"{CHAPTER}.ipynb")
    collect(course, CHAPTER, two_attempts)
    assert path.read_bytes() == (tmp_path / "other.ipynb").read_bytes()
