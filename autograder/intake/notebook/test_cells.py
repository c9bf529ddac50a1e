"""Recognise test cells and validate their scores."""

from __future__ import annotations

from math import isnan
from typing import Any

from nbformat.v4 import new_output

from autograder.checking.verdict import VERDICT_MIME
from autograder.static_analysis.cell_names import checked_names, ends_in_check

# The problem of a test that gave a score which its cell cannot have. The test is at fault, so the submission gets no grade instead of 0.
OUT_OF_RANGE = "score out of range"
# A check's total is a sum of floating-point numbers.
_ROUNDING = 1e-6


def is_test(cell: Any) -> bool:
    """Return whether a cell is a test cell, whose result gives points."""
    mark = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(mark.get("grade")) and not mark.get("solution")


def is_locked(cell: Any) -> bool:
    """Return whether a cell's text belongs to the course and students must not edit it."""
    mark = cell.metadata.get("nbgrader", {})
    return bool(mark.get("locked")) and not mark.get("solution")


def cell_label(cell: Any, index: int) -> str:
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


def enforce_verdict(cell: Any) -> tuple[str, str] | None:
    """Ensure that a test cell's score comes from its verdict; otherwise return the kind of problem and the reason.

    Output on stderr becomes ordinary text: nbgrader would take all points for it, and a warning is no mistake.
    """
    for output in cell.outputs:
        if output.output_type == "stream":
            output.name = "stdout"
    if any(output.output_type == "error" for output in cell.outputs):
        # nbgrader reads the first output, and an error must cost the points at any position.
        cell.outputs = [output for output in cell.outputs if output.output_type != "execute_result"]
        return None
    if ends_in_check(cell.source) and (reason := _explain_missing_verdict(cell)):
        return "no verdict", reason
    reason = _explain_impossible_score(cell)
    return (OUT_OF_RANGE, reason) if reason else None


def _explain_missing_verdict(cell: Any) -> str | None:
    """Return the reason why a test cell shows no verdict, or None; nbgrader would give full points then."""
    results = _result_outputs(cell)
    if len(results) != 1:
        return f"The check should leave one result, it left {len(results)}."
    data = results[0].data
    try:
        score = float(data["text/plain"])
    except (KeyError, TypeError, ValueError):
        return "The result of the check is not a score."
    if not isinstance(data.get(VERDICT_MIME), dict):
        return "The result of the check carries no verdict."
    return _explain_foreign_verdict(data[VERDICT_MIME], cell.source, score)


def _explain_impossible_score(cell: Any) -> str | None:
    """Return the reason why a score is impossible for this cell, or None.

    nbgrader gives all points for a negative score and for NaN, and fails at a score above the cell's points.
    """
    results = _result_outputs(cell)
    try:
        score = float(results[0].data["text/plain"])
    except (IndexError, KeyError, TypeError, ValueError):
        return None  # nbgrader does not read this as a score
    best = max(float(cell.metadata.nbgrader["points"]), check_total(cell) or 0.0)
    return None if 0 <= score <= best else f"The test gave {score:g} points, of at most {best:g}."


def check_total(cell: Any) -> float | None:
    """Return the maximum points of the check whose verdict a test cell shows; None without a verdict."""
    for output in _result_outputs(cell):
        verdict = output.data.get(VERDICT_MIME)
        if isinstance(verdict, dict) and isinstance(verdict.get("max_score"), int | float):
            return float(verdict["max_score"])
    return None


def differing_totals(notebook: Any) -> dict[str, tuple[float, float]]:
    """Return the test cells whose points differ from their check's total: name to (total, points)."""
    tests = [(cell_label(cell, index), cell) for index, cell in enumerate(notebook.cells) if is_test(cell)]
    totals = {name: (check_total(cell), float(cell.metadata.nbgrader["points"])) for name, cell in tests}
    return {
        name: (total, points)
        for name, (total, points) in totals.items()
        if total is not None and abs(total - points) > _ROUNDING
    }


def _result_outputs(cell: Any) -> list[Any]:
    return [output for output in cell.outputs if output.output_type == "execute_result"]


def _explain_foreign_verdict(verdict: dict[str, Any], source: str, score: float) -> str | None:
    """Return the reason why a verdict does not belong to its cell, or None: a name may be bound to another function."""
    expected = checked_names(source)
    if verdict.get("exercise") not in expected:
        return f"The check was given {verdict.get('exercise')} in the place of {' or '.join(sorted(expected))}."
    if verdict.get("score") != score and not isnan(score):  # NaN, which is no score, differs from itself
        return f"The check shows {score:g} points, its verdict says {verdict.get('score')}."
    return None
