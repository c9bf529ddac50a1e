"""Read the effort of each exercise from its prompt: number, title, difficulty and minutes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from autograder.course.authoring.chapter import Chapter, grade_id, is_answer, is_stub
from autograder.errors import CourseError

_HEADING = re.compile(r"^## (\d+) · (.+)$", re.MULTILINE)
_EFFORT = re.compile(r"^\*Difficulty (★{1,3}), about (\d+) minutes\.\*$", re.MULTILINE)


@dataclass(frozen=True)
class Effort:
    """The effort of one exercise or question."""

    name: str  # the exercise's name, or the question's grade id
    number: int  # its number in the chapter
    title: str  # its heading without the number, as Markdown
    difficulty: int  # stars, from one to three
    minutes: int  # the time for a student who has read the lesson

    @property
    def heading(self) -> str:
        """The heading as the page shows it, as plain text."""
        return f"{self.number} · {self.title.replace('`', '')}"


def efforts(chapter: Chapter) -> list[Effort]:
    """Return the effort of each exercise and question of a chapter, in the order of its notebook.

    Raises:
        CourseError: if a prompt has no numbered heading, or no line with difficulty and minutes.
    """
    entries: dict[str, Effort] = {}
    prompt = ""
    for cell in chapter.notebook().cells:
        if cell.cell_type == "markdown" and _HEADING.search(cell.source):
            prompt = cell.source
        if is_stub(cell) or is_answer(cell):
            name = str(grade_id(cell))
            if name not in entries:
                entries[name] = _effort(name, prompt, chapter)
    return list(entries.values())


def _effort(name: str, prompt: str, chapter: Chapter) -> Effort:
    heading, effort = _HEADING.search(prompt), _EFFORT.search(prompt)
    if heading is None or effort is None:
        raise CourseError(
            f"the prompt of {name} does not say what it takes",
            where=chapter.path,
            do="Write a heading such as “## 6 · Mass: `top_p`”, and below it “*Difficulty ★★, about 20 minutes.*”",
        )
    return Effort(name, int(heading[1]), heading[2], len(effort[1]), int(effort[2]))
