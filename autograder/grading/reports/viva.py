"""Read the grades of conversations about own code, and summarise them for the class report and exports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import mean
from typing import Any

from autograder.course.course_rules import existing_vivas
from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.errors import list_first
from autograder.grading.record.results import ExerciseResult
from autograder.grading.record.viva_journal import Conversation, VivaJournal
from autograder.grading.reports.class_report import StudentWork
from autograder.grading.reports.grades import Grade


def read_viva_grades(course: Course, grades: Sequence[Grade]) -> list[Grade]:
    """Return the grades of the conversations about some chapters, ordered by chapter and student.

    Every student with a grade in a chapter has one. Without a conversation it is missing: ``handed_in`` is False.

    Args:
        grades: the grades in the chapters, from :func:`autograder.grading.reports.grades.read_grades`.
    """
    held: list[Grade] = []
    with open_gradebook(course) as gradebook:
        names = [assignment.name for assignment in gradebook.assignments]
        for name, chapter in sorted(existing_vivas({grade.chapter for grade in grades}, names).items()):
            best = float(gradebook.find_assignment(name).max_score)
            submissions = {one.student_id: one for one in gradebook.assignment_submissions(name)}
            of_chapter = sorted((grade for grade in grades if grade.chapter == chapter), key=lambda one: one.student)
            held += [_viva_grade(grade, name, best, submissions.get(grade.student)) for grade in of_chapter]
    return held


def _viva_grade(of_chapter: Grade, name: str, best: float, submission: Any) -> Grade:
    """Return a conversation's grade, with the student's data copied from the chapter's grade."""
    return replace(
        of_chapter,
        chapter=name,
        moodle_id="",
        submitted=submission.timestamp if submission is not None else None,
        due=None,
        raw=float(submission.score) if submission is not None else 0.0,
        penalty=0.0,
        best=best,
        pending=int(submission is not None and submission.needs_manual_grade),
        handed_in=submission is not None,
        gradable=True,
        has_result=True,
        waits_for="",
        in_place=True,
        handed_in_by="",
        viva=True,
    )


def missing_conversations(grades: Iterable[Grade], form: str) -> list[str]:
    """Return a line per chapter with the students without a conversation, and their value in the file.

    Args:
        grades: the grades of conversations.
        form: the format of the export.
    """
    shown = "empty in the file" if form == "csv" else "not in the file"
    lines = []
    for name, several in groupby(grades, key=lambda grade: grade.chapter):
        absent = [grade.full_name for grade in several if not grade.handed_in]
        if absent:
            lines.append(f"{name}: {len(absent)} had no conversation, {shown}: {list_first(absent)}")
    return lines


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
        """The students who answered at least one question."""
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


def viva_summaries(course: Course, works: Iterable[StudentWork], grades: Iterable[Grade]) -> dict[str, VivaSummary]:
    """Summarise the conversations about each chapter, by chapter.

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
    chapters = existing_vivas(exercises, by_assignment)
    return {
        chapter: _summarise_conversations(
            by_assignment[name], VivaJournal(course, chapter).conversations(), exercises[chapter]
        )
        for name, chapter in chapters.items()
    }


def _summarise_conversations(
    grades: Mapping[str, Grade],
    recorded: Mapping[str, Conversation],
    exercises: Mapping[str, tuple[ExerciseResult, ...]],
) -> VivaSummary:
    conversations = {student: recorded[student] for student in grades if student in recorded}
    differing = (student for student, one in conversations.items() if _is_differing(one, exercises.get(student, ())))
    return VivaSummary(grades, conversations, tuple(differing))


def _is_differing(conversation: Conversation, exercises: Iterable[ExerciseResult]) -> bool:
    """Return whether the student's code has full marks, yet the answers about it are no better than guesses."""
    full = {exercise.name for exercise in exercises if exercise.score >= exercise.max_score}
    return (
        conversation.finished and full.issuperset(conversation.exercises) and conversation.share <= _BY_GUESSING + 1e-9
    )
