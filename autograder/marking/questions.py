"""Read a chapter's written answers, and what the gradebook holds about each answer."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from nbgrader.api import Assignment as ReleasedAssignment
from nbgrader.api import (
    BaseCell,
    Comment,
    Grade,
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
from autograder.grading.record.marks_journal import GivenTicks, MarksJournal, MarkState, RubricTick
from autograder.intake.notebook.manifest import Manifest, SourceCell, released_manifest

if TYPE_CHECKING:
    from autograder.marking.behaviour_groups import BehaviourGroup, CodeAnswer

_HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)
# The parts of a cell that an answer is read from.
_KEPT = ("source", "attachments")


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
        """A hash of what the marker sees: the text with its pictures, the mark, and what the check made of code."""
        verdict = [self.code.score, self.code.failed_rows, self.code.message] if self.code else []
        pictures = [self.attachments] if self.attachments else []
        ticks = [tick.to_json() for tick in self.ticks or ()]
        contents = json.dumps([self.text, self.state.to_json(), *verdict, *pictures, *ticks], sort_keys=True)
        return hashlib.sha256(contents.encode()).hexdigest()[:16]

    @property
    def is_open(self) -> bool:
        """Whether the answer waits for marking: nbgrader requires it, or code that lost points has neither manual points nor a comment."""
        untouched = self.code is not None and self.state.points is None and self.state.comment is None
        return self.state.waiting or untouched


@dataclass(frozen=True)
class Question:
    """A question that is answered in words, or an exercise that is answered with code."""

    name: str  # the grade id of the answer cell: ``question_<topic>``, or an exercise's name
    title: str  # the first heading of the prompt
    prompt: str  # the prompt without that heading, Markdown
    points: float  # what the question is worth
    answers: tuple[Answer, ...]  # the answers to mark, by student; for code, only answers that lost points
    blanks: int  # the number of blank answers, which get 0 points
    others: tuple[Answer, ...] = ()  # the other answers in the gradebook; their marks can be undone
    is_code: bool = False  # whether it is answered with code
    groups: tuple[BehaviourGroup, ...] = ()  # code answers that behave alike, most lost points first
    reference: str = ""  # the reference solution of an exercise; empty if it is unknown
    # the students whose graded notebook cannot be read or lacks the answer; they are not counted elsewhere
    unreadable: tuple[str, ...] = ()

    @property
    def waiting(self) -> int:
        """How many answers wait for a marker."""
        return sum(answer.is_open for answer in self.answers)

    @property
    def lost_points(self) -> float:
        """Points that the check took off the answers listed."""
        return sum(group.lost_points for group in self.groups)

    @property
    def groups_done(self) -> int:
        """How many groups have no answer that waits."""
        waiting = {answer.student for answer in self.answers if answer.is_open}
        return sum(waiting.isdisjoint(member.student for member in group.members) for group in self.groups)


def folded(text: str) -> str:
    """Return a text with its case folded and every run of white space as one space: equal results count as identical answers."""
    return " ".join(text.casefold().split())


class GradedNotebooks:
    """The cells of a chapter's graded notebooks; a file is read again only after it has changed.

    Args:
        course: the course.
        chapter: the chapter's full name.
    """

    def __init__(self, course: Course, chapter: str) -> None:
        self._course, self._chapter = course, chapter
        self._read: dict[str, tuple[tuple[int, int], dict[str, Mapping[str, Any]]]] = {}

    def cells(self, student: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the named cells of a student's graded notebook, without their outputs; none if it cannot be read."""
        path = self._course.folder("autograded", student, self._chapter) / f"{self._chapter}.ipynb"
        try:
            status = path.stat()
        except OSError:
            return {}
        version = status.st_mtime_ns, status.st_size
        if self._read.get(student, (None,))[0] != version:
            cells = notebook_cells(self._course, self._chapter, student)
            parts: dict[str, Mapping[str, Any]] = {
                name: {key: cell[key] for key in _KEPT if key in cell} for name, cell in cells.items()
            }
            self._read[student] = version, parts
        return self._read[student][1]


def read_questions(course: Course, chapter: str, notebooks: GradedNotebooks | None = None) -> list[Question]:
    """Return the chapter's questions in words with their answers, in the order of the notebook.

    Args:
        chapter: the chapter's full name.
        notebooks: the graded notebooks, if they were read before.

    Raises:
        CourseError: if the chapter is not released.
    """
    manifest = released_manifest(course, chapter)
    cells = [cell for cell in manifest.cells if cell.is_answer]
    marks = read_marks(course, chapter, {cell.name for cell in cells})
    students = {student for cell in cells for student in marks.students(cell.name, cell.name)}
    notebooks = notebooks or GradedNotebooks(course, chapter)
    sources = {student: notebooks.cells(student) for student in sorted(students)}
    questions = []
    for cell in cells:
        question = _question(manifest, cell, _answers(cell.name, marks, sources))
        unreadable = [student for student in marks.students(cell.name, cell.name) if cell.name not in sources[student]]
        questions.append(replace(question, unreadable=tuple(unreadable)))
    return questions


