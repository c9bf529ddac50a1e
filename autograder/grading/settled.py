"""Answers that a person has graded. nbgrader asks for another look whenever a submission is recorded again; a regrade need not."""

from __future__ import annotations

from nbgrader.api import Grade, MissingEntry
from sqlalchemy import select
from sqlalchemy.orm import selectinload

from autograder.grading.manifest import Manifest
from autograder.grading.record import Books


def settled_answers(books: Books, manifest: Manifest, student: str) -> frozenset[str]:
    """Return the answers of a student that a person has given points to, and that wait for nobody."""
    answers = {cell.name for cell in manifest.cells if cell.is_answer or cell.task}
    with books.gradebook() as gradebook:
        try:
            notebook = gradebook.find_submission_notebook(manifest.chapter, manifest.chapter, student)
        except MissingEntry:
            return frozenset()
        grades = gradebook.db.scalars(
            select(Grade).where(Grade.notebook_id == notebook.id).options(selectinload(Grade.cell))
        )
        given = {grade.cell.name for grade in grades if grade.manual_score is not None and not grade.needs_manual_grade}
    return frozenset(answers & given)
