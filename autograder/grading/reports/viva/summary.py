"""Summarize the conversations about each chapter for the class report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import mean
from typing import Any

from autograder.course.course_rules import vivas_of
from autograder.course.folder import Course
from autograder.grading.record.results import ExerciseResult
from autograder.grading.record.viva_journal import Conversation, VivaJournal
from autograder.grading.reports.class_report import Work
from autograder.grading.reports.grades import Grade

# The share of right answers that guessing gives.
_BY_GUESSING = 0.25


@dataclass(frozen=True)
class VivaSummary:
    """The conversations about one chapter."""

    grades: Mapping[str, Grade]  # the grade of every student who counts, by student
    conversations: Mapping[str, Conversation]  # what was answered, by student
    # students with full marks for the code that the questions are about, whose answers are no better than guesses
    differing: tuple[str, ...]

    @property
    def held(self) -> tuple[str, ...]:
        """The students who have answered at least one question."""
        return tuple(student for student, grade in self.grades.items() if grade.handed_in)

    @property
    def missing(self) -> tuple[str, ...]:
        """The students without a conversation."""
        return tuple(student for student, grade in self.grades.items() if not grade.handed_in)

    @property
    def average(self) -> float:
        """The average share of the points, from 0 to 1, without missing conversations."""
        shares = [self.grades[student].score / self.grades[student].best for student in self.held]
        return mean(shares) if shares else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain data, ready for JSON."""
        return {
            "points": {student: self.grades[student].score for student in self.held},
            "missing": self.missing,
            "average": self.average,
            "differing": self.differing,
        }


def viva_summaries(course: Course, works: Iterable[Work], grades: Iterable[Grade]) -> dict[str, VivaSummary]:
    """Return a summary for each chapter with conversations, by chapter.

    Args:
        works: the students' work in the chapters.
        grades: the grades of conversations.
    """
    by_assignment: dict[str, dict[str, Grade]] = {}
    for grade in grades:
        by_assignment.setdefault(grade.chapter, {})[grade.student] = grade
    exercises: dict[str, dict[str, tuple[ExerciseResult, ...]]] = {}
    for work in works:
        exercises.setdefault(work.grade.chapter, {})[work.grade.student] = work.exercises
    chapters = vivas_of(exercises, by_assignment)
    return {
        chapter: _summary(by_assignment[name], VivaJournal(course, chapter).conversations(), exercises[chapter])
        for name, chapter in chapters.items()
    }


def _summary(
    grades: Mapping[str, Grade],
    recorded: Mapping[str, Conversation],
    exercises: Mapping[str, tuple[ExerciseResult, ...]],
) -> VivaSummary:
    conversations = {student: recorded[student] for student in grades if student in recorded}
    differing = (student for student, one in conversations.items() if _differs(one, exercises.get(student, ())))
    return VivaSummary(grades, conversations, tuple(differing))


def _differs(conversation: Conversation, exercises: Iterable[ExerciseResult]) -> bool:
    """Return whether the code that the questions are about has full marks and the answers are no better than guesses."""
    full = {exercise.name for exercise in exercises if exercise.score >= exercise.max_score}
    return (
        conversation.finished and full.issuperset(conversation.exercises) and conversation.share <= _BY_GUESSING + 1e-9
    )
