"""Write the results of a run to a notebook: outputs within limits, grader errors and remarks for instructors."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from nbformat import NotebookNode
from nbformat.notebooknode import from_dict
from nbformat.v4 import new_output

from autograder.engine.cell_outputs import Outputs
from autograder.intake.notebook.problem import Problem, read_problems
from autograder.intake.notebook.test_cells import error_output, is_locked, is_test
from autograder.static_analysis.suspicious_code import find_suspicious


def show_outputs(cell: NotebookNode, outputs: Sequence[Mapping[str, Any]], begun: datetime) -> None:
    """Set a cell's outputs, and the times at which it ran."""
    cell.outputs = from_dict(outputs)
    cell.execution_count = None
    times = {"iopub.status.busy": begun.isoformat(), "shell.execute_reply": datetime.now(UTC).isoformat()}
    cell.metadata["execution"] = times


def set_grader_error(cell: NotebookNode, kind: str, message: str) -> None:
    """Set a grader's error as a cell's output, after its printed text; a test cell then gets no points."""
    streams = [output for output in cell.get("outputs", []) if output.output_type == "stream"]
    cell.outputs = [*streams, error_output(kind, message)]


def is_refused(notebook: NotebookNode) -> bool:
    """Return whether a notebook has a fatal problem and must not run, and set it as the test cells' error."""
    fatal = next((problem for problem in read_problems(notebook) if problem.fatal), None)
    if fatal is not None:
        refuse_notebook(notebook, fatal.what)
    return fatal is not None


def refuse_notebook(notebook: NotebookNode, message: str) -> None:
    """Set an error as the output of all test cells of a notebook that cannot be graded."""
    for cell in notebook.cells:
        if is_test(cell):
            cell.outputs = [error_output("not gradable", message)]


def collect_printed(outputs: Outputs) -> Callable[[Mapping[str, Any]], None]:
    """Return a function that adds only stream outputs: a graded cell's results and errors come from the checker."""

    def take(output: Mapping[str, Any]) -> None:
        if output.get("output_type") == "stream":
            outputs.add(output)

    return take


def has_error(cell: NotebookNode) -> bool:
    """Return whether a cell's outputs contain an error."""
    return any(output.output_type == "error" for output in cell.outputs)


# Characters of all outputs of a notebook.
LONGEST_OUTPUTS = 5_000_000
_LONGEST_ERROR = 200
_GRADERS = ("error", "execute_result")


def limit_outputs(notebook: Any, most: int = LONGEST_OUTPUTS) -> None:
    """Remove outputs beyond a limit from an executed notebook in place, except results and errors of test cells.

    Args:
        most: how many characters all outputs together may have.
    """
    remaining = most
    noted = False
    for cell in notebook.cells:
        if cell.cell_type != "code" or not cell.outputs:
            continue
        outputs = []
        for output in cell.outputs:
            size = len(json.dumps(output))
            if size <= remaining or (is_test(cell) and output.output_type in _GRADERS):
                remaining -= size
                outputs.append(output)
                continue
            remaining = 0
            if not noted:
                noted = True
                note = f"\n[what follows is left out: a notebook keeps {most:,} characters of output]\n"
                outputs.append(new_output("stream", name="stdout", text=note))
            if output.output_type == "error":
                outputs.append(_drop_traceback(output))
        cell.outputs = outputs


def _drop_traceback(error: Any) -> Any:
    """Return an error output without its traceback, so that a failed cell still shows its failure."""
    return new_output("error", ename=error.ename[:_LONGEST_ERROR], evalue=error.evalue[:_LONGEST_ERROR], traceback=[])


# A remark lists this many events.
_MOST_EVENTS = 12


def list_remarks(notebook: NotebookNode, reported: Sequence[str]) -> list[Problem]:
    """Return the remarks for the instructor on an executed notebook.

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
