"""A student's code cells as Python's parser sees them: read, never run. What is too long or too deep to be read is said to be so."""

from __future__ import annotations

import ast
import warnings
from functools import lru_cache

from IPython.core.inputtransformer2 import TransformerManager

# Nobody writes a longer cell. IPython's own way with magics takes time that grows with the square of the text.
LONGEST, LONGEST_WITH_MAGICS = 200_000, 10_000


class UnreadableCellError(Exception):
    """A cell cannot be read, though it may run. The text says why."""


@lru_cache(maxsize=256)
def parsed(source: str) -> ast.Module | None:
    """Return the syntax tree of a cell, or None if it is no Python, so that it cannot run either.

    Args:
        source: its text; lines of IPython's own are what IPython makes of them.

    Raises:
        UnreadableCellError: if it is too long or too deep.
    """
    try:
        return _parse(source)
    except SyntaxError:
        return None


def syntax_fault(source: str) -> str:
    """Return what Python's parser has against a cell, with the line, or nothing. Its text alone decides about that.

    Args:
        source: its text.
    """
    try:
        _parse(source)
    except SyntaxError as fault:
        return f"{fault.msg} (line {fault.lineno})"
    except UnreadableCellError:
        pass
    return ""


def _parse(source: str) -> ast.Module:
    if len(source) > LONGEST:
        raise UnreadableCellError(f"a cell of {len(source)} characters, which is too long to be read")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return ast.parse(source)
            except SyntaxError:
                if len(source) > LONGEST_WITH_MAGICS:
                    raise
                return ast.parse(str(TransformerManager().transform_cell(source)))
    except (ValueError, RuntimeError) as error:  # a null byte; magics that IPython gives up on, and does not run either
        if isinstance(error, RecursionError):
            raise UnreadableCellError("a cell that is nested too deep to be read") from None
        raise SyntaxError("a character that no Python text has") from None
    except MemoryError:
        raise UnreadableCellError("a cell that is nested too deep to be read") from None
