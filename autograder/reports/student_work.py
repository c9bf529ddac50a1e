"""Combine grades and grading results per student and chapter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.enrolment.standing import counts_for
from autograder.gradebook.reader import open_gradebook
from autograder.record.results import ExerciseResult, GradeResult, read_results
from autograder.reports.class_report import Work
from autograder.reports.grades import Grade, read_grades
from autograder.reports.rubric_counts import points_by_hand
from autograder.roster.roster import read_roster


def read_student_work(course: Course, chapters: Sequence[str] = ()) -> list[Work]:
    """Return every student's work in every chapter.

    Args:
        course: the course.
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
    works = [
        _group_work(course, grade, results.get((grade.handed_in_by, grade.chapter)))
        if grade.handed_in_by
        else _work(course, grade, results.get((grade.student, grade.chapter)))
        for grade in grades
    ]
    # If the grader failed on a student's first submission, the gradebook does not know the student. If the submission is gone, too, the
    # student was renamed or removed from the course.
    for grade in grades:
        results.pop((grade.student, grade.chapter), None)
    patterns = {grade.chapter: grade for grade in grades}
    roster = read_roster(course)
    plan = read_course_file(course.root)
    unknown = [
        result
        for result in results.values()
        if course.folder("submitted", result.student, result.chapter).is_dir()
        and counts_for(roster, result.student, result.chapter, plan, handed_in=True)
    ]
    works += [
        replace(_work(course, _unknown(patterns[result.chapter], result), result), recorded=False) for result in unknown
    ]
    return works


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
    if result is None:
        return Work(grade, recorded=grade.gradable is not None, feedback=page)
    gradable = result.status != "not gradable"
    return Work(
        grade=replace(grade, handed_in=True),
        # If nothing could be graded, the zeros are no measure of learning.
        exercises=result.exercises if gradable else (),
        seconds=(result.seconds or None) if gradable else None,
        problems=tuple(str(problem) for problem in result.problems if not problem.remark),
        remarks=tuple(str(problem) for problem in result.problems if problem.remark),
        recorded=result.status != "not recorded",
        feedback=page,
    )


def _group_work(course: Course, grade: Grade, result: GradeResult | None) -> Work:
    """Return a group's work as that of a member who did not hand it in; its problems stand with the member who did."""
    page = _existing(course.folder("feedback", grade.handed_in_by, grade.chapter) / f"{grade.chapter}.html")
    return replace(_work(course, grade, result), seconds=None, problems=(), remarks=(), feedback=page)


def _unknown(pattern: Grade, result: GradeResult) -> Grade:
    return Grade(
        student=result.student,
        first_name="",
        last_name="",
        email="",
        platform="",
        canvas_id="",
        moodle_id="",
        chapter=result.chapter,
        submitted=None,
        due=pattern.due,
        raw=0.0,
        penalty=0.0,
        best=pattern.best,
        pending=0,
        handed_in=True,
    )


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None
