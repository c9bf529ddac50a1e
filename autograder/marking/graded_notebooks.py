"""Read the cells of a chapter's graded notebooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograder.course.folder import Course

# The parts of a cell that an answer is read from.
_KEPT = ("source", "attachments")


class GradedNotebooks:
    """The cells of a chapter's graded notebooks. A file is read again only if it has changed.

    Args:
        course: the course.
        chapter: the chapter's full name.
    """

    def __init__(self, course: Course, chapter: str) -> None:
        self._course, self._chapter = course, chapter
        self._read: dict[str, tuple[tuple[int, int], dict[str, Mapping[str, Any]]]] = {}

    def cells(self, student: str) -> Mapping[str, Mapping[str, Any]]:
        """Return the named cells of a student's graded notebook, without their outputs; empty if it cannot be read."""
        path = self._course.folder("autograded", student, self._chapter) / f"{self._chapter}.ipynb"
        try:
            status = path.stat()
        except OSError:
            return {}
        version = status.st_mtime_ns, status.st_size
        if self._read.get(student, (None,))[0] != version:
            self._read[student] = version, named_cells(path)
        return self._read[student][1]


def named_cells(path: Path) -> dict[str, Mapping[str, Any]]:
    """Return the sources and attachments of a notebook's nbgrader cells, by grade id; empty if it cannot be read."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        named = {cell["metadata"]["nbgrader"]["grade_id"]: cell for cell in cells if "nbgrader" in cell["metadata"]}
        return {name: {key: cell[key] for key in _KEPT if key in cell} for name, cell in named.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def source_text(cell: Mapping[str, Any]) -> str:
    """Return a cell's source as one string; a notebook stores it as a string or as lines."""
    return cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])


def fold_text(text: str) -> str:
    """Casefold a text and collapse white space, so that answers that differ only in these compare as equal."""
    return " ".join(text.casefold().split())
