"""Find the definitions that a student wrote, and the notebook that runs them for questions."""

from __future__ import annotations

import ast
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from autograder.intake.notebook.test_cells import is_locked, is_test
from autograder.quizzes.questions.code import without_own_decorators
from autograder.static_analysis.cell_ast import UnreadableCellError, parse_cell

_ID = "questions-about-own-code"


def own_definitions(notebook: NotebookNode, names: Collection[str]) -> dict[str, str]:
    """Return the code of exercises in a student's cells, by exercise; of several definitions the last one counts.

    Args:
        notebook: the graded notebook.
        names: the exercises to look for.
    """
    found: dict[str, str] = {}
    for cell in notebook.cells:
        if cell.cell_type != "code" or is_test(cell) or is_locked(cell):
            continue
        # A cell or a definition that cannot be read has no questions.
        with suppress(UnreadableCellError, SyntaxError, ValueError, RecursionError, AssertionError):
            tree = parse_cell(cell.source)
            lines = cell.source.split("\n")
            for node in tree.body if tree is not None else ():
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
                    first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
                    found[node.name] = without_own_decorators("\n".join(lines[first - 1 : node.end_lineno]))
    return found


def with_questions(notebook: NotebookNode, sources: Mapping[str, str], mark: str, enough: int) -> str:
    """Return a notebook, as JSON, that runs a student's cells without tests and then prints facts about their code.

    Args:
        notebook: the graded notebook.
        sources: the definitions by exercise.
        mark: the beginning of a line with facts.
        enough: so many questions are wanted.
    """
    cells = [cell.copy() for cell in notebook.cells if cell.cell_type == "code" and not is_test(cell)]
    for cell in cells:
        cell.outputs, cell.execution_count = [], None
    call = (
        "from autograder.quizzes.questions.with_recordings import print_facts as __print_facts\n"
        f"__print_facts({dict(sources)!r}, globals(), {mark!r}, {enough})"
    )
    cells.append(new_code_cell(call, id=_ID))
    copy = notebook.copy()
    copy.cells, copy.metadata = cells, {}
    return json.dumps(copy)


def printed_facts(notebook: Mapping[str, Any], mark: str) -> list[Mapping[str, Any]]:
    """Return the facts that the last cell of an executed notebook printed; malformed lines are left out.

    Raises:
        LookupError: if the cell ended with an error; the text gives it.
    """
    outputs = notebook["cells"][-1].get("outputs", [])
    text = "".join(_text(output) for output in outputs if output.get("output_type") == "stream")
    facts: list[Mapping[str, Any]] = []
    for line in text.split("\n"):
        if line.startswith(mark):
            try:
                one = json.loads(line.removeprefix(mark))
            except (ValueError, RecursionError):
                continue
            facts += [one] if isinstance(one, dict) else []
    errors = [output for output in outputs if output.get("output_type") == "error"]
    if errors and not facts:
        raise LookupError(f"{errors[0].get('ename')}: {errors[0].get('evalue')}")
    return facts


def _text(output: Mapping[str, Any]) -> str:
    text: str | Sequence[str] = output.get("text", "")
    return text if isinstance(text, str) else "".join(text)
