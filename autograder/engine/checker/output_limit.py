"""Limit the total outputs of a notebook, because the limits per cell add up over many cells."""

from __future__ import annotations

import json
from typing import Any

from nbformat.v4 import new_output

from autograder.intake.notebook.test_cells import is_test

# Characters of all outputs of a notebook.
LONGEST_OUTPUTS = 5_000_000
_LONGEST_ERROR = 200
_GRADERS = ("error", "execute_result")


def limit_outputs(notebook: Any, most: int = LONGEST_OUTPUTS) -> None:
    """Drop from an executed notebook, in place, the outputs beyond a limit. Results and errors of test cells stay.

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
                outputs.append(_shortened(output))
        cell.outputs = outputs


def _shortened(error: Any) -> Any:
    """Return an error without its traceback, so that a failed cell still shows that it failed."""
    return new_output("error", ename=error.ename[:_LONGEST_ERROR], evalue=error.evalue[:_LONGEST_ERROR], traceback=[])
