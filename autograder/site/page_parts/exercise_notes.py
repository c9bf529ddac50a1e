"""Add an overview and notes to an exercise page (time, prerequisites, points), and links to exercises to its lesson.

All of it is derived: points from the checks, prerequisites from the calls of the reference, times and difficulty from the prompts, and
sections from the prompts' quotations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from operator import itemgetter
from pathlib import Path

from docutils import nodes

from autograder.checking.exercise import Exercise
from autograder.course.authoring.chapter import Chapter, load_chapters
from autograder.course.authoring.numbering import Effort, list_efforts
from autograder.course.authoring.overview import required_exercises
from autograder.site.course_map import heading_anchor

_SECTIONS = re.compile(r"^\*In the lesson:\* (.+?)\n\n", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(r"“([^“”]+)”")
_EFFORT = re.compile(r"Difficulty ★+, about \d+ minutes\.")


@dataclass(frozen=True)
class Prerequisite:
    """A prerequisite: an exercise that another one builds on."""

    name: str  # the exercise's name
    text: str  # what the link says, its number in the same chapter, its name in another
    address: str  # where its prompt is


@dataclass(frozen=True)
class Note:
    """The additions to one exercise or question."""

    effort: Effort  # its number, title, difficulty and minutes
    points: float
    rows: tuple[tuple[str, float], ...]  # the rows of its check, with points; empty for a question
    needed: tuple[Prerequisite, ...]  # the exercises that its reference calls, the same chapter first

    @property
    def anchor(self) -> str:
        """The identifier of the prompt's section."""
        return heading_anchor(self.effort.heading)


def build_notes(
    chapter: Chapter, places: Mapping[str, tuple[Chapter, Effort]], link: Callable[[str], str]
) -> list[Note]:
    """Return the notes of a chapter, one for each exercise and question.

    Args:
        places: chapter and effort of every exercise of the course, by name.
    """
    points = {question.name: question.points for question in chapter.questions()}
    entries = []
    for effort in list_efforts(chapter):
        if effort.name in points:
            entries.append(Note(effort, points[effort.name], (), ()))
            continue
        exercise = chapter.registry[effort.name]
        rows = tuple((row.title, row.points) for row in exercise.rows)
        needed = _find_prerequisites(exercise, chapter, places, link)
        entries.append(Note(effort, sum(worth for _, worth in rows), rows, needed))
    return entries


def efforts_by_name(course: list[Chapter]) -> dict[str, tuple[Chapter, Effort]]:
    """Return the chapter and effort of every exercise and question of the course, by name."""
    return {effort.name: (chapter, effort) for chapter in course for effort in list_efforts(chapter)}


def _find_prerequisites(
    exercise: Exercise, chapter: Chapter, places: Mapping[str, tuple[Chapter, Effort]], link: Callable[[str], str]
) -> tuple[Prerequisite, ...]:
    needed = []
    for name in required_exercises(exercise.name, chapter.registry) & places.keys():
        where, effort = places[name]
        is_other = where.name != chapter.name
        page = link(f"chapters/{where.name}/exercises") if is_other else ""
        link_text = name if is_other else str(effort.number)
        entry = Prerequisite(name, link_text, f"{page}#{heading_anchor(effort.heading)}")
        needed.append(((is_other, where.name, effort.number), entry))
    return tuple(entry for _, entry in sorted(needed, key=itemgetter(0)))


def add_notes(document: nodes.document, entries: list[Note]) -> None:
    """Insert the overview before the first exercise, and time, prerequisites and points under each heading."""
    by_anchor = {note.anchor: note for note in entries}
    sections = [section for section in document.findall(nodes.section) if _find_note(section, by_anchor)]
    if not sections:
        return
    first = sections[0]
    first.parent.insert(first.parent.index(first), nodes.raw("", overview_html(entries), format="html"))
    for section in sections:
        note = _find_note(section, by_anchor)
        for paragraph in list(section.findall(nodes.paragraph)):
            if note and _EFFORT.fullmatch(paragraph.astext()):
                paragraph.replace_self(nodes.raw("", details_html(note), format="html"))
                break


def _find_note(section: nodes.section, by_anchor: Mapping[str, Note]) -> Note | None:
    title = section.next_node(nodes.title)
    return by_anchor.get(heading_anchor(title.astext())) if title is not None else None


