"""Count how many students got each item of a question's rubric."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from nbgrader.api import Assignment, BaseCell, Grade, Gradebook, Notebook, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import select

from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.grading.record.marks_journal import Ticks, cached_ticks
from autograder.intake.notebook.manifest import released_manifest


@dataclass(frozen=True)
class ItemCount:
    """The students who got all, half or none of a rubric item."""

    text: str  # the item, Markdown
    points: float  # what it is worth
    all_of_it: tuple[str, ...]  # the students who got it
    half_of_it: tuple[str, ...]  # the students who got half of it
    none_of_it: tuple[str, ...]  # the students who got nothing of it


@dataclass(frozen=True)
class RubricCount:
    """The item counts of one question's rubric, for students who were marked with it."""

    question: str  # the grade id of the answer cell
    students: int  # how many students they are
    items: tuple[ItemCount, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain data, ready for JSON."""
        return {"question": self.question, "students": self.students, "items": [vars(item) for item in self.items]}


def count_rubric_items(course: Course, chapter: str, students: Collection[str]) -> tuple[RubricCount, ...]:
    """Count the students who got each rubric item of a chapter, in the order of the notebook.

    Marks count if their ticks explain the points that the gradebook holds. A rubric that has changed and was not applied again counts
    as another one: each item is counted among the students who were marked with it.

    Args:
        chapter: the chapter's full name.
        students: the students who count, such as those on the class list who are graded.
    """
    last_ticks = {key: ticks for key, ticks in cached_ticks(course.root, chapter).items() if key[1] in students}
    if not last_ticks:
        return ()
    with open_gradebook(course) as gradebook:
        points = read_manual_points(gradebook, chapter)
    valid = {key: ticks.ticks for key, ticks in last_ticks.items() if key in points and ticks.belong_to(points[key])}
    order = [cell.name for cell in released_manifest(course, chapter).cells if cell.is_answer]
    counted = (
        {student: ticks for (name, student), ticks in valid.items() if name == question and ticks} for question in order
    )
    return tuple(_count_items(question, ticks) for question, ticks in zip(order, counted, strict=True) if ticks)


def read_manual_points(gradebook: Gradebook, chapter: str, *, waiting: bool = False) -> dict[tuple[str, str], float]:
    """Return the manual points of a chapter's cells, by cell and student.

    Args:
        chapter: the chapter's full name.
        waiting: whether points that a person has to confirm, because the answer has changed, are among them.
    """
    query = (
        select(BaseCell.name, SubmittedAssignment.student_id, Grade.manual_score)
        .join(BaseCell, BaseCell.id == Grade.cell_id)
        .join(SubmittedNotebook, SubmittedNotebook.id == Grade.notebook_id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .where(Assignment.name == chapter, Notebook.name == chapter)
        .where(Grade.manual_score.is_not(None))
    )
    rows = gradebook.db.execute(query if waiting else query.where(Grade.needs_manual_grade.is_(False)))
    return {(name, student): points for name, student, points in rows}


def _count_items(question: str, ticks: dict[str, Ticks]) -> RubricCount:
    by_item: dict[tuple[str, float], dict[float, list[str]]] = {}
    for student, items in sorted(ticks.items()):
        for tick in items:
            by_share = by_item.setdefault((tick.text, tick.points), {1.0: [], 0.5: [], 0.0: []})
            by_share[tick.share].append(student)
    counts = tuple(
        ItemCount(text, points, tuple(shares[1.0]), tuple(shares[0.5]), tuple(shares[0.0]))
        for (text, points), shares in by_item.items()
    )
    return RubricCount(question, len(ticks), counts)
