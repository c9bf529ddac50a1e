"""Register the front page's directives and roles with Sphinx, and define ``{actions}`` and ``{first-lesson}``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util import logging

from autograder.errors import CourseError
from autograder.site.front_page.attempts import Attempts
from autograder.site.front_page.cards import CourseCards
from autograder.site.front_page.facts import (
    CloneCommands,
    CourseFacts,
    WrittenText,
    course_count,
    course_fact,
    make_role,
)
from autograder.site.front_page.hero import Hero, hero, resolve_hero
from autograder.site.page_parts.closed_chapters import site_chapters

_LOGGER = logging.getLogger(__name__)


class Actions(Directive):  # type: ignore[misc] # docutils has no types
    """The directive ``{actions}``: buttons to the first lesson and to the section for lecturers."""

    def run(self) -> list[nodes.Node]:
        """Return the buttons as raw HTML."""
        env = self.state.document.settings.env
        lesson = f"{'../' * str(env.docname).count('/')}{_first_lesson_name(env)}.html"
        markup = (
            f'<ul class="tfc-actions"><li><a href="{lesson}">Start reading</a></li>'
            '<li><a href="#for-lecturers">Teach with it</a></li></ul>'
        )
        return [nodes.raw("", markup, format="html")]


def first_lesson(name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any) -> tuple[list[Any], list[Any]]:
    """Return a reference to the site's first lesson, with the role's text as its text."""
    env = inliner.document.settings.env
    target = f"/{_first_lesson_name(env)}"
    reference = pending_xref(
        rawtext,
        nodes.inline(rawtext, text, classes=["doc"]),
        refdomain="std",
        reftype="doc",
        reftarget=target,
        refexplicit=True,
        refwarn=True,
        refdoc=env.docname,
    )
    return [reference], []


def _first_lesson_name(env: Any) -> str:
    return f"chapters/{site_chapters(Path(env.srcdir), env.config.tfcourse_chapters)[0].name}/lesson"


def register(app: Sphinx) -> None:
    """Register the front page's roles, directives and nodes."""
    app.add_role("count", make_role(course_count))
    app.add_role("fact", make_role(lambda root, name, names: course_fact(root, name)))
    app.add_role("first-lesson", first_lesson)
    app.add_directive("actions", Actions)
    app.add_directive("attempts", Attempts)
    app.add_directive("clone", CloneCommands)
    app.add_directive("course-cards", CourseCards)
    app.add_directive("course-facts", CourseFacts)
    app.add_directive("hero", Hero)
    app.add_directive("written-text", WrittenText)
    app.add_node(hero)
    app.connect("doctree-resolved", _fill_hero)


def _fill_hero(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Insert the weights of the lesson, which has been read and executed by now."""
    for node in list(document.findall(hero)):
        if node["lesson"] not in app.env.found_docs and app.config.tfcourse_chapters:
            node.parent.remove(node)
    lessons = {node["lesson"] for node in document.findall(hero)}
    for lesson in lessons:
        try:
            resolve_hero(document, app.env.get_doctree(lesson))
        except (CourseError, OSError, ValueError) as error:
            _LOGGER.warning("%s", error, location=docname, type="tfcourse", subtype="hero")
            for node in list(document.findall(hero)):
                node.parent.remove(node)
