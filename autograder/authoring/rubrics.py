"""The rubrics of a chapter's questions in words: model answers and mark schemes, for those who mark and for nobody else.

Rubrics have a file of their own, `chapters/NN/rubrics.md`: `exercises.md` is a page of the site, and a model answer must not be on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from autograder.authoring.myst import read_text

_SECTION = re.compile(r"^## +(\S+)[ \t]*$", re.MULTILINE)
_PART = re.compile(r"^### +(.+?)[ \t]*$", re.MULTILINE)
_ITEM = re.compile(r"^[-*+] +(.*)$", re.MULTILINE)
_BULLET = re.compile(r"^[-*+] +", re.MULTILINE)
_LEADING = re.compile(r"^[*_(\[]*(\d+(?:\.\d+)?)")
_ANYWHERE = re.compile(r"(\d+(?:\.\d+)?)\W{0,3}(?:points?|marks?)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Rubric:
    """How one question is marked.

    Attributes:
        question: the grade id of its answer cell, ``question_<topic>``.
        answer: a model answer, Markdown.
        marks: the mark scheme, a Markdown list in which every item says what it is worth.
    """

    question: str
    answer: str
    marks: str

    @property
    def items(self) -> list[tuple[str, float | None]]:
        """The items of the mark scheme: the Markdown of each, and what it is worth if it says so."""
        texts = [item.strip() for item in _BULLET.split(self.marks)[1:]]
        return [(text, _worth(text)) for text in texts]

    @property
    def points(self) -> float | None:
        """What the items of the mark scheme add up to; None if there is no item or one does not say its worth."""
        worths = [_worth(item) for item in _ITEM.findall(self.marks)]
        known = [worth for worth in worths if worth is not None]
        return sum(known) if worths and len(known) == len(worths) else None


def read_rubrics(path: Path) -> dict[str, Rubric]:
    """Return a chapter's rubrics by question; none if there is no such file.

    Raises:
        CourseError: if the file cannot be read.
    """
    if not path.exists():
        return {}
    _, *sections = _SECTION.split(read_text(path))
    rubrics = {}
    for name, content in zip(sections[::2], sections[1::2], strict=True):
        _, *parts = _PART.split(content)
        by_title = {title.casefold(): text.strip() for title, text in zip(parts[::2], parts[1::2], strict=True)}
        rubrics[name] = Rubric(name, by_title.get("model answer", ""), by_title.get("marks", ""))
    return rubrics


def _worth(item: str) -> float | None:
    match = _LEADING.match(item) or _ANYWHERE.search(item)
    return float(match.group(1)) if match else None
