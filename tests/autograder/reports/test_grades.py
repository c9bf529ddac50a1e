"""Grades and works are what gradebook, list of students and results say together."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading.record.results import ExerciseResult, GradeResult, write_result
from autograder.grading.reports.class_report import read_student_work
from autograder.grading.reports.grades import read_grades
from autograder.intake.notebook.problem import Problem
from autograder.intake.people.enrol import enrol

CHAPTER, OTHER = "04_multi_head", "03_scaled_dot_product"
ROSTER = {
    "ada": {"name": "Ada King Lovelace", "platform": "canvas", "user": "901"},
    "bo": {"name": "Bo Diallo", "platform": "moodle", "uploads": {CHAPTER: "5512"}, "participants": {OTHER: "7001"}},
}


@pytest.fixture
def course(course_dir: Path) -> Course:
    """A course with three students; two have handed in the second chapter."""
    course = Course.open(course_dir)
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        gradebook.add_student("ada")
        gradebook.add_student("bo", first_name="Bo", last_name="D.", lms_user_id="77")
        gradebook.add_student("cy", first_name="Cy", email="cy@example.org", lms_user_id="903")
        for student, points in (("ada", 3.0), ("bo", 1.0)):
            gradebook.add_submission(CHAPTER, student)
            (grade,) = gradebook.find_submission_notebook(CHAPTER, CHAPTER, student).grades
            grade.auto_score = points
        gradebook.find_submission_notebook(CHAPTER, CHAPTER, "bo").late_submission_penalty = 1.5
        gradebook.db.commit()
    (course_dir / "students.json").write_text(json.dumps(ROSTER), encoding="utf-8")
    return course


def class_list(course: Course, tmp_path: Path, *lines: str) -> None:
    """Read a class list into the course."""
    path = tmp_path / "class.csv"
    path.write_text("\n".join(["id,name,email", *lines]), encoding="utf-8")
    enrol(course, path)


def test_a_class_of_whom_nobody_handed_in_has_grades(course_dir: Path, tmp_path: Path) -> None:
    course = Course.open(course_dir)
    class_list(course, tmp_path, "ada,Ada,")
    assert [(grade.student, grade.handed_in) for grade in read_grades(course, [CHAPTER])] == [("ada", False)]


def test_names_are_the_class_lists_then_the_gradebooks_then_those_of_the_download(
    course: Course, tmp_path: Path
) -> None:
    ada, bo, cy = read_grades(course, [CHAPTER])
    assert (ada.first_name, ada.last_name) == ("Ada King", "Lovelace")
    assert (bo.first_name, bo.last_name) == ("Bo", "D.")
    assert (cy.full_name, cy.email) == ("Cy", "cy@example.org")
    class_list(course, tmp_path, "bo,Bo Diop,bo@example.org")
    (bo,) = read_grades(course, [CHAPTER])
    assert (bo.full_name, bo.email) == ("Bo Diop", "bo@example.org")


def test_numbers_belong_to_their_platform_and_moodles_to_the_chapter(course: Course) -> None:
    numbers = {(grade.student, grade.chapter): (grade.canvas_id, grade.moodle_id) for grade in read_grades(course)}
    assert (numbers["bo", CHAPTER], numbers["bo", OTHER]) == (("", ""), ("", "7001")), "a download may have a team's"
    # Written into the gradebook by the lecturer.
    assert numbers["cy", CHAPTER] == ("903", "")


def test_a_chapter_that_is_not_in_the_gradebook_is_refused(course: Course) -> None:
    with pytest.raises(CourseError, match=OTHER):
        read_grades(course, ["05_transformer"])


def result(student: str, **about: object) -> GradeResult:
    """Return a result of grading."""
    exercise = ExerciseResult("split_heads", 3.0, 3.0)
    return GradeResult(student, CHAPTER, **{"status": "graded", "exercises": (exercise,), "seconds": 1.5, **about})


def test_a_student_whom_the_grader_failed_on_is_there_although_the_gradebook_does_not_know_them(course: Course) -> None:
    problem = Problem("grader failed", "The disk was full.")
    write_result(course, result("dee", status="not recorded", exercises=(), problems=(problem,)))
    assert [work.grade.student for work in read_student_work(course, [CHAPTER])] == ["ada", "bo", "cy"], (
        "its folder was renamed"
    )
    course.folder("submitted", "dee", CHAPTER).mkdir(parents=True)
    *_, dee = read_student_work(course, [CHAPTER])
    assert (dee.grade.student, dee.grade.handed_in, dee.recorded) == ("dee", True, False)
    assert dee.problems == ("The disk was full.",)
    assert dee.grade.best == 3.0


def test_what_could_not_be_graded_says_so_until_a_person_has_given_points(course: Course) -> None:
    problem = Problem("PDF", "This is a PDF.", fatal=True)
    write_result(course, result("ada", status="not gradable", problems=(problem,)))
    ada, bo, _ = read_student_work(course, [CHAPTER])
    assert (ada.grade.gradable, ada.graded, ada.exercises, ada.seconds) == (False, False, (), None)
    assert bo.graded
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        (grade,) = gradebook.find_submission_notebook(CHAPTER, CHAPTER, "ada").grades
        grade.manual_score = 0.0
        gradebook.db.commit()
    ada, *_ = read_student_work(course, [CHAPTER])
    assert ada.graded


def test_a_members_lateness_is_taken_off_the_points_before_the_submitters(course: Course, tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("id,name,group\nbo,Bo,T\ndee,Dee,T\n", encoding="utf-8")
    enrol(course, tmp_path / "groups.csv")
    (course.root / "course.toml").write_text(
        f"[late]\nper_day = 0.25\n[chapters.{CHAPTER}]\ngroups = true\ndue = 2026-03-20T12:00:00\n"
        f"[deadlines.dee]\n{CHAPTER} = 2026-03-19T12:00:00\n",
        encoding="utf-8",
    )
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        gradebook.find_submission(CHAPTER, "bo").timestamp = datetime(2026, 3, 21, 11)
        gradebook.find_submission_notebook(CHAPTER, CHAPTER, "bo").late_submission_penalty = 0.25
        gradebook.db.commit()
    scores = {grade.student: grade.score for grade in read_grades(course, [CHAPTER])}
    assert scores == {"bo": 0.75, "dee": 0.5}
