"""Recognise guards: statements that only reject invalid input.

The ``Raises`` section of an exercise's docstring specifies its behaviour for invalid input. Other guards in the reference only help
callers in lessons: students need not write them, no test requires them, and no mutant changes them.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from autograder.quizzes.mutation.places import called_name

_CHECKS = ("_check", "_require")


def promises_errors(reference: Callable[..., Any]) -> bool:
    """Return whether a docstring of a function, or of a class and its methods, has a ``Raises`` section."""
    owners = [reference, *vars(reference).values()] if isinstance(reference, type) else [reference]
    return any("Raises:" in (inspect.getdoc(owner) or "") for owner in owners if callable(owner))


def is_guard(node: ast.AST) -> bool:
    """Return whether a statement is an ``if`` that ends in ``raise``, or a call of a private function that checks its arguments."""
    if isinstance(node, ast.If):
        return not node.orelse and isinstance(node.body[-1], ast.Raise)
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    return is_call and called_name(node.value.func).startswith(_CHECKS)  # type: ignore[attr-defined]


def list_guard_lines(code: str) -> Iterator[int]:
    """Yield the line numbers of a definition's guards, from 1."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.stmt) and is_guard(node):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)
