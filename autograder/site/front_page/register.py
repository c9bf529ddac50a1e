"""Register the front page's directives and roles with Sphinx."""

from __future__ import annotations

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util import logging

from autograder.errors import CourseError
from autograder.site.front_page.actions import Actions, first_lesson
from autograder.site.front_page.attempts import Attempts
from autograder.site.front_page.cards import CourseCards
from autograder.site.front_page.facts import CloneCommands, CourseFacts, count, fact, role
from autograder.site.front_page.hero import Hero, hero, resolve_hero

_LOGGER = logging.getLogger(__name__)


def register(app: Sphinx) -> None:
    """Add what the front page's text uses."""
    app.add_role("count", role(count))
    app.add_role("fact", role(lambda root, name, names: fact(root, name)))
    app.add_role("first-lesson", first_lesson)
    app.add_directive("actions", Actions)
    app.add_directive("attempts", Attempts)
    app.add_directive("clone", CloneCommands)
    app.add_directive("course-cards", CourseCards)
    app.add_directive("course-facts", CourseFacts)
    app.add_directive("hero", Hero)
    app.add_node(hero)
    app.connect("doctree-resolved", _fill_hero)


def _fill_hero(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Put in the weights of the lesson, which has been read and executed by now."""
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
