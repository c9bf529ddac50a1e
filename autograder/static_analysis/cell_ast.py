"""Parse students' code cells without running them.

This runs outside the sandbox, on texts that students choose. It protects against:

- deep syntax trees: a cell that is nested deeper than ``DEEPEST`` is not read, so code that follows a tree by recursion ends;
- many open brackets, with which Python's parser may take exponential time: see ``limited_parse.py``;
- cells that take long: reading one takes time in proportion to its length, at most ``LONGEST`` characters. IPython's own translation of
  its magics reads the whole cell again for each of them; here each statement is translated by itself, with a limit on the lines read;
- every exception of Python's parser: such a cell is one that cannot be read, and that is all.

It does not say what a cell does, and not being read keeps no cell from being run. How many cells a notebook has, and how much text in all,
``intake/notebook/notebook_reader.py`` limits.
"""

from __future__ import annotations

import ast
import re
import tokenize
from contextlib import suppress
from functools import lru_cache

from IPython.core.inputtransformer2 import TransformerManager
from IPython.utils.tokenutil import generate_tokens_catch_errors

from autograder.static_analysis.limited_parse import LONGEST, UnreadableCellError, parse_text

__all__ = ["DEEPEST", "LONGEST", "UnreadableCellError", "parse_cell", "syntax_error"]

# Magics whose cell is Python, and runs.
_MAGICS_OF_CELLS = frozenset({"capture", "prun", "time", "timeit"})
# Code that people write has a depth of 30 at most; a visitor of the standard library needs five calls per level, and has a thousand.
DEEPEST = 150
# A line of more characters is not translated: IPython's tokenizer takes quadratic time for one.
_LONGEST_LINE = 5_000
# So many lines, for each line of a cell and besides, may be tokenized to translate its magics. Two are enough unless a magic opens a
# bracket or a text that nothing closes.
_TOKENIZED, _SPARE = 5, 200


@lru_cache(maxsize=256)
def parse_cell(source: str) -> ast.Module | None:
    """Return a cell's syntax tree, or None if the cell is not Python and so cannot run.

    Args:
        source: its text. Lines of IPython's own are what IPython makes of them, and code that a cell magic runs follows its call.

    Raises:
        UnreadableCellError: if it may run, but is too long, too deep or too laborious to be read.
    """
    try:
        tree = parse_text(_to_python(source))
    except SyntaxError:
        return None
    except (RecursionError, MemoryError):
        raise UnreadableCellError("a cell that is nested too deep to be read") from None
    except ValueError as error:
        if "null bytes" in str(error):
            return None
        raise UnreadableCellError("a cell that cannot be read") from None
    _require_shallow(tree)
    return tree


def syntax_error(source: str) -> str:
    """Return Python's syntax error for a cell with its line, or an empty string.

    Args:
        source: its text.
    """
    try:
        parse_text(_to_python(source))
    except SyntaxError as fault:
        return f"{fault.msg} (line {fault.lineno})"
    except _UNREADABLE:
        pass
    return ""


# What Python's parser, or the translation before it, may raise for a text.
_UNREADABLE = (UnreadableCellError, SyntaxError, ValueError, RecursionError, MemoryError)


def _to_python(source: str) -> str:
    """Return the Python code that IPython makes of a cell.

    Raises:
        UnreadableCellError: if it is too long, or would take too long.
    """
    try:
        parse_text(source)
    except SyntaxError:
        pass
    else:
        return source
    calls = []
    begin = 0
    while (magic := _CELL_MAGIC.match(source, begin)) and magic["name"] in _MAGICS_OF_CELLS:
        # What it runs is the rest of the cell; for IPython itself that is a text.
        blank = "\n" * magic[0].count("\n")
        calls.append(f"get_ipython().run_line_magic({magic['name']!r}, {magic['line'].strip()!r}){blank}")
        begin = magic.end()
    return "".join(calls) + _translate_magics(source[begin:])


def _translate_magics(source: str) -> str:
    """Translate a cell's IPython syntax to Python, one statement at a time."""
    manager = TransformerManager()
    lines = (source if source.endswith("\n") else f"{source}\n").splitlines(keepends=True)
    for transform in (*manager.cleanup_transforms, *manager.line_transforms):
        lines = transform(lines)
    if max(map(len, lines), default=0) > _LONGEST_LINE:
        raise UnreadableCellError("a cell with a line that is too long to be read")
    budget = _TOKENIZED * len(lines) + _SPARE
    done: list[str] = []
    waiting = lines[::-1]
    while waiting:
        statement = _next_statement(waiting)
        budget -= len(statement)
        if budget < 0:
            raise UnreadableCellError("a cell that cannot be read")
        changed, translated = manager.do_one_token_transform(statement)
        if changed:
            waiting += translated[::-1]
        else:
            done += translated
    return "".join(done)


def _next_statement(waiting: list[str]) -> list[str]:
    """Remove the lines of the next statement from a list and return them."""
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


_CELL_MAGIC = re.compile(r"\s*%%(?P<name>\w+)(?P<line>[^\n]*)(?:\n|$)")


def _require_shallow(root: ast.AST) -> None:
    """Raise an error if nodes are nested too deeply for recursive visitors."""
    level: list[ast.AST] = [root]
    for _ in range(DEEPEST + 1):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
        if not level:
            return
    raise UnreadableCellError("a cell that is nested too deep to be read")
