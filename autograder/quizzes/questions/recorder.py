"""Record the values of expressions: rewrite a definition so that each of them passes through a function."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from autograder.quizzes.questions.code import Code
from autograder.quizzes.questions.lines import expressions

RECORD = "__record_of_questions__"


def recording_tree(code: Code) -> tuple[ast.Module, dict[int, tuple[int, str]]]:
    """Return a definition that records its expressions, and the line and text of each by its number."""
    tree = ast.parse(code.source)
    found = expressions(code.source, tree)
    numbers = {identity: number for number, identity in enumerate(found)}
    changed = _Wrapper(numbers).visit(tree)
    return ast.fix_missing_locations(changed), {numbers[identity]: place for identity, place in found.items()}


class _Wrapper(ast.NodeTransformer):
    """Puts a call of the recording function around nodes.

    Args:
        numbers: the number of each node by its identity.
    """

    def __init__(self, numbers: Mapping[int, int]) -> None:
        self._numbers = numbers

    def visit(self, node: ast.AST) -> Any:
        number = self._numbers.get(id(node))
        changed = self.generic_visit(node)
        if number is None:
            return changed
        assert isinstance(node, ast.expr)
        assert isinstance(changed, ast.expr)
        call = ast.Call(ast.Name(RECORD, ast.Load()), [ast.Constant(number), changed], [])
        return ast.copy_location(call, node)
