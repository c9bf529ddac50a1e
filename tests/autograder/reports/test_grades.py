"""Grades and works are what gradebook, list of students and results say together."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.course.folder import Course
from autograder.enrolment.enrol import enrol
from autograder.errors import CourseError
from autograder.record.results import ExerciseResult, GradeResult, write_result
from autograder.reports.class_report import summarise
from autograder.reports.export import export
from autograder.reports.grades import read_grades
from autograder.reports.report_page import render
from autograder.reports.student_work import read_student_work
from autograder.submission.problem import Problem

CHAPTER, OTHER = "04_multi_head", "03_scaled_dot_product"
ROSTER = {
    "ada": {"name": "Ada King Lovelace", "platform": "canvas", "user": "901"},
    "bo": {"name": "Bo Diallo", "platform": "moodle", "uploads": {CHAPTER: "5512", OTHER: "7001"}},
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


def test_every_student_has_a_grade_in_every_chapter_in_order(course: Course) -> None:
    grades = read_grades(course)
    assert [(grade.chapter, grade.student) for grade in grades] == [
        (chapter, student) for chapter in (OTHER, CHAPTER) for student in ("ada", "bo", "cy")
    ]
    assert [grade.handed_in for grade in grades] == [False, False, False, True, True, False]


def class_list(course: Course, tmp_path: Path, *lines: str) -> None:
    """Read a class list into the course."""
    path = tmp_path / "class.csv"
    path.write_text("\n".join(["id,name,email", *lines]), encoding="utf-8")
    enrol(course, path)


def test_the_class_list_says_who_is_missing(course: Course, tmp_path: Path) -> None:
    class_list(course, tmp_path, "ada,Ada King Lovelace,", 'dee,"de la Cruz, Íñigo",dee@example.org')
    grades = read_grades(course)
    # Bo handed in and is not on the list: a stranger has no grade until a person decides.
    assert [(grade.chapter, grade.student, grade.handed_in) for grade in grades] == [
        (OTHER, "ada", False),
        (OTHER, "dee", False),
        (CHAPTER, "ada", True),
        (CHAPTER, "dee", False),
    ]
    dee = grades[-1]
    assert (dee.first_name, dee.last_name, dee.email) == ("Íñigo", "de la Cruz", "dee@example.org")
    assert (dee.score, dee.best, dee.submitted) == (0.0, 3.0, None)


def test_a_class_of_whom_nobody_handed_in_has_grades(course_dir: Path, tmp_path: Path) -> None:
    course = Course.open(course_dir)
    class_list(course, tmp_path, "ada,Ada,")
    assert [(grade.student, grade.handed_in) for grade in read_grades(course, [CHAPTER])] == [("ada", False)]


def test_a_group_has_the_grade_of_its_member(course: Course, tmp_path: Path) -> None:
    problem = Problem("late", "It came late.")
    write_result(course, result("ada", problems=(problem,)))
    write_result(course, result("bo"))
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        (answer,) = gradebook.find_submission_notebook(CHAPTER, CHAPTER, "ada").grades
        answer.needs_manual_grade = True
        gradebook.db.commit()
    path = tmp_path / "class.csv"
    path.write_text("id,name,group\nada,Ada,Team 1\nbo,Bo,\ndee,Dee Dee,team 1\neve,Eve,\n", encoding="utf-8")
    enrol(course, path)
    assert [grade.handed_in for grade in read_grades(course, [CHAPTER])] == [True, True, False, False]
    (course.root / "course.toml").write_text(f"[chapters.{CHAPTER}]\ngroups = true\n", encoding="utf-8")
    ada, _, dee, eve = read_student_work(course, [CHAPTER])
    assert (dee.grade.full_name, dee.grade.score, dee.grade.handed_in_by, dee.graded) == ("Dee Dee", 3.0, "ada", True)
    assert (dee.exercises, dee.problems, ada.problems) == (ada.exercises, (), ("It came late.",))
    assert (ada.grade.pending, dee.grade.pending) == (1, 0), "one answer waits"
    assert (eve.grade.handed_in, eve.grade.handed_in_by) == (False, "")
    (summary,) = summarise([ada, dee, eve])
    assert (summary.absent, summary.graded) == (("eve",), ("ada", "dee"))
    assert render([summary], title="Class", folder=tmp_path).count("for the group") == 1
    (file,) = export(read_grades(course, [CHAPTER]), "csv", tmp_path)
    assert file.path.read_text(encoding="utf-8").count('"3.0","0.0","3.0","3.0"') == 2


def test_a_members_grade_goes_to_the_platform_on_which_the_group_handed_in(course: Course, tmp_path: Path) -> None:
    people = {
        "ada": {**ROSTER["ada"], "uploads": {CHAPTER: "5001"}, "group": "T", "enrolled": True},
        # A grading worksheet of Moodle for another chapter has made her one of Moodle's.
        "dee": {
            "name": "Dee",
            "platform": "moodle",
            "user": "902",
            "uploads": {OTHER: "8"},
            "group": "T",
            "enrolled": True,
        },
    }
    (course.root / "students.json").write_text(json.dumps(people), encoding="utf-8")
    (course.root / "course.toml").write_text(f"[chapters.{CHAPTER}]\ngroups = true\n", encoding="utf-8")
    (file,) = export(read_grades(course, [CHAPTER]), "canvas", tmp_path)
    assert file.students == ("ada", "dee")
    assert '"902"' in file.path.read_text(encoding="utf-8")


def test_names_are_the_gradebooks_where_it_has_them_else_those_of_the_download(course: Course) -> None:
    ada, bo, cy = read_grades(course, [CHAPTER])
    assert (ada.first_name, ada.last_name) == ("Ada King", "Lovelace")
    assert (bo.first_name, bo.last_name) == ("Bo", "D.")
    assert (cy.full_name, cy.email) == ("Cy", "cy@example.org")


def test_numbers_belong_to_their_platform_and_moodles_to_the_chapter(course: Course) -> None:
    numbers = {(grade.student, grade.chapter): (grade.canvas_id, grade.moodle_id) for grade in read_grades(course)}
    assert numbers["ada", CHAPTER] == ("901", "")
    assert numbers["bo", CHAPTER] == ("", "5512")
    assert numbers["bo", OTHER] == ("", "7001")
    # Written into the gradebook by the lecturer.
    assert numbers["cy", CHAPTER] == ("903", "")


def test_a_chapter_that_is_not_in_the_gradebook_is_refused(course: Course) -> None:
    with pytest.raises(CourseError, match="it has: 03_scaled_dot_product, 04_multi_head"):
        read_grades(course, ["05_transformer"])


def result(student: str, **about: object) -> GradeResult:
    """Return a result of grading."""
    exercise = ExerciseResult("split_heads", 3.0, 3.0)
    return GradeResult(student, CHAPTER, **{"status": "graded", "exercises": (exercise,), "seconds": 1.5, **about})


def test_a_work_has_its_exercises_its_time_and_its_page(course: Course) -> None:
    write_result(course, result("ada"))
    page = course.folder("feedback", "ada", CHAPTER) / f"{CHAPTER}.html"
    page.parent.mkdir(parents=True)
    page.touch()
    ada, bo, _ = read_student_work(course, [CHAPTER])
    assert ([exercise.name for exercise in ada.exercises], ada.seconds, ada.feedback) == (["split_heads"], 1.5, page)
    # Graded by nbgrader alone: a grade, and nothing else is known.
    assert (bo.exercises, bo.seconds, bo.recorded, bo.grade.handed_in) == ((), None, True, True)


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
    problem = Problem("not a notebook", "This is a PDF.", fatal=True)
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


def test_a_remark_is_not_among_the_problems_of_a_work(course: Course) -> None:
    found = (Problem("metadata restored", "All 19 cells.", remark=True), Problem("timeout", "It was stopped."))
    write_result(course, result("ada", problems=found))
    ada, *_ = read_student_work(course, [CHAPTER])
    assert (ada.problems, ada.remarks) == (("It was stopped.",), ("All 19 cells.",))
