"""Read a chapter's manifest from the gradebook: the cells that every submission must have."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import Gradebook

from autograder.course.earlier_releases import Texts, read_earlier_texts
from autograder.course.folder import Course
from autograder.course.gradebook.reader import NoGradebookError, existing_gradebook
from autograder.course.paths import shell_command
from autograder.errors import CourseError
from autograder.static_analysis.cell_names import ends_in_check, find_only_check

SCHEMA_VERSION = 3
_HIDDEN = re.compile(r"^### BEGIN HIDDEN TESTS.*?^### END HIDDEN TESTS[^\n]*\n?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class SourceCell:
    """A cell that every submission must have."""

    name: str  # its nbgrader ``grade_id``
    cell_type: str  # ``"code"`` or ``"markdown"``
    source: str  # its text; for an exercise the stub, for a test cell the visible and the hidden tests
    checksum: str | None  # nbgrader's checksum of the released cell
    locked: bool  # whether its text is the course's, not the student's
    grade: bool  # whether it carries points
    solution: bool  # whether the student writes in it
    task: bool  # whether it is one of nbgrader's task cells
    points: float  # its points, if it carries any

    @property
    def visible(self) -> str:
        """The cell's text without hidden tests, as students have it."""
        return _HIDDEN.sub("", self.source + "\n") if "### BEGIN HIDDEN TESTS" in self.source else self.source

    @property
    def is_stub(self) -> bool:
        """Whether this cell holds an exercise's code; its name is then the exercise's."""
        return self.cell_type == "code" and self.solution

    @property
    def is_test(self) -> bool:
        """Whether this is a test cell."""
        return self.cell_type == "code" and self.grade and not self.solution

    @property
    def has_own_tests(self) -> bool:
        """Whether this is a test cell with a lecturer's own tests."""
        return self.is_test and find_only_check(self.source) is None

    @property
    def mixes_tests(self) -> bool:
        """Whether this is a test cell that ends with a check and does something else, too."""
        return self.has_own_tests and ends_in_check(self.source)

    @property
    def is_answer(self) -> bool:
        """Whether this is a question that a person grades."""
        return self.solution and self.grade

    def metadata(self) -> dict[str, Any]:
        """Return the cell's nbgrader metadata."""
        fields = ["cell_type", "checksum", "grade", "locked", "solution", "task"]
        if self.grade or self.task:
            fields.append("points")
        return {"grade_id": self.name, "schema_version": SCHEMA_VERSION} | {
            name: getattr(self, name) for name in fields
        }


@dataclass(frozen=True)
class Manifest:
    """The named cells of a chapter's notebook, in order."""

    chapter: str
    cells: tuple[SourceCell, ...]  # its named cells
    # names of the cells of every other chapter in the gradebook, by chapter
    elsewhere: Mapping[str, frozenset[str]] = field(default_factory=dict)
    # the kernel in the released notebook's metadata; empty if it is missing
    kernelspec: Mapping[str, Any] = field(default_factory=dict)
    plain_texts: tuple[str, ...] = ()  # the sources of its unnamed cells; empty if the source notebook is unknown
    earlier: Texts = field(default_factory=dict)  # the texts of its cells in earlier releases, where they were others

    @cached_property
    def by_name(self) -> dict[str, SourceCell]:
        """The cells by name."""
        return {cell.name: cell for cell in self.cells}

    @cached_property
    def unique_names(self) -> frozenset[str]:
        """The cell names that no other chapter has."""
        return frozenset(cell.name for cell in self.cells) - frozenset[str]().union(*self.elsewhere.values())

    @cached_property
    def work(self) -> frozenset[str]:
        """The names of cells that carry points or that students edit."""
        return frozenset(cell.name for cell in self.cells if cell.grade or cell.solution or cell.task)

    @cached_property
    def wordings(self) -> dict[str, tuple[str, ...]]:
        """The texts of each cell in all releases, as students have them, the current one first."""
        return {cell.name: (cell.visible, *self.earlier.get(cell.name, ())) for cell in self.cells}

    @cached_property
    def former_texts(self) -> tuple[str, ...]:
        """The texts of earlier releases in cells that students do not edit; at any position they are the course's."""
        written = {cell.name for cell in self.cells if cell.solution}
        return tuple(text for name, texts in self.earlier.items() if name not in written for text in texts)

    @cached_property
    def digest(self) -> str:
        """A hash of everything in the manifest that decides a grade."""
        return hashlib.sha256(json.dumps([vars(cell) for cell in self.cells], sort_keys=True).encode()).hexdigest()


