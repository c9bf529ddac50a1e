"""Read the grades of conversations about own code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from autograder.course.course_rules import vivas_of
from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.errors import some
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
        for name, chapter in sorted(vivas_of({grade.chapter for grade in grades}, names).items()):
            best = float(gradebook.find_assignment(name).max_score)
            submissions = {one.student_id: one for one in gradebook.assignment_submissions(name)}
            of_chapter = sorted((grade for grade in grades if grade.chapter == chapter), key=lambda one: one.student)
            held += [_grade(grade, name, best, submissions.get(grade.student)) for grade in of_chapter]
    return held


def _grade(of_chapter: Grade, name: str, best: float, submission: Any) -> Grade:
    """Return the grade of a conversation, with the name, address and platform of the chapter's grade."""
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
    """Return, for each chapter with conversations, who has had none, and what the file has in their place.

    Args:
        grades: the grades of conversations.
        form: the format of the export.
    """
    shown = "empty in the file" if form == "csv" else "not in the file"
    lines = []
    for name, several in groupby(grades, key=lambda grade: grade.chapter):
        absent = [grade.full_name for grade in several if not grade.handed_in]
        if absent:
            lines.append(f"{name}: {len(absent)} had no conversation, {shown}: {some(absent)}")
    return lines
