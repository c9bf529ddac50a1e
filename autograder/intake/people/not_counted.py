"""List who is in no average, total or export, and why: withdrawn, ignored or excused, joined later, or not on the class list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.course.course_file import CourseFile, read_course_file
from autograder.course.folder import Course
from autograder.intake.people.attendance import Attendance, attendance
from autograder.intake.people.standing import is_excused
from autograder.intake.people.strangers import is_stranger
from autograder.intake.roster import read_roster


@dataclass(frozen=True)
class NotCounted:
    """A student, or the id of a submission, with the chapters that do not count."""

    student: str  # the id
    name: str  # the name; the id if it is unknown
    chapters: tuple[str, ...]
    reason: str  # why they do not count
    is_decided: bool = True  # False for a stranger, about whom a person has still to decide

    def to_dict(self) -> dict[str, Any]:
        """Return this as plain data, ready for JSON."""
        return {"student": self.student, "name": self.name, "chapters": self.chapters, "reason": self.reason}


def not_counted(course: Course, chapters: Iterable[str]) -> list[NotCounted]:
    """Return who does not count in some chapters, ordered by id.

    Args:
        chapters: names of chapters.
    """
    roster, plan, names = read_roster(course), read_course_file(course.root), sorted(chapters)
    entries = []
    for entry in attendance(course):
        student, handed_in = entry.student, [chapter for chapter in names if chapter in entry.chapters]
        if is_stranger(student.id, roster):
            reasons = [(handed_in, "not on the class list", False)]
        elif student.state == "ignored":
            reasons = [(handed_in, "ignored: not a student", True)]
        elif student.state:
            reasons = [(names, student.state, True)]
        else:
            reasons = [(several, reason, True) for several, reason in _excused(entry, names, plan)]
        entries += [
            NotCounted(student.id, student.name or student.id, tuple(several), reason, decided)
            for several, reason, decided in reasons
            if several
        ]
    return entries


def _excused(entry: Attendance, chapters: Sequence[str], plan: CourseFile) -> Iterator[tuple[list[str], str]]:
    """Yield the chapters from which a student of the class list is excused, by reason."""
    student = entry.student
    if student.enrolled:
        yield [chapter for chapter in chapters if chapter in student.excused], "excused"
        before = [
            chapter
            for chapter in chapters
            if chapter not in student.excused
            and is_excused(student, chapter, plan.due(chapter, student.id), handed_in=chapter in entry.chapters)
        ]
        yield before, f"joined on {student.joined}, after the deadline"
