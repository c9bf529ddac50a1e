"""Select the manual grades that survive a regrade without a second look, which nbgrader would ask for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbgrader.api import Grade, MissingEntry
from sqlalchemy import select
from sqlalchemy.orm import selectinload

from autograder.grading.record.gradebook_writer import GradebookWriter
from autograder.intake.notebook.manifest import Manifest


def manually_graded_cells(books: GradebookWriter, manifest: Manifest, student: str) -> frozenset[str]:
    """Return a student's manually graded cells, including tests, that need no second look."""
    with books.gradebook() as gradebook:
        try:
            notebook = gradebook.find_submission_notebook(manifest.chapter, manifest.chapter, student)
        except MissingEntry:
            return frozenset()
        grades = gradebook.db.scalars(
            select(Grade).where(Grade.notebook_id == notebook.id).options(selectinload(Grade.cell))
        )
        return frozenset(
            grade.cell.name for grade in grades if grade.manual_score is not None and not grade.needs_manual_grade
        )


def unchanged_cells(manifest: Manifest, graded: Path, executed: Mapping[str, Any]) -> frozenset[str]:
    """Return the graded cells that look the same as in the earlier graded notebook.

    An answer is the same if its text is. A test depends on all of the student's code, so tests are the same if all texts are; changed
    points of the checks do not affect a manual grade.

    Args:
        manifest: the chapter's cells.
        graded: the earlier graded notebook; it need not exist.
        executed: the executed notebook.
    """
    try:
        before = _sources(json.loads(graded.read_text(encoding="utf-8")), manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return frozenset()
    now = _sources(executed, manifest)
    same = {name for name, source in now.named.items() if before.named.get(name) == source}
    graded_cells = {cell.name for cell in manifest.cells if cell.grade or cell.task}
    answers = {cell.name for cell in manifest.cells if cell.is_answer}
    return frozenset(graded_cells if before.written == now.written else same & answers)


def blank_answers(manifest: Manifest, executed: Mapping[str, Any]) -> frozenset[str]:
    """Return the answers in which the student has written nothing; nbgrader gives them 0 points."""
    now = _sources(executed, manifest).named
    return frozenset(cell.name for cell in manifest.cells if cell.is_answer and now.get(cell.name) == cell.source)


class _Sources:
    """The texts of a notebook's student cells, in order and by name."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.named: dict[str, str] = {}


def _sources(notebook: Mapping[str, Any], manifest: Manifest) -> _Sources:
    sources = _Sources()
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        declared = manifest.by_name.get(name)
        if declared is not None and declared.locked:
            continue
        source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        sources.written.append(source)
        if name:
            sources.named[name] = source
    return sources
