"""A student's code cells as Python's parser sees them: read once for all who look through them, never run."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from IPython.core.inputtransformer2 import TransformerManager

from autograder.engine.ordinary import MAGICS_OF_CELLS, MAGICS_OF_CODE


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
        source: its text. Lines of IPython's own are what IPython makes of them, and code that a magic runs stands before the call of it.
    """
    try:
        tree = ast.parse(_python(source))
        return Cell(
            [Statement(walk(part)) for statement in tree.body for part in (*_inside_magics(statement), statement)]
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def syntax_fault(source: str) -> str:
    """Return what Python's parser has against a cell, with the line, or nothing. Its text alone decides about that.

    Args:
        source: its text.
    """
    try:
        ast.parse(_python(source))
    except SyntaxError as fault:
        return f"{fault.msg} (line {fault.lineno})"
    except (ValueError, RecursionError, MemoryError):
        pass
    return ""


def _python(source: str) -> str:
    """Return a cell's text as the Python that IPython makes of it and runs."""
    try:
        ast.parse(source)
    except SyntaxError:
        pass
    else:
        return source
    magic = _CELL_MAGIC.match(source)
    if magic and magic["name"] in MAGICS_OF_CELLS:
        # What it runs is the rest of the cell; for IPython itself that is a text.
        blank = "\n" * magic[0].count("\n")
        return f"get_ipython().run_line_magic({magic['name']!r}, {magic['line'].strip()!r}){blank}" + _python(
            source[magic.end() :]
        )
    return str(TransformerManager().transform_cell(source))


def code_of_magic(call: ast.AST) -> str | None:
    """Return the code that a call of a line magic such as ``%time`` runs, or None if it is no such call."""
    if not isinstance(call, ast.Call) or last_name(call.func) != "run_line_magic" or len(call.args) != 2:
        return None
    name, line = (arg.value if isinstance(arg, ast.Constant) else None for arg in call.args)
    return _OPTIONS.sub("", line) if name in MAGICS_OF_CODE and isinstance(line, str) else None


def _inside_magics(statement: ast.stmt) -> list[ast.stmt]:
    codes = [code for node in walk(statement) if (code := code_of_magic(node))]
    found: list[ast.stmt] = []
    for code in codes:
        with suppress(SyntaxError):  # then it does not run either
            found += ast.parse(code).body
    return found


_CELL_MAGIC = re.compile(r"\s*%%(?P<name>\w+)(?P<line>[^\n]*)(?:\n|$)")
_OPTIONS = re.compile(r"^(\s*-(?:[nrpts]\s*\w+|\w+)(?=\s|$))*\s*")


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
