"""Recognise test cells and validate their scores."""

from __future__ import annotations

from typing import Any

from nbformat.v4 import new_output

from autograder.checking.verdict import VERDICT_MIME
from autograder.static_analysis.cell_names import checked_names, ends_in_check


def is_test(cell: Any) -> bool:
    """Return whether a cell is a test cell, whose result gives points."""
    mark = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(mark.get("grade")) and not mark.get("solution")


def is_locked(cell: Any) -> bool:
    """Return whether a cell's text belongs to the course and students must not edit it."""
    mark = cell.metadata.get("nbgrader", {})
    return bool(mark.get("locked")) and not mark.get("solution")


def name_of(cell: Any, index: int) -> str:
    """Return a cell's label: its name, or else its position."""
    return str(cell.metadata.get("nbgrader", {}).get("grade_id") or f"cell {index + 1}")


def error_output(kind: str, message: str) -> Any:
    """Build an error output of the grader; a test cell with it gets no points.

    Args:
        kind: what happened, in lower-case words; gives the error's name.
        message: what happened, as a sentence.
    """
    ename = "".join(part.capitalize() for part in kind.split())
    return new_output("error", ename=ename, evalue=message, traceback=[f"{ename}: {message}"])


def settle(cell: Any) -> str | None:
    """Enforce that a test cell's score comes from its verdict; return the reason if it does not, else None.

    Output on stderr becomes ordinary text: nbgrader would take all points for it, and a warning is no mistake.
    """
    for output in cell.outputs:
        if output.output_type == "stream":
            output.name = "stdout"
    if any(output.output_type == "error" for output in cell.outputs):
        # nbgrader reads the first output, and an error must cost the points at any position.
        cell.outputs = [output for output in cell.outputs if output.output_type != "execute_result"]
        return None
    return _no_score(cell) if ends_in_check(cell.source) else None


def _no_score(cell: Any) -> str | None:
    """Return why a test cell's outputs hold no score, or None. Without this, nbgrader would give such a cell full points."""
    results = [output for output in cell.outputs if output.output_type == "execute_result"]
    if len(results) != 1:
        return f"The check should leave one result, it left {len(results)}."
    data = results[0].data
    try:
        score = float(data["text/plain"])
    except (KeyError, TypeError, ValueError):
        return "The result of the check is not a score."
    if not isinstance(data.get(VERDICT_MIME), dict):
        return "The result of the check carries no verdict."
    if problem := _not_its_own(data[VERDICT_MIME], cell.source, score):
        return problem
    if not 0 <= score <= cell.metadata.nbgrader["points"]:
        return f"The check gave {score:g} points, the cell is worth {cell.metadata.nbgrader['points']:g}."
    return None


def _not_its_own(verdict: dict[str, Any], source: str, score: float) -> str | None:
    """Return why a verdict does not belong to its cell, or None: student code may bind an exercise's name to another function."""
    expected = checked_names(source)
    if verdict.get("exercise") not in expected:
        return f"The check was given {verdict.get('exercise')} in the place of {' or '.join(sorted(expected))}."
    if verdict.get("score") != score:
        return f"The check shows {score:g} points, its verdict says {verdict.get('score')}."
    return None
