"""Read the rubrics of a chapter's questions: model answers and mark schemes, only for markers.

Rubrics have their own file, `chapters/NN/rubrics.md`: `exercises.md` is a page of the site, and a model answer must not be on it.
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
_LEADING = re.compile(r"^[*_(\[]*(\d+(?:[.,]\d+)?)")
_ANYWHERE = re.compile(r"(\d+(?:[.,]\d+)?)\W{0,3}(?:points?|marks?)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Rubric:
    """The rubric of one question.

    Attributes:
        question: the grade id of its answer cell, ``question_<topic>``.
        answer: a model answer, Markdown.
        marks: the mark scheme, a Markdown list in which every item begins with its points.
    """

    question: str
    answer: str
    marks: str

    @property
    def items(self) -> list[tuple[str, float | None]]:
        """The items of the mark scheme: Markdown, and points if the item has any."""
        texts = [item.strip() for item in _BULLET.split(self.marks)[1:]]
        return [(text, _worth(text)) for text in texts]

    @property
    def points(self) -> float | None:
        """The sum of the items' points; None if there is no item or one lacks points."""
        worths = [_worth(item) for item in _ITEM.findall(self.marks)]
        numbers = [worth for worth in worths if worth is not None]
        return sum(numbers) if worths and len(numbers) == len(worths) else None


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
    return float(match.group(1).replace(",", ".")) if match else None
