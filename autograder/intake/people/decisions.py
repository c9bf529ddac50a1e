"""Write what a person decided about a student into the roster: added, withdrawn, ignored, excused, joined later."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.roster import Student, read_roster, write_roster


def add(course: Course, student: str) -> Student:
    """Put a student on the class list, or take one back who had withdrawn or was ignored."""
    return _change(course, student, lambda entry: replace(entry, enrolled=True, state=""))


def withdraw(course: Course, student: str) -> Student:
    """Take a student out of averages, totals, exports and the list of missing work. Submissions and grades are kept.

    Raises:
        CourseError: if the student is not on the class list.
    """
    return _change(course, _listed(course, student), lambda entry: replace(entry, state="withdrawn"))


def ignore(course: Course, student: str) -> Student:
    """Say that a submission is not a student's, such as a test account's.

    Raises:
        CourseError: if it is the submission of a student on the class list.
    """
    if read_roster(course).get(student, Student(student)).enrolled:
        raise CourseError(
            f"{student} is on the class list", do=f"To take a student out of the class: --withdraw {student}"
        )
    return _change(course, student, lambda entry: replace(entry, state="ignored"))


def excuse(course: Course, student: str, chapter: str, *, excused: bool = True) -> Student:
    """Let a chapter not count for a student, or count again.

    Raises:
        CourseError: if the student is not on the class list.
    """
    chapters = {*read_roster(course).get(student, Student(student)).excused} - {chapter} | (
        {chapter} if excused else set()
    )
    return _change(course, _listed(course, student), lambda entry: replace(entry, excused=tuple(sorted(chapters))))


def decide(course: Course, student: str, chapter: str, decision: tuple[float, str] | None) -> Student:
    """Give points to a student's work in a chapter, with the reason; ``None`` takes them back."""
    return _change(
        course,
        student,
        lambda entry: replace(
            entry,
            decided={name: other for name, other in entry.decided.items() if name != chapter}
            | ({} if decision is None else {chapter: decision}),
        ),
    )


def join(course: Course, student: str, day: date | None) -> Student:
    """Say on which day a student joined the class; ``None`` for the first.

    Raises:
        CourseError: if the student is not on the class list.
    """
    text = day.isoformat() if day else ""
    return _change(course, _listed(course, student), lambda entry: replace(entry, joined=text))


def _listed(course: Course, student: str) -> str:
    if not read_roster(course).get(student, Student(student)).enrolled:
        raise CourseError(f"{student} is not on the class list", do=f"Put the student there first: --add {student}")
    return student


def _change(course: Course, student: str, change: Callable[[Student], Student]) -> Student:
    roster = read_roster(course)
    entry = change(roster.get(student, Student(student)))
    write_roster(course, {**roster, student: entry})
    return entry
