"""A course that an earlier version wrote goes on: nothing is graded silently by other points, and what people decided stays.

`courses/version-0.1.0.tar.xz` is a course folder as version 0.1.0 left it, journal and results included: chapter 04 released, four
students of `sample-class` graded, one answer marked by a person, one exercise with extra credit. The students' package is left out.
"""

from __future__ import annotations

import csv
import json
import sqlite3
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from autograder.authoring.chapter import find_chapter
from autograder.commands.main import main
from autograder.course.folder import Course
from autograder.grading.released_points import current_points
from autograder.marking.marks import Marks
from autograder.marking.questions import read_questions
from autograder.record.results import read_results
from autograder.release import student_build

from .conftest import PROJECT

CHAPTER = "04_multi_head"
ARCHIVE = Path(__file__).parent / "courses" / "version-0.1.0.tar.xz"


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The old course, with a students' package in it."""
    root = tmp_path / "course"
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(root, filter="data")
    monkeypatch.setattr(student_build, "_recordings", lambda root, chapter: {})
    student_build.build_student_wheel(PROJECT, find_chapter(PROJECT, CHAPTER), root / "student" / CHAPTER)
    monkeypatch.chdir(PROJECT)
    return root


def run(course: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "--course", str(course)])


def decided(course: Path) -> list[tuple[str, float | None, float | None]]:
    """What people entered: marks by hand and extra credit."""
    with sqlite3.connect(course / "gradebook.db") as gradebook:
        return gradebook.execute(
            "select cell_id, manual_score, extra_credit from grade where manual_score is not null or extra_credit > 0 order by cell_id"
        ).fetchall()


def everything(course: Path) -> dict[str, bytes]:
    """All files of a course but its package."""
    paths = (path for path in course.rglob("*") if path.is_file() and "student" not in path.relative_to(course).parts)
    return {str(path.relative_to(course)): path.read_bytes() for path in paths}


def test_nothing_is_graded_by_other_points_before_they_are_taken_over(course: Path) -> None:
    before = everything(course)
    refused = run(course, "autograde", CHAPTER, "--allow-weaker-isolation")
    assert refused.exit_code == 2, refused.output
    assert f"points of {CHAPTER} changed from " in refused.stderr
    assert "--new-points" in refused.stderr
    assert everything(course) == before


def test_the_new_points_are_taken_over_and_what_people_decided_stays(course: Path) -> None:
    marks, before = decided(course), everything(course)
    assert len(marks) == 2
    dry = run(
        course, "regrade", CHAPTER, "--new-points", "--dry-run", "--allow-weaker-isolation", "--jobs", "1", "--json"
    )
    assert dry.exit_code == 0, dry.output
    assert everything(course) == before
    moved = run(course, "regrade", CHAPTER, "--new-points", "--allow-weaker-isolation", "--jobs", "1")
    assert moved.exit_code == 0, moved.output
    assert "3 moved, 1 stayed" in moved.stdout
    (preview,) = json.loads(dry.stdout)
    scores = {result.student: result.score for result in read_results(Course.open(course), CHAPTER)}
    assert {move["student"]: move["after"] for move in preview["moved"]} == {
        move["student"]: scores[move["student"]] for move in preview["moved"]
    }
    assert (len(preview["moved"]), preview["stayed"]) == (3, 1)
    assert decided(course) == marks
    with sqlite3.connect(course / "gradebook.db") as gradebook:
        worth = dict(
            gradebook.execute(
                "select base_cell.name, max_score from grade_cells join base_cell on base_cell.id = grade_cells.id where max_score > 0"
            ).fetchall()
        )
    for name, points in current_points(PROJECT, CHAPTER).items():
        assert worth[f"test_{name}"] == points
    again = run(course, "autograde", CHAPTER, "--allow-weaker-isolation", "--jobs", "1")
    assert again.exit_code == 0, again.output
    assert "3 of them earlier and unchanged" in again.stdout


def test_old_results_can_be_marked_reported_and_exported(
    course: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.commands.mark.asyncio.run", lambda page: page.close())
    opened = run(course, "mark", CHAPTER, "--no-browser")
    assert opened.exit_code == 0, opened.output
    assert "cannot be read" not in opened.stderr
    questions = read_questions(Course.open(course), CHAPTER)
    question = next(question for question in questions if question.waiting)
    versions = {answer.student: answer.version for answer in question.answers if answer.state.waiting}
    before = exported(course, tmp_path / "before")
    Marks(Course.open(course), CHAPTER, "a marker").give(question.name, versions, 1.5, "")
    after = exported(course, tmp_path / "after")
    assert {student: after[student] - before[student] for student in after} == {
        student: 1.5 * (student in versions) for student in after
    }
    report = run(course, "report", CHAPTER)
    assert report.exit_code == 0, report.output


def exported(course: Path, folder: Path) -> dict[str, float]:
    """Export grades and return the points of each student."""
    done = run(course, "export", CHAPTER, "--to", str(folder))
    assert done.exit_code == 0, done.output
    with (folder / "grades.csv").open(encoding="utf-8") as file:
        return {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
