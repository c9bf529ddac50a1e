"""Collect what an instructor should read about a submission, though it costs no points."""

from __future__ import annotations

from collections.abc import Sequence

from nbformat import NotebookNode

from autograder.intake.notebook.problem import Problem
from autograder.intake.notebook.test_cells import is_locked, is_test
from autograder.static_analysis.suspicious_code import find_suspicious

# A remark lists this many events.
_MOST_EVENTS = 12


def remarks_on(notebook: NotebookNode, reported: Sequence[str]) -> list[Problem]:
    """Return the remarks on a notebook that has been run.

    Args:
        reported: the events that the student's processes reported (:mod:`autograder.engine.student.audit`).
    """
    code = [cell for cell in notebook.cells if cell.cell_type == "code" and not is_test(cell)]
    suspicious = find_suspicious([cell.source for cell in code if not is_locked(cell)])
    remarks = []
    if suspicious:
        remarks.append(f"Its code uses what no exercise needs: {', '.join(suspicious)}.")
    if reported:
        lines = [*reported[:_MOST_EVENTS], *["…"] * (len(reported) > _MOST_EVENTS)]
        remarks.append(f"While it ran, its code did what no exercise needs: it {'; it '.join(lines)}.")
    return [Problem("worth a look", text, do="It cost nothing; a person should read it.") for text in remarks]
