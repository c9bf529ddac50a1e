"""Give and undo marks: write the journal, then update the gradebook rows that the marker saw in one transaction."""

from __future__ import annotations

import logging
import secrets
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime

from nbgrader.api import Comment, Grade, Gradebook
from sqlalchemy import Connection, update

from autograder.course.authoring.rubrics import Rubric
from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.errors import CourseError
from autograder.grading.late_work import charge_students
from autograder.grading.plugin import autograder_config
from autograder.grading.record.marks_journal import Change, Entry, MarksJournal, MarkState, Ticks
from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.questions import Answer, Question
from autograder.marking.rubric_ticks import moves_version, rubric_moves

logger = logging.getLogger(__name__)


class StaleMarkError(CourseError):
    """An answer or its mark has changed since the marker saw it."""


@dataclass(frozen=True)
class MarkResult:
    """The result of giving a mark."""

    entry: Entry  # its entry in the journal
    answers: Mapping[str, Answer]  # the answers with what was written, by student
    waiting: int  # how many answers to the question wait now


@dataclass(frozen=True)
class UndoResult:
    """The result of an undo: its entry, None if no mark could be undone, and the students whose marks changed since."""

    entry: Entry | None
    skipped: tuple[str, ...]


class Marks:
    """Writes the marks of a chapter. Each call opens the gradebook once and reads the question once.

    Args:
        course: the course.
        chapter: the chapter's full name.
        marker: the marker's name, for the journal.
    """

    def __init__(self, course: Course, chapter: str, marker: str) -> None:
        self.course, self.chapter, self.marker = course, chapter, marker
        self.journal = MarksJournal(course)
        self.reader = ChapterReader(course, chapter)

    def give(
        self,
        name: str,
        versions: Mapping[str, str],
        points: float | None,
        comment: str,
        ticks: Ticks | None = None,
    ) -> MarkResult:
        """Give points and a comment to the answers of some students.

        The points of code go to its test cell, the comment to its solution cell; an answer in words has one cell for both.

        Args:
            name: the grade id of the answer cell.
            versions: per student the :attr:`Answer.version` that the marker has seen.
            points: the points, from 0 to the question's maximum; None keeps the current points.
            comment: the comment; an empty one removes it.
            ticks: the rubric with its ticked items; empty for points without a rubric. None keeps the ticks if the points are kept.

        Raises:
            StaleMarkError: if an answer or its mark has changed since it was shown. Then nothing is changed.
            CourseError: if the question does not exist, or the points exceed its maximum.
        """
        with self._open_question(name) as (gradebook, question):
            if points is not None and not 0 <= points <= question.points:
                raise CourseError(f"{points:g} points are not between 0 and {question.points:g}")
            answers = {answer.student: answer for answer in question.answers}
            unchanged = {
                student for student, version in versions.items() if _answer_version(answers, student) == version
            }
            if len(unchanged) < len(versions):
                raise _stale_error(len(versions) - len(unchanged))
            changes = {}
            for student in versions:
                before, old_ticks = answers[student].state, answers[student].ticks
                waits = before.waiting and points is None
                new_points = before.points if points is None else float(points)
                after = MarkState(new_points, waits, comment.strip() or None)
                stays = points is None or (ticks is None and points == before.points)
                changes[student] = Change(before, after, old_ticks, old_ticks if stays else ticks or None)
            entry = self._write_changes(gradebook, question, changes)
        now = {
            student: replace(answers[student], state=change.after, ticks=change.ticks_after)
            for student, change in changes.items()
        }
        return MarkResult(entry, now, sum(answer.is_open for answer in (answers | now).values()))

    def undo(self, entry_id: str) -> UndoResult:
        """Undo an entry for every student whose mark has not changed since.

        Raises:
            CourseError: if the journal of the chapter has no such entry.
        """
        entry = next((entry for entry in self.history() if entry.id == entry_id), None)
        if entry is None:
            raise CourseError(f"there is no mark {entry_id!r} to undo", where=self.journal.path)
        with self._open_question(entry.question) as (gradebook, question):
            current = {student: (answer.state, answer.ticks) for student, answer in _read_all_answers(question).items()}
            changes = {
                student: change.inverse()
                for student, change in entry.changes.items()
                if current.get(student) == (change.after, change.ticks_after)
            }
            undone = self._write_changes(gradebook, question, changes, undoes=entry_id) if changes else None
        return UndoResult(undone, tuple(student for student in entry.changes if student not in changes))

    def apply_rubric(self, name: str, rubric: Rubric | None, version: str) -> tuple[Entry, int]:
        """Apply a changed rubric's points to marked answers, as one journal entry.

        Args:
            name: the grade id of the answer cell.
            rubric: the rubric now.
            version: the :func:`~autograder.marking.rubric_ticks.moves_version` of what the marker has seen.

        Returns:
            The entry, and how many answers have other points now.

        Raises:
            StaleMarkError: if the rubric, an answer or its mark has changed since it was shown. Then nothing is changed.
        """
        with self._open_question(name) as (gradebook, question):
            moves = rubric_moves(question, rubric)
            if not moves or version != moves_version(moves):
                raise StaleMarkError("the rubric or a mark has changed", do="Reload the page.")
            changes = {
                move.answer.student: Change(
                    move.answer.state, replace(move.answer.state, points=move.points), move.answer.ticks, move.ticks
                )
                for move in moves
            }
            return self._write_changes(gradebook, question, changes, reason="rubric"), sum(
                move.changes_points for move in moves
            )

    def history(self) -> list[Entry]:
        """Return the chapter's committed journal entries, oldest first."""
        return [entry for entry in self.journal.entries()[0] if entry.chapter == self.chapter]

    def answers_by_marker(self) -> dict[str, int]:
        """Return the number of answers that each marker marked last.

        An undo restores the previous marker; points that a changed rubric sets are not counted as a mark.
        """
        entries = {entry.id: entry for entry in self.history()}
        marks: dict[tuple[str, str], list[str]] = defaultdict(list)
        for entry in entries.values():
            mark, takes_back = entry, False
            while mark.undoes in entries:
                mark, takes_back = entries[mark.undoes], not takes_back
            for student in entry.changes if not mark.reason else ():
                markers = marks[entry.question, student]
                if takes_back:
                    del markers[-1:]
                else:
                    markers.append(mark.marker)
        return dict(sorted(Counter(markers[-1] for markers in marks.values() if markers).items()))

    def recover(self) -> None:
        """Complete the journal after a crash: commit unfinished entries that reached the gradebook, abort the rest."""
        unfinished = [entry for entry in self.journal.entries()[1] if entry.chapter == self.chapter]
        for entry in unfinished:
            with self._open_question(entry.question) as (_, question):
                answers = _read_all_answers(question)
            written = any(
                student in answers and answers[student].state == change.after != change.before
                for student, change in entry.changes.items()
            )
            (self.journal.commit if written else self.journal.abort)(entry.id)

    @contextmanager
    def _open_question(self, name: str) -> Iterator[tuple[Gradebook, Question]]:
        """Yield the open gradebook and a question as the gradebook has it."""
        with open_gradebook(self.course, for_changes=True) as gradebook:
            question = self.reader.question(name, gradebook)
            if question is None:
                raise CourseError(f"there is no question {name!r} in {self.chapter}")
            yield gradebook, question

    def _write_changes(
        self,
        gradebook: Gradebook,
        question: Question,
        changes: Mapping[str, Change],
        undoes: str = "",
        reason: str = "",
    ) -> Entry:
        time = datetime.now().astimezone().isoformat(timespec="seconds")
        entry = Entry(secrets.token_hex(6), time, self.marker, self.chapter, question.name, changes, undoes, reason)
        answers = _read_all_answers(question)
        self.journal.begin(entry)
        # Whether a commit that failed has arrived is not certain; `recover` asks the gradebook.
        connection = gradebook.db.connection()
        stale = [
            student for student, change in changes.items() if not write_state(connection, answers[student], change)
        ]
        if stale:
            gradebook.db.rollback()
            self.journal.abort(entry.id)
            raise _stale_error(len(stale))
        gradebook.db.commit()
        self.journal.commit(entry.id)
        self._update_penalties(gradebook, list(changes))
        return entry

    def _update_penalties(self, gradebook: Gradebook, students: list[str]) -> None:
        """Update the late penalties of some students to their new points.

        The mark is kept even if this fails: report, export and autograde update the penalties again and report the
        error.

        The mark is kept whatever happens here: report, export and autograde charge late work again, and say what is wrong.
        """
        try:
            charge_students(gradebook, self.course, self.chapter, students, autograder_config(self.course))
        except Exception as error:
            logger.warning("The penalties for late work wait for the next report or export: %s", error)


