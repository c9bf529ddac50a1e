"""Which marks of a person stay as they are when a submission is graded again; nbgrader asks for another look at each of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nbgrader.api import Grade, MissingEntry
from sqlalchemy import select
from sqlalchemy.orm import selectinload

from autograder.record.gradebook_writer import GradebookWriter
from autograder.submission.manifest import Manifest


def manually_graded_cells(books: GradebookWriter, manifest: Manifest, student: str) -> frozenset[str]:
    """Return the cells of a student that a person has given points to, tests included, and that wait for nobody."""
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


def unchanged_cells(manifest: Manifest, graded: Path, executed: str) -> frozenset[str]:
    """Return the graded cells of which a person would see now what was to be seen before.

    An answer is the same if its text is. What a test says depends on all that the student has written, so tests are the same if
    everything is; how many points the checks give now makes no difference to a person's own decision.

    Args:
        manifest: the chapter's cells.
        graded: the notebook as it was graded before; it need not be there.
        executed: the notebook as it was run now, as JSON.
    """
    try:
        before = _sources(json.loads(graded.read_text(encoding="utf-8")), manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return frozenset()
    now = _sources(json.loads(executed), manifest)
    same = {name for name, source in now.named.items() if before.named.get(name) == source}
    graded_cells = {cell.name for cell in manifest.cells if cell.grade or cell.task}
    answers = {cell.name for cell in manifest.cells if cell.is_answer}
    return frozenset(graded_cells if before.written == now.written else same & answers)


class _Sources:
    """The texts of a notebook's cells that are not the course's own, in order, and those of them that have a name."""

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
