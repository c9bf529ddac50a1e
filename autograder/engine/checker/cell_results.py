"""Write to a cell what came of running it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from nbformat import NotebookNode
from nbformat.notebooknode import from_dict

from autograder.engine.cell_outputs import Outputs


def show(cell: NotebookNode, outputs: Sequence[Mapping[str, Any]], begun: datetime) -> None:
    """Give a cell its outputs, and the times at which it ran."""
    cell.outputs = from_dict(outputs)
    cell.execution_count = None
    times = {"iopub.status.busy": begun.isoformat(), "shell.execute_reply": datetime.now(UTC).isoformat()}
    cell.metadata["execution"] = times


def printed_by(outputs: Outputs) -> Callable[[Mapping[str, Any]], None]:
    """Keep what a student's code prints while it is tested. Results and errors of a graded cell come from the checker alone."""

    def take(output: Mapping[str, Any]) -> None:
        if output.get("output_type") == "stream":
            outputs.add(output)

    return take


def has_error(cell: NotebookNode) -> bool:
    """Return whether a cell's outputs contain an error."""
    return any(output.output_type == "error" for output in cell.outputs)
