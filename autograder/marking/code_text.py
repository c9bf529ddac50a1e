"""Show students' code and messages as inert text without hidden characters.

Protects against:

- markup: every character is escaped
- characters that reorder or hide text: controls, bidirectional marks and lone surrogates are shown by their number
- long texts: lines and texts are truncated with a notice

Does not protect against:

- code that takes long to highlight or compare: ``answer_texts.py`` calls this module in a process with a time limit
"""

from __future__ import annotations

import difflib
import html
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from autograder.grading.feedback.markup import plain_html, python_html

_LONGEST_LINE, _MOST_LINES, _MOST_CHARACTERS = 400, 400, 20_000
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u115f\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_CLASSES = {"+": "added", "-": "removed", "@": "position"}


def escape_invisible(text: str) -> str:
    """Replace characters that cannot be seen by their escaped code points."""
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))


def shortened_lines(text: str) -> list[str]:
    """Split a text into lines for a page: escape invisible characters, and truncate long lines and long texts."""
    lines = []
    rest = _MOST_CHARACTERS
    every = text.replace("\r\n", "\n").rstrip("\n").split("\n")
    for line in every[:_MOST_LINES]:
        if rest <= 0:
            break
        cut = line[: min(rest, _LONGEST_LINE)]
        end = f" … ({len(line):,} characters)" if len(cut) < len(line) else ""
        lines.append(escape_invisible(cut) + end)
        rest -= len(cut)
    if len(lines) < len(every):
        lines.append(f"… ({len(every):,} lines)")
    return lines


class CodeView(NamedTuple):
    """A group's code as HTML."""

    code: str  # the first member's code
    differences: Sequence[str]  # how each of the others differs from it; empty where one does not
    reference: str  # how the first differs from the reference solution; empty if it does not


def view_group_code(source: str, others: Sequence[str], reference: str, *, plain: bool = False) -> CodeView:
    """Return a group's code, and its differences from the other members and the reference, as HTML.

    Args:
        source: the first member's code.
        others: the code of other members.
        reference: the reference solution; empty if it is unknown.
        plain: whether the first member's code is shown without highlighted differences.
    """
    if plain:
        return CodeView(plain_html("\n".join(shortened_lines(source))), [""] * len(others), "")
    differences = [diff_html(source, other) for other in others]
    return CodeView(code_html(source), differences, diff_html(reference, source) if reference else "")


def code_html(source: str) -> str:
    """Return code as HTML, highlighted with Pygments' short class names."""
    return python_html("\n".join(shortened_lines(source)))


def diff_lines(before: str, after: str) -> list[str]:
    """Return the lines of a unified diff without its header; empty if the texts are equal."""
    first, second = shortened_lines(before), shortened_lines(after)
    return list(difflib.unified_diff(first, second, lineterm=""))[2:]


def diff_html(before: str, after: str) -> str:
    """Return the diff of two texts as HTML; empty if they are equal."""
    return "\n".join(_highlight_diff(diff_lines(before, after)))


def _highlight_diff(lines: list[str]) -> Iterator[str]:
    for line in lines:
        escaped = html.escape(line)
        kind = _CLASSES.get(line[:1])
        yield f'<span class="{kind}">{escaped}</span>' if kind else escaped
