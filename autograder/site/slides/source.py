"""Write the sources of decks for Sphinx, with what they take from the lessons, the exercises and other decks.

A deck stores no figure and no number twice. It names them, and they come from the lesson's executed cells:

- ``{lesson-figure} 3.5 With the division`` is the output above the caption "Figure 3.5. With the division …" of lesson 03. If the number
  belongs to another figure later, the deck is not made.
- ``{{weights[0, 1]:.2f}}`` is the value that the lesson prints in its prose with the same expression and format. An expression that the
  lesson does not print is left for the deck's own cells.
- ``{exercises}`` lists the chapter's exercises with their minutes.
- ``{slides-from} 03`` adds slides of another deck: all, or the titles that follow; with ``:short:`` only slides marked as short.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from autograder.course.authoring.chapter import Chapter, find_chapter
from autograder.course.authoring.myst import lines_outside_code, read_text
from autograder.course.authoring.numbering import list_efforts
from autograder.course.authoring.printed_values import fill_in_printed, printed_by_expression
from autograder.course.release.lesson_notebook import executed_lessons
from autograder.course.release.plain_markdown import PlainMarkdown, collect_references
from autograder.errors import CourseError
from autograder.site.slides.figure import slide_figure

DECK = "slides.md"
# Sphinx reads a text with these lines as a notebook.
_FRONT = "---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3, language: python}\n---\n\n"
_CAPTION = re.compile(r"\*Figure (\d+\.\d+)\. (.*)", re.DOTALL)
_BLOCK = re.compile(
    r"^(?P<ticks>`{3,})\{(?P<name>lesson-figure|exercises|slides-from)\}[ ]*(?P<argument>.*)\n(?P<body>(?:.*\n)*?)(?P=ticks)$",
    re.M,
)
_OPTION = re.compile(r"^:(?P<name>[a-z]+):[ ]*(?P<value>.*)$")
_CITATION = re.compile(r"\{cite(?::t)?\}`[^`]+`")
_FROM_ROOT = "{literalinclude} /"
_SHORT = re.compile(r"^:short:", re.M)


@dataclass(frozen=True)
class Deck:
    """A deck's text, and the chapter that it belongs to."""

    name: str  # ``"03"``, the name of its page
    path: Path
    chapter: Chapter | None  # None for a deck of a lecturer's that belongs to none

    @cached_property
    def title(self) -> str:
        """The first heading."""
        match = re.search(r"^# (.+)$", read_text(self.path), re.M)
        return match[1] if match else self.name


def decks(root: Path, lecturer: Path | None = None) -> dict[str, Deck]:
    """Return the decks by name: one for each chapter with ``slides.md``, and the decks in a lecturer's folder, which may replace them.

    Args:
        lecturer: the lecturer's folder with ``03.md``, which replaces the deck of chapter 03, or ``welcome.md``, a new one.
    """
    course = {path.parent.name: path for path in sorted((root / "chapters").glob(f"*/{DECK}"))}
    entries = {name[:2]: path for name, path in course.items()}
    if lecturer is not None:
        entries |= {path.stem: path for path in sorted(lecturer.glob("*.md"))}
    numbers = {path.name[:2]: path.name for path in (root / "chapters").glob("[0-9][0-9]_*")}
    return {
        name: Deck(name, path, find_chapter(root, numbers[name]) if name in numbers else None)
        for name, path in sorted(entries.items())
    }


