"""Determine whether a chapter counts for a student: not if the student has withdrawn, is excused, or joined after it was due."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime

from autograder.course.course_file import CourseFile
from autograder.intake.roster import Student


def is_excused(student: Student, chapter: str, due: datetime | None, *, handed_in: bool = False) -> bool:
    """Return whether a chapter does not count for a student, who is on the class list.

    Args:
        due: the student's deadline in the course's time zone, or None.
        handed_in: whether there is work. Work of a student who joined later counts; work of an excused student does not.
    """
    if chapter in student.excused:
        return True
    if not student.joined or due is None or handed_in:
        return False
    return due.date() < date.fromisoformat(student.joined)


def counts_for(roster: Mapping[str, Student], student: str, chapter: str, plan: CourseFile, *, handed_in: bool) -> bool:
    """Return whether a student has a grade in a chapter.

    With a class list, only its students have one. Without a list, everybody has one who is in the gradebook.

    Args:
        roster: the students that the course knows.
        plan: the contents of ``course.toml``.
        handed_in: whether there is work of the student, or of the student's group.
    """
    entry = roster.get(student, Student(student))
    has_list = any(other.enrolled for other in roster.values())
    if entry.state or (has_list and not entry.enrolled):
        return False
    return not is_excused(entry, chapter, plan.due(chapter, student), handed_in=handed_in)
