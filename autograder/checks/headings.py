"""Read the headings of a lesson's sections by label, to name the sections that a student should read again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_CHAPTERS = Path(__file__).parents[2] / "chapters"
_LABELLED = re.compile(r"^\(([\w-]+)\)=\n+#+ (.+)$", re.MULTILINE)


@cache
def headings(chapter: str) -> Mapping[str, str]:
    """Return the headings of a chapter's lesson by their labels; none where the chapters are not there, as in an installed package."""
    lesson = _CHAPTERS / chapter / "lesson.md"
    if not lesson.is_file():
        return {}
    return {label: re.sub(r"[$`]", "", text) for label, text in _LABELLED.findall(lesson.read_text(encoding="utf-8"))}
