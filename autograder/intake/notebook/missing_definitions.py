"""Explain why no cell defines an exercise: renamed, misspelled, nested in a class, or in a text cell."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from autograder.checking.similar_names import is_similar_name
from autograder.intake.notebook.cell_reader import CellReader
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.problem import Problem
from autograder.static_analysis.cell_names import cell_magic, defined_names

KIND = "exercise not defined"
# Comparing names is slow: compare at most this many of a notebook's names with the exercises' names.
_COMPARED = 500
# Code that may define names that its text does not show.
_OPAQUE = re.compile(
    r"\b(?:exec|eval|globals|setattr|run_cell|run_line_magic)\s*\(|import[ \t]+\*|^[ \t]*%(?:run|load)\b", re.MULTILINE
)


def explain_missing(
    missing: Mapping[str, Any],
    silent: frozenset[str],
    cells: Sequence[tuple[int, Any]],
    manifest: Manifest,
    reader: CellReader,
) -> list[Problem]:
    """Explain exercises without a valid definition by what the notebook contains instead; untouched ones are skipped.

    Args:
        missing: the exercises, each with the student's cell that carries its name, or None.
        silent: those whose cell does not define them at all; the others have their empty stub.
        cells: the student's cells, with their numbers in the file.
    """
    released = {name for cell in manifest.cells for name in (cell.name, *defined_names(cell.source))}
    own_names = []
    remaining = _COMPARED
    for number, cell in cells:
        written = reader.outline(cell["source"]).written if cell["cell_type"] == "code" else frozenset()
        if names := sorted(written - released)[:remaining]:
            own_names.append((number, cell, names))
            remaining -= len(names)
    problems = []
    for name, claimed in missing.items():
        empty = name not in silent
        problem = (
            _explain_nested(name, cells, reader)
            or _explain_not_run(name, cells, reader)
            or _explain_misnamed(name, claimed, own_names, reader, empty=empty)
        )
        if problem is None and name in silent and claimed is not None and not _OPAQUE.search(claimed.source):
            message = f"The cell of {name} does not define it" + ("." if claimed.source.strip() else ": it is empty.")
            problem = Problem(KIND, message, name, f"Define {name} in its own cell, at the left margin.")
        if problem is not None:
            problems.append(problem)
    return problems


def _explain_nested(name: str, cells: Sequence[tuple[int, Any]], reader: CellReader) -> Problem | None:
    for number, cell in cells:
        if cell["cell_type"] == "code" and (outer := reader.outline(cell["source"]).buried.get(name)):
            message = f"{name} is defined inside the {outer} of cell {number}, where the check cannot find it."
            return Problem(KIND, message, name, "Move it out of there, to the left margin.")
    return None


def _explain_not_run(name: str, cells: Sequence[tuple[int, Any]], reader: CellReader) -> Problem | None:
    for number, cell in cells:
        if name not in reader.find_mentioned(cell["source"]):
            continue
        if cell["cell_type"] != "code":
            message = f"{name} stands in cell {number}, which is a {cell['cell_type']} cell and does not run."
            return Problem(KIND, message, name, "Turn that cell into code.")
        if magic := cell_magic(cell["source"]):
            message = f"{name} stands in cell {number}, which begins with {magic}: its text is not run as Python."
            return Problem(KIND, message, name, f"Take the line {magic} away.")
    return None


def _explain_misnamed(
    name: str, claimed: Any, cells: Sequence[tuple[int, Any, Sequence[str]]], reader: CellReader, *, empty: bool
) -> Problem | None:
    for number, cell, others in cells:
        likely = [other for other in others if is_similar_name(other, name)]
        if not likely and cell is claimed:
            likely = [other for other in others if other in reader.find_mentioned(cell["source"])]
        if likely:
            message = f"{name} is still empty" if empty else f"No cell defines {name}"
            message += f"; cell {number} defines {likely[0]}."
            return Problem(KIND, message, name, f"If that is it, rename it: {name}.")
    return None
