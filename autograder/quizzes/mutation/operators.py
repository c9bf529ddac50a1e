"""Apply the mutation operators to a definition, one change at a time.

Some changes are excluded, because no check can or should detect them:

- error messages and the code that computes them, annotations, and ``assert``, which states what the code itself guarantees;
- ``strict=`` of ``zip``, and the order of commutative arguments (``maximum(a, b)``);
- an additional ``.clone()`` or ``.contiguous()``.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from autograder.quizzes.mutation import expressions, statements
from autograder.quizzes.mutation.guards import is_guard
from autograder.quizzes.mutation.places import Change, NodePosition


@dataclass(frozen=True)
class Mutation:
    """A definition with one change."""

    operator: str  # the name of the mutation operator
    line: int  # the line of the change within the definition's code, from 1
    before: str  # the original code
    after: str  # the changed code
    code: str  # the whole changed definition


def list_mutations(code: str, *, guards: bool = True) -> list[Mutation]:
    """Return all distinct mutations of a definition, in the order of its lines.

    Args:
        code: the source of one function or class, at the left margin.
        guards: whether to change guards, too (:mod:`autograder.quizzes.mutation.guards`).
    """
    tree = ast.parse(code)
    texts = {ast.unparse(tree)}
    changes = []
    for position, (operator, new, shown) in list_changes(tree, guards=guards):
        text = position.render_changed(tree, new)
        if text not in texts:
            texts.add(text)
            line = int(getattr(position.node, "lineno", getattr(position.owner, "lineno", 1)))
            changes.append(Mutation(operator, line, _first_line(position.node), shown or _first_line(new), text))
    return sorted(changes, key=lambda mutation: mutation.line)


def list_changes(tree: ast.Module, *, guards: bool = True) -> Iterator[tuple[NodePosition, Change]]:
    """Yield every change of a definition with its position in the tree, possibly with duplicates."""
    for position in _find_positions(tree, guards=guards):
        for change in _change_node(position):
            yield position, change


def _first_line(node: Any) -> str:
    """Return the first line of a node's code, for example the head of a statement with a block."""
    if isinstance(node, list):
        return _first_line(node[0]) if node else "pass"
    return ast.unparse(node).strip().split("\n")[0]


# Fields of nodes without an effect on the behaviour.
_NOT_LOOKED_AT = {
    ast.Raise: {"exc", "cause"},
    ast.arg: {"annotation"},
    ast.AnnAssign: {"annotation"},
    ast.FunctionDef: {"returns"},
    ast.ClassDef: {"bases"},
    ast.JoinedStr: {"values"},
}


def _find_positions(owner: ast.AST, *, guards: bool) -> Iterator[NodePosition]:
    if isinstance(owner, ast.Assert):
        return
    for field, value in ast.iter_fields(owner):
        if field in _NOT_LOOKED_AT.get(type(owner), ()):
            continue
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.keyword) and node.arg == "strict":
                continue
            if isinstance(node, ast.AST) and (guards or not is_guard(node)):
                yield NodePosition(node, owner, field, index)
                yield from _find_positions(node, guards=guards)


def _change_node(position: NodePosition) -> Iterator[Change]:
    node = position.node
    for kind, operators in _BY_KIND:
        if isinstance(node, kind):
            for operator in operators:
                yield from operator(position)


_BY_KIND: list[tuple[Any, tuple[Callable[[NodePosition], Iterator[Change]], ...]]] = [
    (ast.Compare, (expressions.mutate_comparison,)),
    ((ast.BinOp, ast.AugAssign), (expressions.mutate_arithmetic,)),
    (ast.UnaryOp, (expressions.remove_sign, expressions.mutate_constant)),
    (ast.BoolOp, (expressions.mutate_boolean,)),
    (ast.Constant, (expressions.mutate_constant,)),
    (ast.IfExp, (expressions.choose_branch,)),
    (ast.comprehension, (expressions.drop_filters,)),
    (ast.Call, (expressions.mutate_call,)),
    ((ast.If, ast.While), (statements.mutate_condition,)),
    (
        (ast.Raise, ast.Expr, ast.Assign, ast.AugAssign, ast.Break, ast.Continue, ast.Delete),
        (statements.drop_statement,),
    ),
    (ast.With, (statements.drop_gradient_mode,)),
    ((ast.FunctionDef, ast.ClassDef), (statements.drop_decorators,)),
    ((ast.Assign, ast.Return), (statements.wrap_value,)),
]