def _answers(name: str, marks: MarkRows, sources: Mapping[str, Mapping[str, Any]]) -> list[Answer]:
    answers = []
    for student in marks.students(name, name):
        if (cell := sources[student].get(name)) is not None:
            answers.append(marks.answer(student, name, name, source_text(cell), cell.get("attachments")))
    return answers


def unreadable_notebooks(questions: Sequence[Question]) -> list[str]:
    """Return the students whose graded notebooks cannot be read or lack an answer, in order."""
    return sorted({student for question in questions for student in question.unreadable})


def _question(manifest: Manifest, cell: SourceCell, answers: list[Answer]) -> Question:
    prompt_cell = manifest.by_name.get(f"prompt_{cell.name.removeprefix('question_')}")
    prompt = prompt_cell.source if prompt_cell else ""
    heading = _HEADING.search(prompt)
    title = heading.group(1) if heading else cell.name
    written = tuple(answer for answer in answers if not _is_blank(answer, cell))
    blank = tuple(answer for answer in answers if _is_blank(answer, cell))
    prompt = _HEADING.sub("", prompt, count=1).strip()
    return Question(cell.name, title, prompt, cell.points, written, len(blank), blank)


def _is_blank(answer: Answer, cell: SourceCell) -> bool:
    # A person who gave points to a blank answer wants to see it again; nbgrader waits for nobody else.
    untouched = answer.state.points is None and not answer.attachments
    return untouched and folded(answer.text) in ("", folded(cell.source))


@dataclass(frozen=True)
class MarkRows:
    """Rows of a chapter's grades and comments in the gradebook, each by cell and student."""

    # of each grade its id, a person's points, and whether it waits
    grades: Mapping[tuple[str, str], tuple[str, float | None, bool]]
    comments: Mapping[tuple[str, str], tuple[str, str | None]]  # of each comment its id and a person's text
    # the rubric with which the points were given, from the journal of marks
    ticks: Mapping[tuple[str, str], GivenTicks]

    def students(self, grade_cell: str, comment_cell: str) -> list[str]:
        """Return the students who have both rows, in order."""
        graded = {student for name, student in self.grades if name == grade_cell}
        return sorted(student for name, student in self.comments if name == comment_cell and student in graded)

    def answer(
        self,
        student: str,
        grade_cell: str,
        comment_cell: str,
        text: str,
        attachments: Any = None,
        code: CodeAnswer | None = None,
    ) -> Answer:
        """Return a student's answer with what the gradebook holds about it."""
        grade_id, points, waiting = self.grades[grade_cell, student]
        comment_id, comment = self.comments[comment_cell, student]
        last_ticks = self.ticks.get((comment_cell, student))
        ticks = last_ticks.ticks if last_ticks is not None and last_ticks.belong_to(points) else None
        state = MarkState(points, waiting, comment)
        return Answer(student, text, attachments, state, grade_id, comment_id, code, ticks)


def read_marks(course: Course, chapter: str, cells: Collection[str]) -> MarkRows:
    """Return what the gradebook holds about a chapter's answers.

    Args:
        chapter: the chapter's full name.
        cells: the names of the cells to read. Objects for every row of a large class would take seconds.
    """
    with open_gradebook(course) as gradebook:
        grades = _rows(gradebook, Grade, GradeCell, chapter, cells, Grade.manual_score, Grade.needs_manual_grade)
        comments = _rows(gradebook, Comment, SolutionCell, chapter, cells, Comment.manual_comment)
        return MarkRows(
            {(name, student): (row, points, bool(waits)) for name, student, row, points, waits in grades},
            {(name, student): (row, comment) for name, student, row, comment in comments},
            MarksJournal(course).ticks(chapter),
        )


def student_names(course: Course) -> dict[str, str]:
    """Return the names of the course's students by id, as the gradebook has them; a student without a name is left out."""
    with open_gradebook(course) as gradebook:
        rows = gradebook.db.execute(select(Student.id, Student.first_name, Student.last_name)).all()
    names = {student: f"{first or ''} {last or ''}".strip() for student, first, last in rows}
    return {student: name for student, name in names.items() if name}


def _rows(gradebook: Any, kind: Any, cell_kind: Any, chapter: str, cells: Collection[str], *columns: Any) -> Any:
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


def source_text(cell: Mapping[str, Any]) -> str:
    """Return a cell's source, which a notebook holds as one string or as lines."""
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def notebook_cells(course: Course, chapter: str, student: str) -> dict[str, Mapping[str, Any]]:
    """Return the cells of a graded notebook by grade id; none if it cannot be read."""
    path = course.folder("autograded", student, chapter) / f"{chapter}.ipynb"
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        return {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in cells if "nbgrader" in cell["metadata"]}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