def overview_html(entries: list[Note]) -> str:
    """Return the table of a chapter's exercises as HTML: difficulty, minutes, points and prerequisites."""
    rows = "".join(
        f'<tr><th scope="row"><a href="#{note.anchor}">{note.effort.number} · {_title_html(note.effort.title)}</a></th>'
        f"<td>{_stars_html(note.effort.difficulty)}</td><td>{note.effort.minutes} min</td><td>{note.points:g}</td>"
        f"<td>{', '.join(map(_link_html, note.needed))}</td></tr>"
        for note in entries
    )
    minutes = sum(note.effort.minutes for note in entries)
    points = sum(note.points for note in entries)
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Exercise", "Difficulty", "Time", "Points", "Needs"))
    return (
        '<div class="tfc-exercises" role="region" aria-label="All exercises" tabindex="0"><table><thead><tr>'
        f'{head}</tr></thead><tbody>{rows}</tbody><tfoot><tr><th scope="row">Together</th><td></td>'
        f"<td>{_time_text(minutes)}</td><td>{points:g}</td><td></td></tr></tfoot></table></div>"
    )


def _time_text(minutes: int) -> str:
    return f"{minutes / 60:.0f} h" if minutes >= 90 else f"{minutes} min"


def details_html(note: Note) -> str:
    """Return the line under an exercise's heading as HTML, with a collapsed list of the points per row."""
    facts = [
        _stars_html(note.effort.difficulty),
        f"about {note.effort.minutes} minutes",
        f"{note.points:g} points",
        *([_prerequisites_html(note)] if note.needed else []),
    ]
    line = "".join(f"<li>{fact}</li>" for fact in facts)
    rows = "".join(f"<li><span>{escape(title)}</span> <b>{worth:g}</b></li>" for title, worth in note.rows)
    folded = f"<details><summary>What each row pays</summary><ul>{rows}</ul></details>" if rows else ""
    return f'<div class="tfc-effort"><ul>{line}</ul>{folded}</div>'


def _prerequisites_html(note: Note) -> str:
    same = [needed for needed in note.needed if needed.address.startswith("#")]
    others = [needed for needed in note.needed if not needed.address.startswith("#")]
    parts = []
    if same:
        parts.append(f"exercise{'s' if len(same) > 1 else ''} {_join_parts(list(map(_link_html, same)))}")
    if others:
        parts.append(_join_parts([f"<code>{_link_html(needed)}</code>" for needed in others]))
    return f"you need {' and '.join(parts)}"


def _join_parts(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _link_html(needed: Prerequisite) -> str:
    return f'<a href="{escape(needed.address)}" title="{escape(needed.name)}">{escape(needed.text)}</a>'


def _stars_html(difficulty: int) -> str:
    levels = ("easy", "medium", "hard")
    return f'<span role="img" aria-label="{levels[difficulty - 1]}">{"★" * difficulty}{"☆" * (3 - difficulty)}</span>'


def _title_html(title: str) -> str:
    """Convert a heading's Markdown to HTML; its only markup is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(title))


def exercises_by_heading(chapter: Chapter) -> dict[str, list[Effort]]:
    """Return the exercises that practise each section of the lesson, by the section's heading.

    An exercise belongs to the last section that its prompt names: a link in an earlier one would come before part of what it needs.
    """
    practised: dict[str, list[Effort]] = {}
    for effort in {effort.number: effort for effort in list_efforts(chapter)}.values():
        quotes = _SECTIONS.search(f"{effort.prompt}\n\n")
        for heading in _QUOTED.findall(quotes[1])[-1:] if quotes else ():
            practised.setdefault(" ".join(heading.split()), []).append(effort)
    return practised


def add_practice(document: nodes.document, practised: Mapping[str, list[Effort]], address: str) -> None:
    """Append links to the exercises that practise a lesson's section, before its subsections."""
    for section in list(document.findall(nodes.section)):
        title = section.next_node(nodes.title)
        items = practised.get(" ".join(title.astext().split())) if title is not None else None
        if not items:
            continue
        links = ", ".join(
            f'<a href="{address}#{heading_anchor(item.heading)}">{item.number} · {_title_html(item.title)}</a>'
            for item in items
        )
        at = next((i for i, child in enumerate(section) if isinstance(child, nodes.section)), len(section))
        section.insert(at, nodes.raw("", f'<p class="tfc-practice">Practise: {links}</p>', format="html"))


def annotate_page(document: nodes.document, root: Path, chapter: str, kind: str, link: Callable[[str], str]) -> None:
    """Add the notes to an exercise page, or the links to exercises to a lesson."""
    course = [item for item in load_chapters(root) if item.exercises()]
    page = next((item for item in course if item.name == chapter), None)
    if page is None:
        return
    if kind == "exercises":
        add_notes(document, build_notes(page, efforts_by_name(course), link))
    else:
        add_practice(document, exercises_by_heading(page), link(f"chapters/{chapter}/exercises"))
