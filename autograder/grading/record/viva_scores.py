"""Write the scores of conversations to the gradebook, as a separate assignment.

The gradebook is derived from the journal, and can be written again at any time. Points that a person has given in the formgrader stay.
A student without an answer has no submission: the conversation is missing, and does not count as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nbgrader.api import Assignment, Grade, InvalidEntry, Notebook, Student, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from autograder.course.course_rules import viva_assignment
from autograder.course.folder import Course
from autograder.course.gradebook.nbgrader_log import silence_warnings
from autograder.course.gradebook.transactions import TransactionalGradebook
from autograder.course.known_errors import as_course_error
from autograder.errors import CourseError
from autograder.grading.record.viva_journal import Conversation, VivaJournal

# The names of the notebook and of its only cell with points, of which no chapter has any.
_NOTEBOOK = _CELL = "viva"


def write_viva_scores(course: Course, chapter: str) -> None:
    """Update the gradebook to the recorded answers about a chapter; without answers, do nothing.

    Args:
        chapter: the chapter's full name.

    Raises:
        CourseError: if the journal is damaged, the gradebook cannot be written, or it has another assignment of that name.
    """
    recorded = VivaJournal(course, chapter).conversations()
    if not recorded:
        return
    begun = {student: conversation for student, conversation in recorded.items() if conversation.begun}
    book = TransactionalGradebook(course.gradebook_url, course.config().CourseDirectory.get("course_id", ""))
    try:
        with silence_warnings(), book:
            _write_scores(book, viva_assignment(chapter), begun)
    except (SQLAlchemyError, InvalidEntry) as error:
        raise as_course_error(error, course.gradebook_url) or _gradebook_error(course, error) from error
    finally:
        book.dispose()


def _write_scores(book: TransactionalGradebook, name: str, begun: Mapping[str, Conversation]) -> None:
    best = max((conversation.question_count for conversation in begun.values()), default=1)
    _make_assignment(book, name, best)
    # A student who was removed from the gradebook stays away.
    students = set(book.db.scalars(select(Student.id)))
    for student in (begun.keys() & students) - _read_grades(book, name).keys():
        book.add_submission(name, student)
    for student, (submission, grade) in _read_grades(book, name).items():
        if student in begun:
            _update_grade(submission, grade, begun[student], best)
        elif grade.manual_score is None:  # every answer was taken back
            book.remove_submission(name, student)
    book.db.commit()


def _update_grade(submission: Any, grade: Any, conversation: Conversation, best: int) -> None:
    submission.timestamp = datetime.fromisoformat(conversation.time).astimezone(UTC).replace(tzinfo=None)
    grade.auto_score = best * conversation.share
    grade.needs_manual_grade = not conversation.finished


def _make_assignment(book: TransactionalGradebook, name: str, points: int) -> None:
    assignment = book.update_or_create_assignment(name)
    if any(notebook.name != _NOTEBOOK for notebook in assignment.notebooks):
        raise CourseError(
            f"the gradebook has an assignment {name} that is not the chapter's conversations",
            do=f"Rename it: tfcourse stores the answers of conversations under {name}.",
        )
    book.update_or_create_notebook(_NOTEBOOK, name)
    book.update_or_create_grade_cell(_CELL, _NOTEBOOK, name, max_score=points, cell_type="code")


def _read_grades(book: TransactionalGradebook, name: str) -> dict[str, tuple[Any, Any]]:
    """Return the submission and grade rows of every student, in one query."""
    query = (
        select(SubmittedAssignment, Grade)
        .join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        .join(Grade, Grade.notebook_id == SubmittedNotebook.id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .join(Assignment, Assignment.id == Notebook.assignment_id)
        .where(Assignment.name == name)
    )
    return {submission.student_id: (submission, grade) for submission, grade in book.db.execute(query)}


def _gradebook_error(course: Course, error: Exception) -> CourseError:
    return CourseError(
        f"the answers are recorded, but not yet in the gradebook ({error})",
        where=course.gradebook_url,
        do="They are written with the next answer, and by tfcourse report and export.",
    )
