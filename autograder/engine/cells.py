"""A student's code cells as Python's parser sees them: read once for all who look through them, never run.

This runs outside the sandbox, on texts that students choose. It protects against:

- deep syntax trees: a cell that is nested deeper than ``DEEPEST`` is not read, so whoever follows a tree by recursion comes to its end;
- cells that take long: reading one takes time in proportion to its length, at most ``LONGEST`` characters. IPython's own translation of
  its magics reads the whole cell again for each of them; here each statement is translated by itself, with a limit on the lines read;
- every exception of Python's parser: such a cell is one that cannot be read, and that is all.

It does not say what a cell does, and not being read keeps no cell from being run. How many cells a notebook has, and how much text in all,
``grading/reading.py`` limits.
"""

from __future__ import annotations

import ast
import re
import tokenize
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from IPython.core.inputtransformer2 import TransformerManager
from IPython.utils.tokenutil import generate_tokens_catch_errors

from autograder.engine.ordinary import MAGICS_OF_CELLS, MAGICS_OF_CODE

# A cell of more characters is not read; nobody writes one.
LONGEST = 200_000
# Code that people write has a depth of 30 at most; a visitor of the standard library needs five calls per level, and has a thousand.
DEEPEST = 150
# So many lines, for each line of a cell and besides, may be tokenized to translate its magics. Two are enough unless a magic opens a
# bracket or a text that nothing closes.
_TOKENIZED, _SPARE = 5, 200


class UnreadableCellError(ValueError):
    """A cell that is too long, too deep or too laborious to be read."""


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
    """Return a cell, or None if Python cannot parse it, or it is too long or too deep to be read.

    Args:
        source: its text. Lines of IPython's own are what IPython makes of them, and code that a magic runs stands before the call of it.
    """
    try:
        tree = _parse(_python(source))
        return Cell(
            [Statement(walk(part)) for statement in tree.body for part in (*_inside_magics(statement), statement)]
        )
    except _UNREADABLE:
        return None


def syntax_fault(source: str) -> str:
    """Return what Python's parser has against a cell, with the line, or nothing. Its text alone decides about that.

    Args:
        source: its text.
    """
    try:
        _parse(_python(source))
    except SyntaxError as fault:
        return f"{fault.msg} (line {fault.lineno})"
    except _UNREADABLE:
        pass
    return ""


# What Python's parser, or the translation before it, may raise for a text.
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def _parse(text: str) -> ast.Module:
    with warnings.catch_warnings():
        # What Python thinks of a student's escapes is not for the grader's terminal, and no error.
        warnings.simplefilter("ignore")
        return ast.parse(text)


def _python(source: str) -> str:
    """Return a cell's text as the Python that IPython makes of it and runs.

    Raises:
        UnreadableCellError: if it is too long, or would take too long.
    """
    if len(source) > LONGEST:
        raise UnreadableCellError(f"the cell has more than {LONGEST} characters")
    try:
        _parse(source)
    except SyntaxError:
        pass
    else:
        return source
    calls = []
    begin = 0
    while (magic := _CELL_MAGIC.match(source, begin)) and magic["name"] in MAGICS_OF_CELLS:
        # What it runs is the rest of the cell; for IPython itself that is a text.
        blank = "\n" * magic[0].count("\n")
        calls.append(f"get_ipython().run_line_magic({magic['name']!r}, {magic['line'].strip()!r}){blank}")
        begin = magic.end()
    return "".join(calls) + _translated(source[begin:])


def _translated(source: str) -> str:
    """Return what IPython makes of a cell, one statement at a time."""
    manager = TransformerManager()
    lines = (source if source.endswith("\n") else f"{source}\n").splitlines(keepends=True)
    for transform in (*manager.cleanup_transforms, *manager.line_transforms):
        lines = transform(lines)
    left = _TOKENIZED * len(lines) + _SPARE
    done: list[str] = []
    waiting = lines[::-1]
    while waiting:
        statement = _next_statement(waiting)
        left -= len(statement)
        if left < 0:
            raise UnreadableCellError("the cell has too many magics that nothing closes")
        changed, translated = manager.do_one_token_transform(statement)
        if changed:
            waiting += translated[::-1]
        else:
            done += translated
    return "".join(done)


def _next_statement(waiting: list[str]) -> list[str]:
    """Take the lines of the next statement from the end of a list; all lines if it does not end."""
    taken: list[str] = []

    def line() -> str:
        if not waiting:
            return ""
        taken.append(waiting.pop())
        return taken[-1]

    depth = 0
    with suppress(tokenize.TokenError):
        for token in generate_tokens_catch_errors(line):
            depth += token.type == tokenize.OP and token.string in {"(", "[", "{"}
            depth -= depth > 0 and token.type == tokenize.OP and token.string in {")", "]", "}"}
            if token.type == tokenize.NEWLINE or (token.type == tokenize.NL and depth == 0):
                break
    return taken


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
            found += _parse(code).body
    return found


_CELL_MAGIC = re.compile(r"\s*%%(?P<name>\w+)(?P<line>[^\n]*)(?:\n|$)")
_OPTIONS = re.compile(r"^(\s*-(?:[nrpts]\s*\w+|\w+)(?=\s|$))*\s*")


def walk(root: ast.AST) -> list[ast.AST]:
    """Return a node and all nodes below it, but for those that only say whether a name is read or written.

    Raises:
        UnreadableCellError: if they are nested deeper than those who follow them by recursion can go.
    """
    nodes = [root]
    depth, level_end = 0, 1
    for index, node in enumerate(nodes):  # grows meanwhile, level by level
        if index == level_end:
            depth, level_end = depth + 1, len(nodes)
            if depth > DEEPEST:
                raise UnreadableCellError(f"the cell is nested more than {DEEPEST} levels deep")
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
