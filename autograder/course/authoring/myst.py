"""Read a MyST text notebook, and rewrite its code cells without changing any other byte."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from jupytext.myst import MystMetadataParsingError, get_parser
from yaml import YAMLError

from autograder.errors import CourseError

_CELL_ID = re.compile(r"^[A-Za-z0-9_-]{1,64}$")
_POINTS = re.compile(r"^(\s*points:\s*)[^\s#]+")


@dataclass(frozen=True)
class CodeCell:
    """The expected content of a code cell."""

    source: str  # its code
    points: float | None = None  # its points, or None for a cell without any


def read_text(path: Path) -> str:
    """Read a UTF-8 text file.

    Raises:
        CourseError: if it is missing or cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise CourseError(f"the file cannot be read ({error.strerror})", where=path) from error
    except UnicodeDecodeError as error:
        raise CourseError(f"the file is not UTF-8 ({error.reason})", where=path, do="Save it as UTF-8.") from error


def parse_notebook(text: str, where: Path) -> Any:
    """Parse a MyST text notebook; cell ids depend only on its content.

    A cell's id is its grade id or else derives from its source. jupytext's own metadata are dropped.

    Args:
        where: its file, for messages.

    Raises:
        CourseError: if it is not a MyST notebook.
    """
    try:
        notebook = deepcopy(_parse_cached(text))
    except (MystMetadataParsingError, YAMLError, ValueError) as error:
        raise CourseError(
            f"the file is not a MyST notebook: {error}", where=where, do="Correct the metadata of the cell."
        ) from error
    if "kernelspec" not in notebook.metadata:
        raise CourseError(
            "the file has no kernelspec", where=where, do="Copy the front matter of another chapter's exercises.md."
        )
    notebook.metadata.pop("jupytext", None)
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    set_cell_ids(notebook)
    return notebook


@lru_cache(maxsize=32)
def _parse_cached(text: str) -> Any:
    # Parsing a chapter takes a tenth of a second, and building a chapter parses it ten times.
    return jupytext.reads(text, fmt="md:myst")


def set_cell_ids(notebook: Any) -> None:
    """Set every cell's id from its grade id or its source."""
    counts: dict[str, int] = {}
    for cell in notebook.cells:
        grade_id = str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()
        stem = grade_id if _CELL_ID.match(grade_id) else f"cell-{digest[:12]}"
        counts[stem] = counts.get(stem, 0) + 1
        cell["id"] = stem if counts[stem] == 1 else f"{stem[:58]}-{counts[stem]}"


def rewrite_code_cells(text: str, changes: Mapping[int, CodeCell], where: Path) -> str:
    """Rewrite some code cells of a MyST text notebook; every other byte stays.

    Args:
        changes: the new content by the cell's index among the code cells, from 0.
        where: its file, for messages.

    Raises:
        CourseError: if a cell's points are not on their own line.
    """
    lines = text.split("\n")
    for index, (start, end) in reversed(list(enumerate(_code_fences(text)))):
        if index in changes:
            lines[start:end] = _rewrite_fence(lines[start:end], changes[index], f"{where}:{start}")
    changed = "\n".join(lines)
    _verify_cells(changed, changes, where)
    return changed


def write_notebook(notebook: Any) -> bytes:
    """Serialise a notebook deterministically.

    Raises:
        CourseError: if it is not a valid notebook.
    """
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        raise CourseError(f"the notebook is not valid: {error}") from error
    text: str = nbformat.writes(notebook, version=4, indent=1, sort_keys=True, ensure_ascii=False)
    return (text.rstrip("\n") + "\n").encode()


def lines_outside_code(text: str) -> list[int]:
    """Return the 0-based numbers of the lines outside code cells."""
    inside = {line for start, end in _code_fences(text) for line in range(start, end)}
    return [line for line in range(text.count("\n") + 1) if line not in inside]


def _code_fences(text: str) -> list[tuple[int, int]]:
    """Return the 0-based first and closing line of each code cell's content."""
    depth, fences = 0, []
    for token in get_parser().parse(text + "\n"):
        depth += token.nesting
        if depth == 0 and token.type == "fence" and token.info.startswith("{code-cell}"):
            fences.append((token.map[0] + 1, token.map[1] - 1))
    return fences


def _rewrite_fence(lines: list[str], cell: CodeCell, where: str) -> list[str]:
    """Return the lines of a fence with new code and points, keeping its other metadata."""
    options = _options_length(lines)
    header = lines[:options]
    if cell.points is not None:
        matches = [i for i, line in enumerate(header) if _POINTS.match(line)]
        if len(matches) != 1:
            raise CourseError(
                "the points of this cell are not on a separate line",
                where=where,
                do=f"Write `points: {cell.points:g}` into its nbgrader metadata.",
            )
        header[matches[0]] = _POINTS.sub(rf"\g<1>{cell.points:g}", header[matches[0]])
    gap = [""] if options < len(lines) and options and not lines[options].strip() else []
    return [*header, *gap, *cell.source.split("\n")]


def _options_length(lines: list[str]) -> int:
    """Return the number of metadata lines in a fence."""
    if lines and lines[0].startswith("---"):
        return next((i + 1 for i, line in enumerate(lines) if i and line.startswith("---")), len(lines))
    return next((i for i, line in enumerate(lines) if not line.lstrip().startswith(":")), len(lines))


def _verify_cells(text: str, changes: Mapping[int, CodeCell], where: Path) -> None:
    """Verify the changed text, because a stub that contains a fence would end its cell early."""
    cells = [cell for cell in parse_notebook(text, where).cells if cell.cell_type == "code"]
    for index, expected in changes.items():
        if index >= len(cells) or cells[index].source != expected.source:
            raise CourseError(
                f"the fence of code cell {index + 1} cannot enclose its code",
                where=where,
                do="Is there a line of backticks in the docstring? Give the cell's fence more backticks than that.",
            )
