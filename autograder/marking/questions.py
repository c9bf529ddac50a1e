"""Read a chapter's written answers, and what the gradebook holds about each of them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from nbgrader.api import Assignment as ReleasedAssignment
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
    GradeCell,
    Notebook,
    SolutionCell,
    SubmittedAssignment,
    SubmittedNotebook,
)
from sqlalchemy import select

from autograder.course.folder import Course
from autograder.gradebook.reader import open_gradebook
from autograder.submission.manifest import Manifest, SourceCell, released_manifest

_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class MarkState:
    """What a marker can change about one answer.

    Attributes:
        points: the points that a person has given; None if nobody has.
        waiting: whether nbgrader asks for a person.
        comment: a person's comment; None if there is none.
    """

    points: float | None
    waiting: bool
    comment: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON has it."""
        return {"points": self.points, "waiting": self.waiting, "comment": self.comment}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MarkState:
        """Return the state that :meth:`to_json` has written."""
        points = data["points"]
        return cls(None if points is None else float(points), bool(data["waiting"]), data["comment"])


@dataclass(frozen=True)
class Answer:
    """One student's answer to a question.

    Attributes:
        student: the student's id.
        text: the answer, Markdown.
        attachments: the cell's attachments.
        state: what the gradebook holds.
        grade_id: the id of its row among the grades.
        comment_id: the id of its row among the comments.
    """

    student: str
    text: str
    attachments: Any
    state: MarkState
    grade_id: str
    comment_id: str

    @property
    def version(self) -> str:
        """A hash of the text and the state: what a marker has to have seen before a mark is written."""
        contents = json.dumps([self.text, self.state.to_json()], sort_keys=True)
        return hashlib.sha256(contents.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Question:
    """A question that is answered in words.

    Attributes:
        name: the grade id of the answer cell, ``question_<topic>``.
        title: the first heading of the prompt.
        prompt: the prompt without that heading, Markdown.
        points: what the question is worth.
        answers: the answers that are to be marked, by student.
        blanks: how many students have left it blank; nbgrader gives them 0.
        unreadable: the students whose graded notebook cannot be read or lacks the answer; they are neither answers nor blanks.
    """

    name: str
    title: str
    prompt: str
    points: float
    answers: tuple[Answer, ...]
    blanks: int
    unreadable: tuple[str, ...] = ()

    @property
    def waiting(self) -> int:
        """How many answers wait for a marker."""
        return sum(answer.state.waiting for answer in self.answers)


def folded(text: str) -> str:
    """Return a text with its case folded and every run of white space as one space: equal results count as identical answers."""
    return " ".join(text.casefold().split())


def read_questions(course: Course, chapter: str) -> list[Question]:
    """Return the chapter's questions in words with their answers, in the order of the notebook.

    Args:
        course: the course.
        chapter: the chapter's full name.

    Raises:
        CourseError: if the chapter is not released.
    """
    manifest = released_manifest(course, chapter)
    cells = [cell for cell in manifest.cells if cell.is_answer]
    sources: dict[str, Mapping[str, Any]] = {}
    by_cell: dict[str, list[Answer]] = {cell.name: [] for cell in cells}
    unreadable: dict[str, list[str]] = {cell.name: [] for cell in cells}
    for name, student, grade, comment in _rows(course, chapter):
        if name not in by_cell:
            continue
        if student not in sources:
            sources[student] = _notebook_cells(course, chapter, student)
        cell = sources[student].get(name)
        if cell is None:
            unreadable[name].append(student)
        else:
            state = MarkState(grade.manual_score, bool(grade.needs_manual_grade), comment.manual_comment)
            text = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
            answer = Answer(student, text, cell.get("attachments"), state, grade.id, comment.id)
            by_cell[name].append(answer)
    return [
        replace(_question(manifest, cell, by_cell[cell.name]), unreadable=tuple(unreadable[cell.name]))
        for cell in cells
    ]


def unreadable_notebooks(questions: Sequence[Question]) -> list[str]:
    """Return the students whose graded notebooks cannot be read or lack an answer, in order."""
    return sorted({student for question in questions for student in question.unreadable})


def _question(manifest: Manifest, cell: SourceCell, answers: list[Answer]) -> Question:
    prompt_cell = manifest.by_name.get(f"prompt_{cell.name.removeprefix('question_')}")
    prompt = prompt_cell.source if prompt_cell else ""
    heading = _HEADING.search(prompt)
    title = heading.group(1) if heading else cell.name
    written = tuple(answer for answer in answers if not _is_blank(answer, cell))
    prompt = _HEADING.sub("", prompt, count=1).strip()
    return Question(cell.name, title, prompt, cell.points, written, len(answers) - len(written))


def _is_blank(answer: Answer, cell: SourceCell) -> bool:
    # A person who gave points to a blank answer wants to see it again; nbgrader waits for nobody else.
    untouched = answer.state.points is None and not answer.attachments
    return untouched and folded(answer.text) in ("", folded(cell.source))


def _rows(course: Course, chapter: str) -> Iterator[tuple[str, str, Grade, Comment]]:
    """Yield cell name, student, grade and comment of every answer in the gradebook, by student."""
    with open_gradebook(course) as gradebook:
        grades = _marks(gradebook, Grade, GradeCell, chapter)
        comments = _marks(gradebook, Comment, SolutionCell, chapter)
        for key in sorted(grades.keys() & comments.keys(), key=lambda key: key[1]):
            yield *key, grades[key], comments[key]


def _marks(gradebook: Any, kind: Any, cells: Any, chapter: str) -> dict[tuple[str, str], Any]:
    rows = gradebook.db.execute(
        select(BaseCell.name, SubmittedAssignment.student_id, kind)
        .join(BaseCell, BaseCell.id == kind.cell_id)
        .join(SubmittedNotebook, SubmittedNotebook.id == kind.notebook_id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .join(ReleasedAssignment, ReleasedAssignment.id == SubmittedAssignment.assignment_id)
        .where(ReleasedAssignment.name == chapter, Notebook.name == chapter)
        .where(BaseCell.type == cells.__mapper_args__["polymorphic_identity"])
    )
    return {(name, student): mark for name, student, mark in rows}


def _notebook_cells(course: Course, chapter: str, student: str) -> dict[str, Mapping[str, Any]]:
    """Return the cells of a graded notebook by grade id; none if it cannot be read."""
    path = course.folder("autograded", student, chapter) / f"{chapter}.ipynb"
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in cells if "nbgrader" in cell["metadata"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
