"""The grades of a course, read from its gradebook as nbgrader counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from nbgrader.api import Gradebook, MissingEntry

from autograder.course import Course
from autograder.errors import CourseError


@dataclass(frozen=True)
class Grade:
    """One student's grade in one chapter.

    Attributes:
        student: the student's id in the course folder.
        first_name: as the gradebook has it, or empty.
        last_name: as the gradebook has it, or empty.
        email: as the gradebook has it, or empty.
        platform_id: the student's id on the learning platform, or empty.
        chapter: the chapter.
        submitted: when, or None if nothing was handed in.
        due: when it was due, or None.
        raw: points before the penalty for lateness.
        penalty: points taken off for lateness.
        best: points that could be earned.
        pending: whether a manual question still waits for its points.
        handed_in: whether there is a submission.
    """

    student: str
    first_name: str
    last_name: str
    email: str
    platform_id: str
    chapter: str
    submitted: datetime | None
    due: datetime | None
    raw: float
    penalty: float
    best: float
    pending: bool
    handed_in: bool

    @property
    def score(self) -> float:
        """Points after the penalty, never below zero."""
        return max(0.0, self.raw - self.penalty)

    @property
    def full_name(self) -> str:
        """First and last name, or the id where there is none."""
        return f"{self.first_name} {self.last_name}".strip() or self.student


def read_grades(course: Course, chapters: Sequence[str] = ()) -> list[Grade]:
    """Return the grades of every student in every chapter, ordered by chapter and student.

    Args:
        course: the course.
        chapters: only these; all released chapters by default.

    Raises:
        CourseError: if a chapter is not in the gradebook, or the gradebook is empty.
    """
    with Gradebook(course.gradebook_url) as gradebook:
        known = sorted(assignment.name for assignment in gradebook.assignments)
        if not known:
            raise CourseError(
                "the gradebook has no chapter yet", where=course.root, do="Release one first: tfcourse assign CHAPTER"
            )
        for chapter in chapters:
            if chapter not in known:
                raise CourseError(
                    f"chapter {chapter!r} is not in the gradebook; it has: {', '.join(known)}", where=course.root
                )
        students = sorted(gradebook.students, key=lambda student: student.id)
        return [_grade(gradebook, chapter, student) for chapter in (chapters or known) for student in students]


def _grade(gradebook: Gradebook, chapter: str, student: Any) -> Grade:
    assignment = gradebook.find_assignment(chapter)
    try:
        submission = gradebook.find_submission(chapter, student.id)
    except MissingEntry:
        submission = None
    return Grade(
        student=student.id,
        first_name=student.first_name or "",
        last_name=student.last_name or "",
        email=student.email or "",
        platform_id=student.lms_user_id or "",
        chapter=chapter,
        submitted=submission.timestamp if submission else None,
        due=assignment.duedate,
        raw=float(submission.score) if submission else 0.0,
        penalty=float(submission.late_submission_penalty or 0.0) if submission else 0.0,
        best=float(assignment.max_score),
        pending=bool(submission.needs_manual_grade) if submission else False,
        handed_in=submission is not None,
    )
