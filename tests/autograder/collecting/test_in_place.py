"""A folder that is put into ``submitted/`` by hand is its student's, however the id is spelled there."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.course.folder import Course
from autograder.intake.downloads.in_place import rename_folders
from autograder.intake.roster import Student, write_roster

CHAPTER, OTHER = "03_scaled_dot_product", "07_decoding"


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """A course with a class list of two."""
    course = Course(tmp_path)
    people = [
        Student("ADA01", "Ada Berg", email="ada@uni.example", enrolled=True),
        Student("dee", "Dee Eck", login="de99", enrolled=True),
        Student("guest", "Guest"),
    ]
    write_roster(course, {student.id: student for student in people})
    return course


def put(course: Course, student: str, chapter: str = CHAPTER) -> None:
    """Make a folder with a notebook that names the folder."""
    folder = course.root / "submitted" / student / chapter
    folder.mkdir(parents=True)
    (folder / f"{chapter}.ipynb").write_text(student)


def folders(course: Course, chapter: str = CHAPTER) -> dict[str, str]:
    return {path.parents[1].name: path.read_text() for path in course.root.glob(f"submitted/*/{chapter}/*.ipynb")}


def test_other_chapters_stay_until_it_is_their_turn(course: Course) -> None:
    put(course, "ada01")
    put(course, "ada01", OTHER)
    rename_folders(course, CHAPTER)
    assert (folders(course), folders(course, OTHER)) == ({"ADA01": "ada01"}, {"ada01": "ada01"})
    rename_folders(course, OTHER)
    assert not (course.root / "submitted" / "ada01").exists()


def test_what_is_graded_under_an_id_keeps_it_and_is_named(course: Course) -> None:
    put(course, "ada01")
    (course.root / "results" / CHAPTER).mkdir(parents=True)
    (course.root / "results" / CHAPTER / "ada01.json").write_text("{}")
    (problem,) = rename_folders(course, CHAPTER)
    assert folders(course) == {"ada01": "ada01"}
    assert "graded" in problem.what
