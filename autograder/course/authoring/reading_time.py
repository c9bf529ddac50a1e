"""Estimate how long a lesson takes to read, from its words and its shown code."""

from __future__ import annotations

import re

WORDS_PER_MINUTE = 200
LINES_PER_MINUTE = 10

_CELL = re.compile(r"```\{code-cell\}[^\n]*\n(.*?)\n```", re.DOTALL)
_FENCE = re.compile(r"```.*?\n```", re.DOTALL)
_OPTION = re.compile(r"^:(?:tags|mystnb):.*\n+", re.MULTILINE)
_HIDDEN = re.compile(r"^:tags: \[.*(?:hide-input|remove-input)", re.MULTILINE)


def reading_minutes(text: str) -> int:
    """Return the minutes that a lesson's text takes to read: its words, and the lines of code that are not folded.

    Args:
        text: the lesson as MyST Markdown.
    """
    word_count = len(_FENCE.sub("", text).split())
    lines = 0
    for cell in _CELL.findall(text):
        if not _HIDDEN.search(cell):
            lines += sum(bool(line.strip()) for line in _OPTION.sub("", cell).splitlines())
    return round(word_count / WORDS_PER_MINUTE + lines / LINES_PER_MINUTE)
