"""Test cells: which cells they are, and whether what one has left is a score."""

from __future__ import annotations

from typing import Any

from nbformat.v4 import new_output

from autograder.checking.verdict import VERDICT_MIME
from autograder.static_analysis.cell_names import checked_names, ends_in_check


def is_test(cell: Any) -> bool:
    """Return whether a cell is one whose outcome gives points."""
    mark = cell.metadata.get("nbgrader", {})
    return cell.cell_type == "code" and bool(mark.get("grade")) and not mark.get("solution")


def is_locked(cell: Any) -> bool:
    """Return whether a cell's text is the course's own, and no student writes in it."""
    mark = cell.metadata.get("nbgrader", {})
    return bool(mark.get("locked")) and not mark.get("solution")


def name_of(cell: Any, index: int) -> str:
    """Return what a cell is called: its name, or its place."""
    return str(cell.metadata.get("nbgrader", {}).get("grade_id") or f"cell {index + 1}")


def error_output(kind: str, message: str) -> Any:
    """Return an error of the grader's own, as the output of a cell; in a test cell it costs the points.

    Args:
        kind: what happened, in lower-case words; the error's name is made of it.
        message: what happened, as a sentence.
    """
    ename = "".join(part.capitalize() for part in kind.split())
    return new_output("error", ename=ename, evalue=message, traceback=[f"{ename}: {message}"])


def settle(cell: Any) -> str | None:
    """See to it that a test cell's score is its verdict and nothing else; say why it is not, or return None.

    What was printed becomes ordinary text: nbgrader takes all points for a word on stderr, and a warning is no mistake.
    """
    for output in cell.outputs:
        if output.output_type == "stream":
            output.name = "stdout"
    if any(output.output_type == "error" for output in cell.outputs):
        # nbgrader goes by what comes first, and an error costs the points wherever it stands.
        cell.outputs = [output for output in cell.outputs if output.output_type != "execute_result"]
        return None
    return _no_score(cell) if ends_in_check(cell.source) else None


def _no_score(cell: Any) -> str | None:
    """Say why a test cell's outputs hold no score, or return None. Without this nbgrader would give such a cell full points."""
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
    """Say why a verdict is not the one that its cell asked for, or return None: a name may have been given to another function."""
    expected = checked_names(source)
    if verdict.get("exercise") not in expected:
        return f"The check was given {verdict.get('exercise')} in the place of {' or '.join(sorted(expected))}."
    if verdict.get("score") != score:
        return f"The check shows {score:g} points, its verdict says {verdict.get('score')}."
    return None
