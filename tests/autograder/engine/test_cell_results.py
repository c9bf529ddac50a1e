"""A notebook keeps a limited amount of output, whatever each cell keeps, and every result and error of a test."""

from __future__ import annotations

import copy
import json
from typing import Any

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from autograder.engine.checker.cell_results import LONGEST_OUTPUTS, limit_outputs
from autograder.engine.interface import Submission
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.engine import Engine

TEST = {"nbgrader": {"grade_id": "test_f", "grade": True, "locked": True, "solution": False, "points": 1}}
PRINTED = 199_000


def printed(text: str) -> Any:
    return new_output("stream", name="stdout", text=text)


def sizes(notebook: Any) -> list[list[int]]:
    return [[len(output.get("text", "")) for output in cell.outputs] for cell in notebook.cells if "outputs" in cell]


def test_a_thousand_cells_keep_no_more_than_the_limit() -> None:
    notebook = new_notebook(cells=[new_code_cell("f()", outputs=[printed("x" * PRINTED)]) for _ in range(1_000)])
    limit_outputs(notebook)
    kept = sizes(notebook)
    assert sum(map(sum, kept)) < LONGEST_OUTPUTS
    assert kept[:25] == [[PRINTED]] * 25
    assert kept[26:] == [[]] * 974
    assert "a notebook keeps 5,000,000 characters of output" in notebook.cells[25].outputs[0].text


def test_results_and_errors_of_tests_stay_and_other_errors_lose_their_traceback() -> None:
    result = new_output("execute_result", data={"text/plain": "1.0"}, execution_count=1)
    error = new_output("error", ename="E", evalue="x" * 1_000, traceback=["line"] * 50)
    notebook = new_notebook(
        cells=[
            new_code_cell("f()", outputs=[printed("x" * 900), error]),
            new_markdown_cell("Because."),
            new_code_cell("check(f)", outputs=[printed("x" * 900), result], metadata=TEST),
            new_code_cell("check(f)", outputs=[error], metadata=TEST),
        ]
    )
    before = copy.deepcopy(notebook)
    limit_outputs(notebook)
    assert notebook == before, "it is within the limit"
    limit_outputs(notebook, 1_000)
    first, _, second, third = notebook.cells
    assert [output.output_type for output in first.outputs] == ["stream", "stream", "error"]
    assert (len(first.outputs[2].evalue), first.outputs[2].traceback) == (200, [])
    assert second.outputs == [result]
    assert third.outputs == [error]


def test_the_engine_returns_no_more_than_the_limit() -> None:
    notebook = new_notebook(cells=[new_code_cell(f"print('x' * {PRINTED})") for _ in range(40)])
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{number}"
    engine = Engine(GradingSettings(allow_weaker=True))
    try:
        execution = engine.grade_one(Submission("eve", "03_scaled_dot_product", json.dumps(notebook)))
    finally:
        engine.close()
    assert execution.failure == ""
    assert 25 * PRINTED < len(execution.notebook) < LONGEST_OUTPUTS + 100_000
