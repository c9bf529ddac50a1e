"""The work of a stranger becomes a student's, with the points that a person gave, and nothing is overwritten."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nbgrader.api import Gradebook, MissingEntry

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading.reassign import reassign
from autograder.intake.roster import read_roster

CHAPTER, OTHER = "04_multi_head", "03_scaled_dot_product"
ROSTER = {
    "ada-spoilt": {"name": "Ad_", "platform": "moodle", "uploads": {CHAPTER: "41"}},
    "ada": {"name": "Ada", "platform": "canvas", "user": "901", "uploads": {OTHER: "7"}, "enrolled": True},
    "bo": {"name": "Bo", "platform": "", "user": "", "uploads": {}, "enrolled": True},
}


@pytest.fixture
def course(course_dir: Path) -> Course:
    """A course in which a stranger has a grade, a point given by hand, a page and a result."""
    course = Course.open(course_dir)
    (course_dir / "students.json").write_text(
        json.dumps({n: {"uploads": {}, "user": "", **e} for n, e in ROSTER.items()})
    )
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        gradebook.add_student("ada-spoilt")
        gradebook.add_submission(CHAPTER, "ada-spoilt")
        (grade,) = gradebook.find_submission_notebook(CHAPTER, CHAPTER, "ada-spoilt").grades
        grade.manual_score = 2.0
        gradebook.db.commit()
    for path in ("submitted/ada-spoilt", "feedback/ada-spoilt", "autograded/ada-spoilt"):
        (course_dir / path / CHAPTER).mkdir(parents=True)
    (course_dir / "submitted/ada-spoilt" / CHAPTER / f"{CHAPTER}.ipynb").write_text("{}")
    (course_dir / "results" / CHAPTER).mkdir(parents=True)
    (course_dir / "results" / CHAPTER / "ada-spoilt.json").write_text("{}")
    return course


def test_the_work_and_its_points_become_the_students(course: Course) -> None:
    assert reassign(course, "ada-spoilt", "ada") == [CHAPTER]
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        (grade,) = gradebook.find_submission_notebook(CHAPTER, CHAPTER, "ada").grades
        assert grade.manual_score == 2.0
        with pytest.raises(MissingEntry):
            gradebook.find_student("ada-spoilt")
    assert (course.folder("submitted", "ada", CHAPTER) / f"{CHAPTER}.ipynb").read_text() == "{}"
    left = [path for path in course.root.rglob("*ada-spoilt*") if path.exists()]
    assert left == []
    ada = read_roster(course)["ada"]
    assert (ada.name, ada.user, ada.uploads) == ("Ada", "901", {OTHER: "7", CHAPTER: "41"})
    assert (ada.find_platform(OTHER), ada.find_platform(CHAPTER)) == ("canvas", "moodle")
    assert "ada-spoilt" not in read_roster(course)


def test_work_of_the_student_is_not_overwritten(course: Course) -> None:
    folder = course.folder("submitted", "ada", CHAPTER)
    folder.mkdir(parents=True)
    with pytest.raises(CourseError, match=f"handed in {CHAPTER}, too"):
        reassign(course, "ada-spoilt", "ada")
    assert course.folder("submitted", "ada-spoilt", CHAPTER).is_dir()
    assert "ada-spoilt" in read_roster(course)


def test_only_a_stranger_gives_and_only_a_listed_student_takes(course: Course) -> None:
    with pytest.raises(CourseError, match="Bo"):
        reassign(course, "bo", "ada")
    with pytest.raises(CourseError, match=r"Ad_ \(ada-spoilt\) is not on the class list"):
        reassign(course, "eve", "ada-spoilt")
