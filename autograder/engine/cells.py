"""A student's code cells as Python's parser sees them: read once for all who look through them, never run."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, eq=False)
class Statement:
    """A statement at the top level of a cell.

    Attributes:
        nodes: the statement itself, and all nodes below it.
    """

    nodes: Sequence[ast.AST]

    @property
    def top(self) -> ast.AST:
        """The statement itself."""
        return self.nodes[0]


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell that Python can parse.

    Attributes:
        statements: its statements, in order.
    """

    statements: Sequence[Statement]

    @property
    def nodes(self) -> Sequence[ast.AST]:
        """All nodes of the cell."""
        return [node for statement in self.statements for node in statement.nodes]


@lru_cache(maxsize=256)
def parsed(source: str) -> Cell | None:
    """Return a cell, or None if Python cannot parse it.

    Args:
        source: its text. A line of IPython's own is no Python; what stands around it is.
    """
    try:
        return Cell([Statement(walk(statement)) for statement in ast.parse(_plain(source)).body])
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def syntax_fault(source: str) -> str:
    """Return what Python's parser has against a cell, with the line, or nothing. Its text alone decides about that.

    Args:
        source: its text.
    """
    try:
        ast.parse(_plain(source))
    except SyntaxError as fault:
        return f"{fault.msg} (line {fault.lineno})"
    except (ValueError, RecursionError, MemoryError):
        pass
    return ""


def _plain(source: str) -> str:
    """Return a cell's text with nothing done in the lines that are IPython's own."""
    return "\n".join("pass" if line.lstrip().startswith(("%", "!", "?")) else line for line in source.splitlines())


def walk(root: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes below it, but for those that only say whether a name is read or written."""
    nodes = [root]
    for node in nodes:  # grows meanwhile
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list):
                nodes += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and name not in _NAMELESS:
                nodes.append(value)
    return nodes


_NAMELESS = frozenset({"ctx", "op"})


def last_name(node: ast.AST) -> str:
    """Return a name, or the last part of a dotted one: of `torch.nn.functional` it is `functional`; of anything else an empty text."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
