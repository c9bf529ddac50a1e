"""Read the rubrics of a chapter's questions, which only markers see: model answers and mark schemes.

Rubrics have their own file, `chapters/NN/rubrics.md`: `exercises.md` is a page of the site, and a model answer must not be on it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from autograder.course.authoring.myst import read_text

_SECTION = re.compile(r"^## +(\S+)[ \t]*$", re.MULTILINE)
_PART = re.compile(r"^### +(.+?)[ \t]*$", re.MULTILINE)
_BULLET = re.compile(r"^[-*+] +", re.MULTILINE)
_LEADING = re.compile(r"^[*_(\[]*(\d+(?:[.,]\d+)?)")
_ANYWHERE = re.compile(r"(\d+(?:[.,]\d+)?)\W{0,3}(?:points?|marks?)\b", re.IGNORECASE)


_IN_SOLUTION = re.compile(
    r"### BEGIN SOLUTION.*?^\*\*Model answer\*\*[ \t]*$(?P<answer>.*?)^\*\*Marks\*\*[ \t]*$(?P<marks>.*?)### END SOLUTION",
    re.MULTILINE | re.DOTALL,
)
# The points at the start of an item with what sets them off: "1 point: ", "**0.5** ", "(2) ".
_POINTS_AT_START = re.compile(
    r"^[*_(\[]*\d+(?:[.,]\d+)?(?:\W{0,3}(?:points?|marks?)\b)?[*_)\]]*[:.,]?[*_]*\s*", re.IGNORECASE
)


@dataclass(frozen=True)
class RubricItem:
    """One item of a mark scheme."""

    text: str  # the item, Markdown
    points: float | None  # what it is worth; None if it does not say

    @property
    def wording(self) -> str:
        """The item without the points at its start."""
        return _POINTS_AT_START.sub("", self.text, count=1) if _LEADING.match(self.text) else self.text


@dataclass(frozen=True)
class Rubric:
    """The rubric of one question."""

    question: str  # the grade id of its answer cell, ``question_<topic>``
    answer: str  # a model answer, Markdown
    marks: str  # the mark scheme, a Markdown list in which every item begins with its points

    @property
    def items(self) -> list[RubricItem]:
        """The items of the mark scheme."""
        texts = [item.strip() for item in _BULLET.split(self.marks)[1:]]
        return [RubricItem(text, _stated_points(text)) for text in texts]

    @property
    def points(self) -> float | None:
        """The sum of the items' points; None without items or if one states no points."""
        worths = [item.points for item in self.items]
        numbers = [worth for worth in worths if worth is not None]
        return sum(numbers) if worths and len(numbers) == len(worths) else None


def read_rubrics(path: Path) -> dict[str, Rubric]:
    """Return a chapter's rubrics by question; empty without a file.

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


def rubrics_in_notebook(path: Path) -> dict[str, Rubric]:
    """Return the rubrics in a chapter's nbgrader source notebook by question; empty if it cannot be read.

    ``tfcourse assign`` writes each rubric between the solution markers of the answer cell, so a course folder has its rubrics without the
    project. An instructor's own notebook may hold them in the same way: a line ``**Model answer**``, and a line ``**Marks**``.

    Args:
        path: the notebook, ``source/CHAPTER/CHAPTER.ipynb``.
    """
    rubrics = {}
    try:
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            mark = cell["metadata"].get("nbgrader", {})
            text = "".join(cell["source"])
            if cell["cell_type"] == "markdown" and mark.get("solution") and (parts := _IN_SOLUTION.search(text)):
                name = str(mark["grade_id"])
                rubrics[name] = Rubric(name, parts["answer"].strip(), parts["marks"].strip())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return rubrics


def _stated_points(item: str) -> float | None:
    match = _LEADING.match(item) or _ANYWHERE.search(item)
    return float(match.group(1).replace(",", ".")) if match else None