class DeckSources:
    """The sources of decks, ready for Sphinx.

    Args:
        root: the course's root folder.
        all_decks: every deck by name, also those from which others take slides.
    """

    def __init__(self, root: Path, all_decks: Mapping[str, Deck]) -> None:
        self._root = root
        self._decks = all_decks
        self._lessons: dict[str, _Lesson] = {}

    def write(self, names: Sequence[str], folder: Path) -> list[str]:
        """Write the named decks and their index to a folder, and delete the others there. Return the texts.

        Raises:
            CourseError: if a deck names a figure, an exercise or a slide that does not exist, or a cell of its lesson fails.
        """
        folder.mkdir(parents=True, exist_ok=True)
        self._execute(names)
        texts = {name: _FRONT + self._text(self._decks[name], folder) + "\n" for name in names}
        texts["index"] = _index([self._decks[name] for name in names])
        for path in folder.glob("*.md"):
            if path.stem not in texts:
                path.unlink()
        for name, text in texts.items():
            path = folder / f"{name}.md"
            if not path.is_file() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
        return list(texts.values())

    def _execute(self, names: Sequence[str]) -> None:
        chapters = {chapter.name: chapter for name in names for chapter in self._chapters(self._decks[name])}
        executed = executed_lessons([chapter for name, chapter in sorted(chapters.items())])
        self._lessons = {
            chapters[name].number: _Lesson(chapters[name], notebook) for name, notebook in executed.items()
        }

    def _chapters(self, deck: Deck) -> Iterator[Chapter]:
        """Yield the chapters whose lessons a deck needs: its own, and the lessons of decks from which it takes slides."""
        if deck.chapter is not None:
            yield deck.chapter
        for block in _BLOCK.finditer(read_text(deck.path)):
            if block["name"] == "slides-from" and block["argument"].strip() in self._decks:
                yield from self._chapters(self._other(block["argument"].strip(), deck))
            if block["name"] == "lesson-figure":
                yield find_chapter(self._root, block["argument"].partition(".")[0])

    def _text(self, deck: Deck, folder: Path) -> str:
        return self._expanded(self._filled(deck), deck, folder)

    def _filled(self, deck: Deck) -> str:
        """Return a deck's text with the numbers of its lesson."""
        text = read_text(deck.path).strip()
        lesson = self._lessons.get(deck.chapter.number) if deck.chapter else None
        return text if lesson is None else fill_in_printed(text, lesson.values)

    def _expanded(self, text: str, deck: Deck, folder: Path) -> str:
        """Return a text of a deck with its figures, exercises, citations and slides of other decks."""
        plain = PlainMarkdown("", collect_references(self._root))
        text = _CITATION.sub(lambda match: plain(match[0]), text)
        root = Path(os.path.relpath(self._root, folder)).as_posix()
        text = text.replace(_FROM_ROOT, f"{{literalinclude}} {root}/")

        def expand(block: re.Match[str]) -> str:
            options, lines = _options(block["body"])
            argument = block["argument"].strip()
            if block["name"] == "lesson-figure":
                return self._figure(argument, options, deck)
            if block["name"] == "exercises":
                return _raw(self._exercises(argument, deck))
            return self._slides_text(argument, "short" in options, lines, deck, folder)

        return _BLOCK.sub(expand, text)

    def _figure(self, argument: str, options: Mapping[str, str], deck: Deck) -> str:
        number, _, words = argument.partition(" ")
        lesson = self._lessons[f"{int(number.partition('.')[0]):02}"]
        if number not in lesson.figures:
            raise CourseError(
                f"lesson {lesson.chapter.number} shows no figure {number}",
                where=deck.path,
                do=f"Name one of {', '.join(lesson.figures)}. A figure that a reader moves has no picture for slides.",
            )
        caption, picture = lesson.figures[number]
        if not words or not caption.startswith(words):
            raise CourseError(
                f"figure {number} is “{caption[:60]}…”, and not “{words}”",
                where=deck.path,
                do="Write the number and the first words of its caption.",
            )
        try:
            return _raw(slide_figure(picture, f"../chapters/{lesson.chapter.name}/lesson.html", options))
        except ValueError as error:
            raise CourseError(f"figure {number}: {error}", where=deck.path) from error

    def _exercises(self, numbers: str, deck: Deck) -> str:
        if deck.chapter is None:
            raise CourseError("the deck belongs to no chapter, so it has no exercises", where=deck.path)
        first, _, last = numbers.partition("-")
        entries = {effort.number: effort for effort in list_efforts(deck.chapter)}
        listed = range(int(first or 1), int(last or first or max(entries)) + 1)
        address = f"../chapters/{deck.chapter.name}/exercises.html"
        try:
            chosen = [entries[number] for number in listed]
        except KeyError as error:
            raise CourseError(f"the chapter has no exercise {error}", where=deck.path) from error
        rows = "".join(
            f"<li><span>{item.number}&nbsp;· {_named(item.title)}</span> <b>{item.minutes}&nbsp;min</b></li>"
            for item in chosen
        )
        total = sum(item.minutes for item in chosen)
        return (
            f'<ol class="slide-exercises">{rows}</ol>\n'
            f'<p><a href="{address}">Exercises {chosen[0].number} to {chosen[-1].number}</a>: {total} minutes, in this order</p>'
        )

    def _slides_text(self, name: str, only_short: bool, titles: Sequence[str], deck: Deck, folder: Path) -> str:
        other = self._other(name, deck)
        slides = _slides_by_title(self._filled(other))
        if missing := [title for title in titles if title not in slides]:
            raise CourseError(
                f"deck {name} has no slide “{missing[0]}”", where=deck.path, do=f"Its slides are: {'; '.join(slides)}."
            )
        chosen = [text for title, text in slides.items() if title in (titles or slides)]
        chosen = [text for text in chosen if not only_short or _SHORT.search(text)]
        return self._expanded("\n\n".join(chosen), other, folder)

    def _other(self, name: str, deck: Deck) -> Deck:
        """Return the deck from which another takes slides: of one that it replaces, the course's own."""
        if name == deck.name and deck.chapter is not None:
            path = deck.chapter.folder / DECK
            if path != deck.path and path.is_file():
                return Deck(f"{name} of the course", path, deck.chapter)
        elif name in self._decks:
            return self._decks[name]
        raise CourseError(f"there is no deck {name!r} to take slides from", where=deck.path)


