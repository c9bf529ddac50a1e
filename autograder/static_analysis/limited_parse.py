"""Parse students' Python after a check of its length and depth.

The trusted side parses such code only here.

Python's parser looks for a better message when it has found an error, and some of its rules then try every reading of each bracket around
it: exponential time for a hundred characters. Nothing can stop a parser in the same process, so texts nested that deep are not parsed.

On Python 3.12 and later, where a text within braces may have quotes of the same kind, such quotes can hide brackets from this module.
"""

from __future__ import annotations

import ast
import re
import warnings

# A text of more characters is not parsed; nobody writes one.
LONGEST = 200_000
# Brackets that may be open at once. In the course's solutions it is five; of 20,000 files of installed packages, 30 have more.
MOST_BRACKETS = 25
# An escaped character, quotes with the letters before them, the begin of a comment, the end of a line, and brackets.
_MARKS = re.compile(r"""\\.|(?:\b[a-zA-Z]{1,2})?(?:'''|\"\"\"|['"])|[#\n()\[\]{}]""", re.DOTALL)


class UnreadableCellError(Exception):
    """An error because a cell that may run cannot be parsed here."""


def parse_text(text: str) -> ast.Module:
    """Return the syntax tree of a text.

    Args:
        text: Python.

    Raises:
        UnreadableCellError: if it is too long, or its brackets are nested too deep.
        SyntaxError, ValueError, RecursionError, MemoryError: as :func:`ast.parse` does.
    """
    if len(text) > LONGEST:
        raise UnreadableCellError(f"a cell of {len(text)} characters, which is too long to be read")
    if bracket_depth(text) > MOST_BRACKETS:
        raise UnreadableCellError("a cell whose brackets are nested too deep to be read")
    with warnings.catch_warnings():
        # What Python thinks of a student's escapes is not for the grader's terminal, and no error.
        warnings.simplefilter("ignore")
        return ast.parse(text)


def bracket_depth(text: str) -> int:
    """Return the maximum depth of open brackets.

    Brackets in an f-string never count as closed.
    """
    depth = most = inside = 0
    quote, holds_code, comment = "", False, False
    for match in _MARKS.finditer(text):
        mark = match[0]
        if mark.endswith("\n"):
            comment = False
            # A line's end also ends a text, unless it is escaped or the text has three quotes.
            quote = quote if len(quote) == 3 or mark != "\n" else ""
        elif comment or mark[0] == "\\":
            continue
        elif quote:
            if mark.endswith(quote):
                quote = ""
            elif holds_code and mark in "([{":
                inside += 1
        elif mark[-1] in "'\"":
            prefix = mark.rstrip("'\"")
            quote, holds_code, inside = mark[len(prefix) :], "f" in prefix.casefold(), 0
        elif mark == "#":
            comment = True
        else:
            depth = depth + 1 if mark in "([{" else max(0, depth - 1)
        most = max(most, depth + (inside if quote else 0))
    return most
