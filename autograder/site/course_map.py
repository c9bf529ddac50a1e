"""Draw the course map on the last page: every exercise by chapter, with the exercises that each is built from.

The parts and what they are made of come from the reference itself: a part uses another if its code, or a private helper that it reaches,
names it. So the picture cannot fall behind the course.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

from autograder.checking.exercise import Exercise
from autograder.checks.headings import headings
from autograder.course.authoring.chapter import Chapter
from autograder.course.authoring.numbering import list_efforts
from autograder.course.authoring.overview import required_exercises
from autograder.site.page_parts.closed_chapters import site_chapters


class CourseMap(Directive):  # type: ignore[misc] # docutils has no types
    """The directive ``{road}``: the map of the course."""

    def run(self) -> list[nodes.Node]:
        """Return the map as raw HTML."""
        env = self.state.document.settings.env
        course = site_chapters(Path(env.srcdir), env.config.tfcourse_chapters)
        for chapter in course:
            env.note_dependency(str(chapter.path))
            env.note_dependency(str(chapter.lesson))
        up = "../" * str(env.docname).count("/")
        return [nodes.raw("", course_map_html(course, lambda document: f"{up}{document}.html"), format="html")]


def course_map_html(course: list[Chapter], link: Callable[[str], str]) -> str:
    """Return the map as HTML: a station for each chapter, a chip for each exercise."""
    registry = course[0].registry
    shown = {exercise.name for chapter in course for exercise in chapter.exercises()}
    parts = {name: sorted(required_exercises(name, registry) & shown) for name in registry if name in shown}
    stations = "".join(_station_html(chapter, link) for chapter in course)
    count = sum(len(chapter.exercises()) for chapter in course)
    data = escape(json.dumps(parts, sort_keys=True, separators=(",", ":")))
    return (
        f'<course-road data-parts="{data}">'
        f'<figure class="tfc-road" aria-label="The road through the course: {count} parts in {len(course)} chapters">'
        f'<ol class="tfc-stations">{stations}</ol>'
        '<figcaption class="tfc-road-live" aria-live="polite"></figcaption></figure></course-road>'
    )


def _station_html(chapter: Chapter, link: Callable[[str], str]) -> str:
    places = _prompt_anchors(chapter)
    chips = "".join(_chip_html(exercise, chapter, places, link) for exercise in chapter.exercises())
    return (
        f'<li class="tfc-station"><a class="tfc-station-title" href="{link(f"chapters/{chapter.name}/lesson")}">'
        f'<span class="tfc-number">{chapter.number}</span> {escape(chapter.title)}</a>'
        f'<ul class="tfc-parts">{chips}</ul></li>'
    )


def _chip_html(exercise: Exercise, chapter: Chapter, places: Mapping[str, str], link: Callable[[str], str]) -> str:
    """Return an exercise's name with links to its prompt and to the lesson section that its mistakes name most."""
    page = link(f"chapters/{chapter.name}/exercises") + places.get(exercise.name, "")
    reads = Counter(mistake.read for mistake in exercise.misconceptions if mistake.read in headings(chapter.name))
    lesson = ""
    if reads:
        label = min(reads, key=lambda item: (-reads[item], item))
        where = f"{link(f'chapters/{chapter.name}/lesson')}#{label}"
        title = escape(headings(chapter.name)[label])
        lesson = (
            f'<a class="tfc-part-lesson" href="{where}" title="{title}" aria-label="{escape(exercise.name)} in the lesson: {title}">'
            '<span aria-hidden="true">§</span></a>'
        )
    name = escape(exercise.name)
    return f'<li class="tfc-part" data-part="{name}"><a class="tfc-part-name" href="{page}"><code>{name}</code></a>{lesson}</li>'


def _prompt_anchors(chapter: Chapter) -> dict[str, str]:
    """Return the anchors of an exercise page's prompts, by exercise."""
    return {effort.name: f"#{heading_anchor(effort.heading)}" for effort in list_efforts(chapter)}


def heading_anchor(heading: str) -> str:
    """Return docutils' identifier of a heading, in which the site first curls straight apostrophes."""
    return str(nodes.make_id(heading.replace("'", "’")))
