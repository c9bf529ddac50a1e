"""What became of an exercise that no cell defines: renamed, misspelled, buried in a class, left in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from autograder.checking.similar_names import similar
from autograder.static_analysis.cell_names import cell_magic, defined_names
from autograder.submission.cell_reader import CellReader
from autograder.submission.manifest import Manifest
from autograder.submission.problem import Problem

KIND = "exercise not defined"
# To see whether two names are alike is slow. So many of a notebook's names are compared with the exercises' names.
_COMPARED = 500
# Code that may define anything, without a word of it in its text.
_OPAQUE = re.compile(
    r"\b(?:exec|eval|globals|setattr|run_cell|run_line_magic)\s*\(|import[ \t]+\*|^[ \t]*%(?:run|load)\b", re.MULTILINE
)


def explain_missing(
    lost: Mapping[str, Any],
    silent: frozenset[str],
    cells: Sequence[tuple[int, Any]],
    manifest: Manifest,
    reader: CellReader | None = None,
) -> list[Problem]:
    """Say, for exercises that nobody wrote where they count, what the notebook holds instead.

    Args:
        lost: the exercises, each with the student's cell that carries its name, or None.
        silent: those of them whose cell does not define them at all; the others have their empty stub.
        cells: the student's cells, with their numbers in the file.
        manifest: the chapter's cells.
        reader: what reads the cells; by default a new one.

    Returns:
        A problem for every exercise that was written elsewhere, or whose cell holds something else; none for one that was not begun.
    """
    known = {name for cell in manifest.cells for name in (cell.name, *defined_names(cell.source))}
    reader = reader or CellReader()
    own_names = list(_own_names(cells, known, reader))
    problems = []
    for name, own in lost.items():
        empty = name not in silent
        found = (
            _buried(name, cells, reader)
            or _in_text(name, cells, reader)
            or _misnamed(name, own, own_names, reader, empty=empty)
        )
        if found is None and name in silent and own is not None and not _OPAQUE.search(own.source):
            what = f"The cell of {name} does not define it" + ("." if own.source.strip() else ": it is empty.")
            found = Problem(KIND, what, name, f"Define {name} in its own cell, at the left margin.")
        if found is not None:
            problems.append(found)
    return problems


def _buried(name: str, cells: Sequence[tuple[int, Any]], reader: CellReader) -> Problem | None:
    for number, cell in cells:
        if cell["cell_type"] == "code" and (outer := reader.outline(cell["source"]).buried.get(name)):
            what = f"{name} is defined inside the {outer} of cell {number}, where the check cannot find it."
            return Problem(KIND, what, name, "Move it out of there, to the left margin.")
    return None


def _in_text(name: str, cells: Sequence[tuple[int, Any]], reader: CellReader) -> Problem | None:
    for number, cell in cells:
        if name not in reader.mentioned(cell["source"]):
            continue
        if cell["cell_type"] != "code":
            what = f"{name} stands in cell {number}, which is a {cell['cell_type']} cell and does not run."
            return Problem(KIND, what, name, "Turn that cell into code.")
        if magic := cell_magic(cell["source"]):
            what = f"{name} stands in cell {number}, which begins with {magic}: its text is not run as Python."
            return Problem(KIND, what, name, f"Take the line {magic} away.")
    return None


def _own_names(
    cells: Sequence[tuple[int, Any]], known: set[str], reader: CellReader
) -> Iterator[tuple[int, Any, list[str]]]:
    """Yield the code cells that define names of the student's own, with these names, as long as there are not too many."""
    left = _COMPARED
    for number, cell in cells:
        if cell["cell_type"] == "code" and (names := sorted(reader.outline(cell["source"]).written - known)[:left]):
            yield number, cell, names
            left -= len(names)


def _misnamed(
    name: str, own: Any, cells: Sequence[tuple[int, Any, Sequence[str]]], reader: CellReader, *, empty: bool
) -> Problem | None:
    for number, cell, others in cells:
        likely = [other for other in others if similar(other, name)]
        if not likely and cell is own:
            likely = [other for other in others if other in reader.mentioned(cell["source"])]
        if likely:
            what = f"{name} is still empty" if empty else f"No cell defines {name}"
            what += f"; cell {number} defines {likely[0]}."
            return Problem(KIND, what, name, f"If that is it, rename it: {name}.")
    return None