class NotReleasedError(LookupError):
    """The chapter is not in the gradebook."""


def read_manifest(
    db_url: str,
    chapter: str,
    source: Path | None = None,
    root: Path | None = None,
    gradebook: Gradebook | None = None,
) -> Manifest:
    """Read a chapter's manifest from the gradebook.

    Args:
        db_url: the gradebook's database.
        chapter: the chapter; its notebook has the same name.
        source: the source notebook, for the order of cells, which a database does not guarantee, and for the texts without a name.
        root: the course folder, for the texts of earlier releases.
        gradebook: the gradebook, if it is open.

    Raises:
        NotReleasedError: if the gradebook has no such chapter.
    """
    try:
        with existing_gradebook(db_url) if gradebook is None else nullcontext(gradebook) as opened:
            all_ = [notebook for assignment in opened.assignments for notebook in assignment.notebooks]
            notebooks = {notebook.name: notebook for notebook in all_ if notebook.name == notebook.assignment.name}
            names = {name: _gradebook_cells(notebook) for name, notebook in notebooks.items()}
            kernel = notebooks[chapter].kernelspec if chapter in notebooks else ""
    except NoGradebookError as error:
        raise NotReleasedError("there is no gradebook yet") from error
    if chapter not in names:
        raise NotReleasedError(f"the gradebook has no assignment {chapter!r} with a notebook {chapter}.ipynb")
    order, texts = _source_cells(source)
    rank = {name: i for i, name in enumerate(order)}
    cells = tuple(sorted(names[chapter], key=lambda cell: rank.get(cell.name, len(rank))))
    elsewhere = {
        other: frozenset(cell.name for cell in source_cells)
        for other, source_cells in names.items()
        if other != chapter
    }
    earlier = read_earlier_texts(root, chapter) if root else {}
    return Manifest(chapter, cells, elsewhere, json.loads(kernel or "{}") or {}, texts, earlier)


def _source_cells(source: Path | None) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of a source notebook's cells in order, and the texts of its unnamed cells."""
    if source is None or not source.is_file():
        return [], ()
    cells = nbformat.read(source, as_version=4).cells
    names = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in cells]
    plain = (cell.source for cell, name in zip(cells, names, strict=True) if not name and cell.source.strip())
    return [name for name in names if name], tuple(dict.fromkeys(plain))


def released_manifest(course: Course, chapter: str, gradebook: Gradebook | None = None) -> Manifest:
    """Return the manifest of a released chapter.

    Args:
        course: the course.
        chapter: the chapter.
        gradebook: the course's gradebook, if it is open.

    Raises:
        CourseError: if the chapter has not been released in this course.
    """
    try:
        return read_manifest(
            course.gradebook_url,
            chapter,
            course.folder("source", ".", chapter) / f"{chapter}.ipynb",
            course.root,
            gradebook,
        )
    except NotReleasedError:
        raise CourseError(
            f"chapter {chapter} is not released here",
            where=course.root,
            do=f"Release it first: {shell_command(course, 'assign', chapter)}",
        ) from None


def _gradebook_cells(notebook: Any) -> tuple[SourceCell, ...]:
    graded = {cell.name: float(cell.max_score) for cell in (*notebook.grade_cells, *notebook.task_cells)}
    answers = {cell.name for cell in notebook.solution_cells}
    tasks = {cell.name for cell in notebook.task_cells}
    return tuple(
        SourceCell(
            name=cell.name,
            cell_type=cell.cell_type,
            source=cell.source,
            checksum=cell.checksum,
            locked=bool(cell.locked),
            grade=cell.name in graded and cell.name not in tasks,
            solution=cell.name in answers,
            task=cell.name in tasks,
            points=graded.get(cell.name, 0.0),
        )
        for cell in notebook.source_cells
    )
