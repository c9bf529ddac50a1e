"""The directive ``{course-cards}``: a card for each chapter, with a drawing, how long it takes, and what the reader will have built.

Its lines say what is built, ``01: A recurrent network …``. All else comes from the chapters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

from autograder.course.authoring.chapter import Chapter, chapters
from autograder.errors import CourseError
from autograder.site.front_page.card_drawings import card_drawing
from autograder.site.front_page.facts import ChapterSize, chapter_size, hours
from autograder.site.page_parts.closed_chapters import site_chapters

_LINE = re.compile(r"^(\d\d): (.+)$")
_STYLE = re.compile(r"<style>.*?</style>", re.DOTALL)


class CourseCards(Directive):  # type: ignore[misc] # docutils has no types
    """The directive ``{course-cards}``."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the cards as raw HTML."""
        env = self.state.document.settings.env
        course, shown = chapters(Path(env.srcdir)), site_chapters(Path(env.srcdir), env.config.tfcourse_chapters)
        for chapter in shown:
            env.note_dependency(str(chapter.path))
            env.note_dependency(str(chapter.lesson))
        up = "../" * str(env.docname).count("/")
        try:
            built = read_built("\n".join(self.content), [chapter.number for chapter in course])
        except CourseError as error:
            raise self.error(str(error)) from error
        return [nodes.raw("", cards_html(shown, built, lambda document: f"{up}{document}.html"), format="html")]


def read_built(text: str, numbers: list[str]) -> dict[str, str]:
    """Return, by chapter, what the reader builds.

    Args:
        text: one line per chapter; a line that begins with white space continues the previous line.

    Raises:
        CourseError: if the lines do not match the chapters in their order.
    """
    lines = re.sub(r"\n\s+", " ", text.strip()).splitlines()
    entries = [(match[1], match[2]) for line in lines if (match := _LINE.match(line))]
    if len(entries) != len(lines) or [number for number, _ in entries] != numbers:
        raise CourseError(
            f"the cards have lines for {[number for number, _ in entries]}, the course has the chapters {numbers}",
            do="Write one line for each chapter: “01: what its reader will have built”.",
        )
    return dict(entries)


def cards_html(course: list[Chapter], built: Mapping[str, str], link: Callable[[str], str]) -> str:
    """Return the cards as an ordered list."""
    cards = [_card(chapter, built[chapter.number], link) for chapter in course]
    # One style sheet is enough for all drawings of the page.
    return '<ol class="tfc-cards">' + cards[0] + "".join(_STYLE.sub("", card) for card in cards[1:]) + "</ol>"


def _card(chapter: Chapter, built: str, link: Callable[[str], str]) -> str:
    number = chapter.number
    drawing = card_drawing(number).to_html(alt=f"Drawing for chapter {number}")
    lesson = link(f"chapters/{chapter.name}/lesson")
    return (
        f'<li class="tfc-card"><div class="tfc-card-drawing" aria-hidden="true">{drawing}</div><div>'
        f'<h3 class="tfc-card-title"><span class="tfc-number">{number}</span> <a href="{lesson}">{escape(chapter.title)}</a></h3>'
        f'<p class="tfc-card-built">{escape(built)}</p>'
        f'<p class="tfc-card-effort">{_effort(chapter_size(chapter))}</p></div></li>'
    )


def _effort(size: ChapterSize) -> str:
    reading = 5 * round(size.reading / 5)
    exercises = f"{size.exercises} exercises" if size.exercises != 1 else "one exercise"
    solving = hours(size.solving)
    return f"{reading} min to read · {exercises}, {solving} {'hours' if solving > 1 else 'hour'}"
