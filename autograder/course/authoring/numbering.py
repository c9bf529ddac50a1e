"""Read each exercise's effort from its prompt, and update numbers on pages: of headings, hours and exercises."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from autograder.course.authoring.chapter import Chapter, grade_id, is_answer, is_stub
from autograder.course.authoring.myst import lines_outside_code
from autograder.errors import CourseError

_HEADING = re.compile(r"^## (\d+) · (.+)$", re.MULTILINE)
_EFFORT = re.compile(r"^\*Difficulty (★{1,3}), about (\d+) minutes\.\*$", re.MULTILINE)
_NUMBERED = re.compile(r"^## \d+ · ")
_HOURS = re.compile(r"(exercises\s+take\s+(?:about|some)\s+)(\w+)(\s+hours)")
_TOTAL = re.compile(r"(chapters,\s+)\d+(\s+exercises)")
_ROW = re.compile(r"^\| (?P<number>\d\d) · (?P<text>.*): \d+ exercises \|$", re.MULTILINE)
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True)
class Effort:
    """The difficulty and time of one exercise or question."""

    name: str  # the exercise's name, or the question's grade id
    number: int  # its number in the chapter
    title: str  # its heading without the number, as Markdown
    difficulty: int  # stars, from one to three
    minutes: int  # the time for a student who has read the lesson
    prompt: str = field(default="", repr=False)  # the text of its prompt, Markdown

    @property
    def heading(self) -> str:
        """The heading as plain text, as the page shows it."""
        return f"{self.number} · {self.title.replace('`', '')}"


def list_efforts(chapter: Chapter) -> list[Effort]:
    """Return the effort of each exercise and question of a chapter, in the order of its notebook.

    Raises:
        CourseError: if a prompt has no numbered heading, or no line with difficulty and minutes.
    """
    return list_notebook_efforts(chapter.notebook(), chapter.path)


def list_notebook_efforts(notebook: Any, path: Path) -> list[Effort]:
    """Return the effort of each exercise and question of a notebook, in order.

    Raises:
        CourseError: if a prompt has no numbered heading, or no line with difficulty and minutes.
    """
    entries: dict[str, Effort] = {}
    prompt = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and _HEADING.search(cell.source):
            prompt = cell.source
        if is_stub(cell) or is_answer(cell):
            name = str(grade_id(cell))
            if name not in entries:
                entries[name] = _parse_effort(name, prompt, path)
    return list(entries.values())


def _parse_effort(name: str, prompt: str, path: Path) -> Effort:
    heading, effort = _HEADING.search(prompt), _EFFORT.search(prompt)
    if heading is None or effort is None:
        raise CourseError(
            f"the prompt of {name} does not say what it takes",
            where=path,
            do="Write a heading such as “## 6 · Mass: `top_p`”, and below it “*Difficulty ★★, about 20 minutes.*”",
        )
    return Effort(name, int(heading[1]), heading[2], len(effort[1]), int(effort[2]), prompt)


def renumber_headings(text: str) -> str:
    """Renumber the headings ``## N · Title`` of an exercise notebook from 1."""
    lines = text.split("\n")
    number = 0
    for index in lines_outside_code(text):
        if _NUMBERED.match(lines[index]):
            number += 1
            lines[index] = _NUMBERED.sub(f"## {number} · ", lines[index])
    return "\n".join(lines)


def update_hours(lesson: str, chapter: Chapter) -> str:
    """Update the hours of its exercises in a lesson that states them.

    Raises:
        CourseError: if a prompt lacks its difficulty and minutes.
    """
    if not _HOURS.search(lesson):
        return lesson
    hours = round(sum(effort.minutes for effort in list_efforts(chapter)) / 60)
    word = _WORDS[hours] if hours < len(_WORDS) else str(hours)
    return _HOURS.sub(rf"\g<1>{word}\g<3>", lesson)


def update_counts(readme: str, course: Sequence[Chapter]) -> str:
    """Update the numbers of exercises, of the course and of each listed chapter, in a README."""
    counts = {chapter.name[:2]: len(chapter.exercises()) for chapter in course}

    def row(match: re.Match[str]) -> str:
        count = counts.get(match["number"])
        return match[0] if count is None else f"| {match['number']} · {match['text']}: {count} exercises |"

    return _ROW.sub(row, _TOTAL.sub(rf"\g<1>{sum(counts.values())}\g<2>", readme, count=1))
