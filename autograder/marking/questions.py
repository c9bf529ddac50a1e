"""Define questions with their answers, and read each answer's gradebook entries."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nbgrader.api import Assignment as ReleasedAssignment
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    Notebook,
    SolutionCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import select

from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.grading.record.marks_journal import GivenTicks, MarkState, RubricTick, cached_ticks
from autograder.marking.behaviour_groups import BehaviourGroup, CodeAnswer


@dataclass(frozen=True)
class Answer:
    """One student's answer to a question."""

    student: str
    text: str  # the answer, Markdown or code
    attachments: Any  # the cell's attachments
    state: MarkState  # its entries in the gradebook
    grade_id: str  # the id of its row among the grades; for code, the row of the test cell
    comment_id: str  # the id of its row among the comments; for code, the row of the solution cell
    code: CodeAnswer | None = None  # the check's result for code that lost points; None for an answer in words
    # the rubric with which the points were given; None for points without a rubric
    ticks: tuple[RubricTick, ...] | None = None

    @property
    def version(self) -> str:
        """A hash of what the marker sees: the answer's text and images, its mark, and the check's result for code."""
        verdict = [self.code.score, self.code.failed_rows, self.code.message] if self.code else []
        pictures = [self.attachments] if self.attachments else []
        ticks = [tick.to_json() for tick in self.ticks or ()]
        contents = json.dumps([self.text, self.state.to_json(), *verdict, *pictures, *ticks], sort_keys=True)
        return hashlib.sha256(contents.encode()).hexdigest()[:16]

    @property
    def is_open(self) -> bool:
        """Whether the answer waits for marking.

        nbgrader requires it, or it is code that lost points and has neither manual points nor a comment.
        """
        untouched = self.code is not None and self.state.points is None and self.state.comment is None
        return self.state.waiting or untouched


@dataclass(frozen=True)
class Question:
    """A question that is answered in words, or an exercise that is answered with code."""

    name: str  # the grade id of the answer cell: ``question_<topic>``, or an exercise's name
    title: str  # the heading of the prompt
    prompt: str  # the prompt without that heading, Markdown; empty if it is unknown
    points: float  # what the question is worth
    answers: tuple[Answer, ...] = ()  # the answers to mark, by student; for code, only answers that lost points
    blanks: int = 0  # the number of blank answers, which get 0 points
    others: tuple[Answer, ...] = ()  # the other answers in the gradebook; their marks can be undone
    is_code: bool = False  # whether it is answered with code
    groups: tuple[BehaviourGroup, ...] = ()  # code answers that behave alike, most lost points first
    stub: str = ""  # what students start from
    reference: str = ""  # the reference solution of an exercise; empty if it is unknown
    # the students whose graded notebook cannot be read or lacks the answer; they are not counted elsewhere
    unreadable: tuple[str, ...] = ()

    @property
    def graded_cell(self) -> str:
        """The grade id of the cell that holds the points."""
        return f"test_{self.name}" if self.is_code else self.name

    @property
    def waiting(self) -> int:
        """The number of answers that wait for a marker."""
        return sum(answer.is_open for answer in self.answers)

    @property
    def lost_points(self) -> float:
        """The points that the check deducted from the listed answers."""
        return sum(group.lost_points for group in self.groups)

    @property
    def groups_done(self) -> int:
        """The number of groups in which no answer waits for a marker."""
        waiting = {answer.student for answer in self.answers if answer.is_open}
        return sum(waiting.isdisjoint(member.student for member in group.members) for group in self.groups)


def unreadable_notebooks(questions: Sequence[Question]) -> list[str]:
    """Return the students whose graded notebooks cannot be read or lack an answer, sorted."""
    return sorted({student for question in questions for student in question.unreadable})


@dataclass(frozen=True)
class MarkRows:
    """A chapter's grades and comments in the gradebook, by cell and student."""

    # of each grade its id, a person's points, and whether it waits
    grades: Mapping[tuple[str, str], tuple[str, float | None, bool]]
    comments: Mapping[tuple[str, str], tuple[str, str | None]]  # of each comment its id and a person's text
    # the rubric with which the points were given, from the journal of marks
    ticks: Mapping[tuple[str, str], GivenTicks]

    def students(self, question: Question) -> list[str]:
        """Return the students who have a grade and a comment row for a question, sorted."""
        graded = {student for name, student in self.grades if name == question.graded_cell}
        return sorted(student for name, student in self.comments if name == question.name and student in graded)

    def answer(
        self, question: Question, student: str, text: str, attachments: Any = None, code: CodeAnswer | None = None
    ) -> Answer:
        """Build a student's answer with its gradebook entries."""
        grade_id, points, waiting = self.grades[question.graded_cell, student]
        comment_id, comment = self.comments[question.name, student]
        last_ticks = self.ticks.get((question.name, student))
        ticks = last_ticks.ticks if last_ticks is not None and last_ticks.belong_to(points) else None
        state = MarkState(points, waiting, comment)
        return Answer(student, text, attachments, state, grade_id, comment_id, code, ticks)


def read_marks(gradebook: Gradebook, course: Course, chapter: str, cells: Collection[str]) -> MarkRows:
    """Read a chapter's grades, comments and ticked rubric items from the gradebook and the journal.

    Args:
        gradebook: the course's gradebook.
        course: the course.
        chapter: the chapter's full name.
        cells: the names of the cells to read. Objects for every row of a large class would take seconds.
    """
    grades = _select_rows(gradebook, Grade, GradeCell, chapter, cells, Grade.manual_score, Grade.needs_manual_grade)
    comments = _select_rows(gradebook, Comment, SolutionCell, chapter, cells, Comment.manual_comment)
    return MarkRows(
        {(name, student): (row, points, bool(waits)) for name, student, row, points, waits in grades},
        {(name, student): (row, comment) for name, student, row, comment in comments},
        cached_ticks(course.root, chapter),
    )


def student_names(course: Course) -> dict[str, str]:
    """Return the students' names in the gradebook by id, without students who have no name."""
    with open_gradebook(course) as gradebook:
        rows = gradebook.db.execute(select(Student.id, Student.first_name, Student.last_name)).all()
    names = {student: f"{first or ''} {last or ''}".strip() for student, first, last in rows}
    return {student: name for student, name in names.items() if name}


def _select_rows(gradebook: Any, kind: Any, cell_kind: Any, chapter: str, cells: Collection[str], *columns: Any) -> Any:
    return gradebook.db.execute(
        select(BaseCell.name, SubmittedAssignment.student_id, kind.id, *columns)
        .join(BaseCell, BaseCell.id == kind.cell_id)
        .join(SubmittedNotebook, SubmittedNotebook.id == kind.notebook_id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .join(ReleasedAssignment, ReleasedAssignment.id == SubmittedAssignment.assignment_id)
        .where(ReleasedAssignment.name == chapter, Notebook.name == chapter, BaseCell.name.in_(sorted(cells)))
        .where(BaseCell.type == cell_kind.__mapper_args__["polymorphic_identity"])
    )
