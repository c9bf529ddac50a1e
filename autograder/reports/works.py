"""Grades and the results of grading, put together per student and chapter."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.course import Course
from autograder.grading.results import GradeResult, read_results
from autograder.reports.class_report import Work
from autograder.reports.grades import Grade, read_grades


def read_works(course: Course, chapters: Sequence[str] = ()) -> list[Work]:
    """Return every student's work in every chapter.

    Args:
        course: the course.
        chapters: only these; all released chapters by default.

    Raises:
        CourseError: if a chapter is not in the gradebook, or the gradebook is empty.
    """
    grades = read_grades(course, chapters)
    results = {
        (result.student, result.chapter): result
        for chapter in dict.fromkeys(grade.chapter for grade in grades)
        for result in read_results(course, chapter)
    }
    return [_work(course, grade, results.get((grade.student, grade.chapter))) for grade in grades]


def _work(course: Course, grade: Grade, result: GradeResult | None) -> Work:
    page = course.folder("feedback", grade.student, grade.chapter) / f"{grade.chapter}.html"
    if result is None:
        return Work(grade, feedback=page if page.is_file() else None)
    return Work(
        grade=grade,
        verdicts=tuple(exercise.verdict for exercise in result.exercises if exercise.verdict is not None),
        seconds=result.seconds,
        problems=tuple(str(problem) for problem in result.problems),
        feedback=page if page.is_file() else None,
    )
