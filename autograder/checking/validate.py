"""The pre-check: what the visible part of the grader says about a notebook, before it is handed in.

It runs the notebook's code cells in a fresh IPython shell and puts every exercise that they define to its check. The command of a student
build is here too (``tfcourse validate NOTEBOOK``), because it must work with nothing but what that build has.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.checking.verdict import Verdict
from tfcourse import check


class NotebookError(Exception):
    """A file that cannot be checked; the message says why and what to do."""


@dataclass(frozen=True)
class CellError:
    """A code cell that raised.

    Attributes:
        cell: the cell's number among the code cells, from 1.
        first_line: the cell's first line.
        error: the exception, as ``"TypeError: …"``.
    """

    cell: int
    first_line: str
    error: str


@dataclass(frozen=True)
class Validation:
    """What the pre-check found.

    Attributes:
        verdicts: one per exercise, in the order of the notebook.
        missing: exercises that the notebook asks for and does not define.
        errors: code cells that raised.
        seconds: how long it took.
    """

    verdicts: tuple[Verdict, ...]
    missing: tuple[str, ...]
    errors: tuple[CellError, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every exercise of the notebook has full marks on the visible questions."""
        return not self.missing and all(verdict.passed for verdict in self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, ready for JSON."""
        return {
            "passed": self.passed,
            "score": sum(verdict.score for verdict in self.verdicts),
            "max_score": sum(verdict.max_score for verdict in self.verdicts),
            "missing": list(self.missing),
            "errors": [vars(error) for error in self.errors],
            "verdicts": [verdict.to_dict() for verdict in self.verdicts],
        }


def validate(path: Path) -> Validation:
    """Run a notebook's code and check every exercise in it.

    Args:
        path: an ``.ipynb`` file.

    Raises:
        NotebookError: if the file is no notebook, or has no exercise in it.
    """
    started = time.perf_counter()
    cells = _code_cells(path)
    asked = _exercises_asked_for(cells)
    if not asked:
        raise NotebookError(f"{path}: there is no exercise in this notebook. Is it a chapter's exercise notebook?")
    namespace, errors = _run([source for source in cells if not _is_test(source)])
    verdicts, missing = [], []
    for name in asked:
        candidate = namespace.get(name)
        if not callable(candidate):
            missing.append(name)
            continue
        try:
            verdicts.append(check(candidate))
        except LookupError:
            # A helper of the student's own that some cell passes to check(): not an exercise of this course.
            missing.append(name)
    return Validation(tuple(verdicts), tuple(missing), tuple(errors), time.perf_counter() - started)


def _code_cells(path: Path) -> list[str]:
    if not path.is_file():
        raise NotebookError(f"{path}: there is no such file. Give the path of your notebook (it ends in .ipynb).")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        cells = content["cells"] if "cells" in content else content["worksheets"][0]["cells"]
        sources = [cell.get("source", cell.get("input", "")) for cell in cells if cell["cell_type"] == "code"]
        return ["".join(source) for source in sources]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        advice = "Open it in Jupyter and save it again, or fetch a fresh copy of the chapter's notebook."
        raise NotebookError(
            f"{path}: this is not a Jupyter notebook ({type(error).__name__}: {error}). {advice}"
        ) from error


def _checked_name(source: str) -> str | None:
    """Return ``f`` if a cell's first statement is the call ``check(f)`` or ``check(f, …)``."""
    try:
        first = ast.parse(source).body[:1]
    except SyntaxError:
        return None
    match first:
        case [ast.Expr(ast.Call(func=ast.Name("check"), args=[ast.Name(name)]))]:
            return name
    return None


def _is_test(source: str) -> bool:
    return _checked_name(source) is not None


def _exercises_asked_for(cells: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(name for source in cells if (name := _checked_name(source))))


def _run(cells: Sequence[str]) -> tuple[dict[str, Any], list[CellError]]:
    """Run cells one after another as a notebook does: an error ends its cell, not the notebook."""
    try:
        from IPython.core.interactiveshell import InteractiveShell
    except ImportError as missing:
        raise NotebookError("IPython is needed to run a notebook's cells. Install it: pip install ipython") from missing
    shell = InteractiveShell.instance()
    errors = []
    for number, source in enumerate(cells, start=1):
        # What the cells print is the student's own business; a check's outcome is not read from it.
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            result = shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        if error is not None:
            first_line = next(iter(source.strip().splitlines()), "")
            errors.append(CellError(number, first_line, f"{type(error).__name__}: {error}"))
    namespace = dict(shell.user_ns)
    InteractiveShell.clear_instance()
    return namespace, errors


def describe(validation: Validation) -> str:
    """Return a validation as text for a terminal."""
    lines = [str(verdict) for verdict in validation.verdicts]
    lines += [f"{name}: not defined in this notebook" for name in validation.missing]
    for error in validation.errors:
        lines.append(f"code cell {error.cell} ({error.first_line[:60]}) raised {error.error}")
    score = sum(verdict.score for verdict in validation.verdicts)
    best = sum(verdict.max_score for verdict in validation.verdicts)
    lines.append(f"{score:g} of {best:g} points on the visible questions, in {validation.seconds:.1f} s")
    return "\n".join(lines)


def report(path: Path, *, as_json: bool, show: Callable[[str], Any] = print) -> int:
    """Validate a notebook, show the result, and return the exit code: 0 full marks, 1 something is missing."""
    validation = validate(path)
    show(json.dumps(validation.to_dict(), indent=2) if as_json else describe(validation))
    return 0 if validation.passed else 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command of a student build: ``tfcourse validate NOTEBOOK``."""
    parser = argparse.ArgumentParser(prog="tfcourse", description="Check your work before you hand it in.")
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("validate", help="run a notebook and check every exercise in it")
    command.add_argument("notebook", type=Path, help="for example 03_scaled_dot_product.ipynb")
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    options = parser.parse_args(arguments)
    try:
        return report(options.notebook, as_json=options.json)
    except NotebookError as error:
        print(f"tfcourse: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
