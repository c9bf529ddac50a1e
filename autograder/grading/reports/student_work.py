"""Combine grades and grading results per student and chapter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.grading.record.results import ExerciseResult, GradeResult, read_results
from autograder.grading.reports.class_report import Work
from autograder.grading.reports.grades import Grade, read_grades
from autograder.grading.reports.rubric_counts import points_by_hand


def read_student_work(course: Course, chapters: Sequence[str] = ()) -> list[Work]:
    """Return every student's work in every chapter.

    Args:
        chapters: only these; all released chapters by default.

    Raises:
        CourseError: if a chapter is not in the gradebook, or the gradebook cannot be read.
    """
    grades = read_grades(course, chapters)
    results = {
        (result.student, result.chapter): result
        for chapter in dict.fromkeys(grade.chapter for grade in grades)
        for result in _with_points_by_hand(course, chapter, read_results(course, chapter))
    }
    return [
        _group_work(course, grade, results.get((grade.handed_in_by, grade.chapter)))
        if grade.handed_in_by
        else _work(course, grade, results.get((grade.student, grade.chapter)))
        for grade in grades
    ]


def _with_points_by_hand(course: Course, chapter: str, results: Iterable[GradeResult]) -> list[GradeResult]:
    """Return results in which manual points replace the points of the check."""
    with open_gradebook(course) as gradebook:
        points = points_by_hand(gradebook, chapter, waiting=True)

    def replaced(student: str, exercise: ExerciseResult) -> ExerciseResult:
        return replace(exercise, score=points.get((f"test_{exercise.name}", student), exercise.score))

    return [
        replace(result, exercises=tuple(replaced(result.student, exercise) for exercise in result.exercises))
        for result in results
    ]


def _work(course: Course, grade: Grade, result: GradeResult | None) -> Work:
    page = _existing(course.folder("feedback", grade.student, grade.chapter) / f"{grade.chapter}.html")
    if grade.decision:
        return Work(grade, remarks=(f"Decided by hand: {grade.decision}",), feedback=page)
    if result is None:
        return Work(grade, recorded=grade.gradable is not None and not grade.not_yet, feedback=page)
    gradable = result.status != "not gradable"
    return Work(
        grade=replace(grade, handed_in=True),
        # If nothing could be graded, the zeros are no measure of learning.
        exercises=result.exercises if gradable else (),
        seconds=(result.seconds or None) if gradable else None,
        problems=tuple(str(problem) for problem in result.problems if not problem.remark),
        remarks=tuple(str(problem) for problem in result.problems if problem.remark),
        recorded=result.status != "not recorded" and not grade.not_yet,
        feedback=page,
    )


def _group_work(course: Course, grade: Grade, result: GradeResult | None) -> Work:
    """Return a group's work as that of a member who did not hand it in; its problems stand with the member who did."""
    page = _existing(course.folder("feedback", grade.handed_in_by, grade.chapter) / f"{grade.chapter}.html")
    return replace(_work(course, grade, result), seconds=None, problems=(), remarks=(), feedback=page)


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None
