"""Say which lines and expressions of a definition can be asked about."""

from __future__ import annotations

import ast
import io
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_EXPRESSION = 60


def docstring_lines(tree: ast.AST) -> tuple[int, ...]:
    """Return the lines of texts that stand alone."""
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
    return tuple(sorted({line for node in texts for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}))


@dataclass(frozen=True)
class Place:
    """The place of an expression that can be recorded."""

    line: int
    text: str  # its text, or the variable to which it is assigned; empty if it is long
    assigns: bool  # whether its statement assigns it to one variable
    in_loop: bool  # whether it is within a loop


def expressions(source: str, tree: ast.Module) -> dict[int, Place]:
    """Return the expressions whose values can be recorded, by the identity of their nodes."""
    found: dict[int, Place] = {}
    # `ast.get_source_segment` splits the source again for every node.
    lines = [line.encode() for line in io.StringIO(source, newline=None)]
    loops = [range(node.lineno, (node.end_lineno or 0) + 1) for node in ast.walk(tree) if isinstance(node, _LOOPS)]
    for statement in (s for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) for s in f.body):
        for node in _expressions(statement):
            on_one_line = node.lineno == node.end_lineno
            text = lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode() if on_one_line else ""
            found[id(node)] = Place(node.lineno, text if len(text) <= LONGEST_EXPRESSION else "", False, False)
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                inside = any(node.lineno in loop for loop in loops)
                found[id(node.value)] = Place(node.end_lineno or node.lineno, node.targets[0].id, True, inside)
    return found


_LOOPS = (ast.For, ast.While)
# Expressions whose shape is that of their first part.
_SAME_SHAPE = ("shape", "to", "float", "double", "clone", "contiguous", "detach")
# Where a value may not be replaced by a call: it is stored to, called, or only written down.
_PARTS_LEFT_OUT = {"targets", "target", "annotation"}


def _attribute(node: ast.AST) -> str:
    """Return the attribute that an expression looks up or calls, or an empty text."""
    inner = node.func if isinstance(node, ast.Call) else node
    return inner.attr if isinstance(inner, ast.Attribute) else ""


def _expressions(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.JoinedStr, ast.Assert, ast.Raise, ast.Match)):
        return
    is_value = isinstance(node, (ast.Call, ast.BinOp, ast.Subscript, ast.Attribute, ast.IfExp, ast.Compare))
    if is_value and isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and _attribute(node) not in _SAME_SHAPE:
        assert isinstance(node, ast.expr)
        yield node
    for name, value in ast.iter_fields(node):
        if name in _PARTS_LEFT_OUT:
            continue
        if name == "func":
            # Of `x.transpose(1, 2)` only x can be recorded; the method itself has no shape.
            value = getattr(value, "value", None)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, ast.AST) and not isinstance(item, ast.expr_context):
                yield from _expressions(item)