class _Lesson:
    """An executed lesson: what it shows and prints."""

    def __init__(self, chapter: Chapter, executed: Any) -> None:
        self.chapter = chapter
        self.values = printed_by_expression(read_text(chapter.lesson), executed)
        self.figures: dict[str, tuple[str, str]] = {}  # caption and picture by number
        for before, cell in pairwise(executed.cells):
            caption = _CAPTION.match(cell.source) if cell.cell_type == "markdown" else None
            pages = [
                output.data["text/html"]
                for output in before.get("outputs", ())
                if "text/html" in output.get("data", ())
            ]
            if caption and pages:
                self.figures[caption[1]] = " ".join(caption[2].split()), pages[-1]


def _slides_by_title(text: str) -> dict[str, str]:
    """Return the slides of a deck by title, without the text before the first."""
    lines = text.split("\n")
    starts = [index for index in lines_outside_code(text) if lines[index].startswith("## ")]
    return {
        lines[start][3:].strip(): "\n".join(lines[start:end]).strip() for start, end in pairwise([*starts, len(lines)])
    }


def _options(body: str) -> tuple[dict[str, str], list[str]]:
    """Return the options of a block and its other lines."""
    options, lines = {}, []
    for line in filter(None, map(str.strip, body.splitlines())):
        match = _OPTION.match(line)
        if match:
            options[match["name"]] = match["value"]
        else:
            lines.append(line)
    return options, lines


def _named(title: str) -> str:
    """Return an exercise's name as code; a question in words keeps its title."""
    name = re.search(r"`([^`]+)`", title)
    return f"<code>{escape(name[1])}</code>" if name else escape(title)


def _raw(html: str) -> str:
    return f"``````{{raw}} html\n{html}\n``````"


def _index(entries: Sequence[Deck]) -> str:
    links = "\n".join(f"- [{deck.name} · {deck.title}]({deck.name}.md)" for deck in entries)
    names = "\n".join(deck.name for deck in entries)
    return f"# Slides\n\n{{.slide-index}}\n{links}\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"