def _read_all_answers(question: Question) -> dict[str, Answer]:
    """Return all answers to a question by student, because a mark can be undone after its answer left the page."""
    return {answer.student: answer for answer in (*question.answers, *question.others)}


def write_state(connection: Connection, answer: Answer, change: Change) -> bool:
    """Update an answer's two gradebook rows if they still hold the state before the change; return whether they did.

    The condition is part of the update, so that two writers cannot both see the old state and both write.
    """
    before, after = change.before, change.after
    grade = (
        update(Grade)
        .where(Grade.id == answer.grade_id)
        .where(Grade.manual_score.is_not_distinct_from(before.points), Grade.needs_manual_grade == before.waiting)
        .values(manual_score=after.points, needs_manual_grade=after.waiting)
    )
    comment = (
        update(Comment)
        .where(Comment.id == answer.comment_id, Comment.manual_comment.is_not_distinct_from(before.comment))
        .values(manual_comment=after.comment)
    )
    return all(connection.execute(statement).rowcount == 1 for statement in (grade, comment))


def _answer_version(answers: Mapping[str, Answer], student: str) -> str | None:
    return answers[student].version if student in answers else None


def _stale_error(number: int) -> StaleMarkError:
    count = f"{number} of these answers" if number > 1 else "this answer"
    return StaleMarkError(
        f"{count} or the mark has changed since the page showed it", do="Reload, look at it again, and give the mark."
    )
