"""The Sphinx extension of the decks: notes with minutes, questions with an executed key, and the limits that a slide has to keep.

``tfcourse_deck_report``
    File for a JSON report of the minutes; ``tfcourse build --slides`` reads it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from sphinx.application import Sphinx
from sphinx.util import logging

from autograder.course.authoring.execute_lessons import execute_lessons, print_values

_LOGGER = logging.getLogger(__name__)
_INDEX = "index"
_SLIDES = "tfcourse_slides"
MOST_WORDS = 25
MOST_LINES = 12
_WORD = re.compile(r"\S*[^\W_]\S*")
_OPTIONS = "ABCD"
# What is on a slide and is no text of its own.
_APART = (
    nodes.section,
    nodes.sidebar,
    nodes.literal_block,
    nodes.raw,
    nodes.math_block,
    nodes.math,
    nodes.table,
    nodes.title,
)
_APART_CLASSES = frozenset({"question", "source"})


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.add_config_value("tfcourse_deck_report", "", "", [str])
    app.add_directive("notes", Notes)
    app.add_directive("question", Question)
    app.connect("env-before-read-docs", execute_lessons)
    app.connect("source-read", print_values)
    app.connect("doctree-read", check_slides)
    app.connect("build-finished", write_report)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Notes(Directive):  # type: ignore[misc] # docutils has no types
    """A slide's notes: ``{notes} 4`` are four minutes; ``:short:`` marks a slide of the short lecture, ``:break:`` the break."""

    required_arguments = 1
    has_content = True
    option_spec = {"short": directives.flag, "break": directives.flag}  # noqa: RUF012 - as docutils declares it

    def run(self) -> list[nodes.Node]:
        """Return the notes as an aside, which reveal.js shows to the speaker."""
        minutes = directives.nonnegative_int(self.arguments[0])
        marks = [name for name in ("short", "break") if name in self.options]
        notes = nodes.sidebar(classes=["notes"], minutes=minutes, marks=marks)
        notes += nodes.paragraph("", ", ".join([f"{minutes} min", *marks]), classes=["minutes"])
        self.state.nested_parse(self.content, self.content_offset, notes)
        if next(notes.findall(nodes.math), None) is not None:
            raise self.error("the speaker's window draws no formulas: say it in words")
        return [notes]


class Question(Directive):  # type: ignore[misc] # docutils has no types
    """A question to the room: four options, then the explanation. The argument is the letter of the right one, printed by a cell."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the options, and the answer as a fragment."""
        key = self.arguments[0].strip()
        block = nodes.container(classes=["question"])
        self.state.nested_parse(self.content, self.content_offset, block)
        options = block.children[0] if block.children else None
        if not isinstance(options, nodes.enumerated_list | nodes.bullet_list) or len(options) != len(_OPTIONS):
            raise self.error("a question begins with a list of four options")
        if key not in tuple(_OPTIONS):
            raise self.error(f"the key of a question is one of A to D, printed by a cell, and not {key!r}")
        if len(block.children) == 1:
            raise self.error("a question needs an explanation below its options")
        ordered = nodes.enumerated_list("", *options.children, enumtype="upperalpha")
        ordered[_OPTIONS.index(key)]["classes"].append("right")
        answer = nodes.container("", *block.children[1:], classes=["answer", "fragment"])
        first = next(iter(answer.findall(nodes.paragraph)))
        first.insert(0, nodes.strong("", f"{key}. "))
        block.children = []
        block += [ordered, answer]
        return [block]


def check_slides(app: Sphinx, document: nodes.document) -> None:
    """Warn about a slide that is too full or has no notes, and note the minutes of a deck."""
    if app.env.docname == _INDEX:
        return
    entries = []
    for section in document.findall(nodes.section):
        title = section.next_node(nodes.title)
        notes = [child for child in section.children if isinstance(child, nodes.sidebar)]
        for fault in _faults(section, len(notes)):
            _LOGGER.warning("slide “%s” %s", title.astext(), fault, location=section, type="tfcourse", subtype="slide")
        entries += [{"title": title.astext(), "minutes": note["minutes"], "marks": note["marks"]} for note in notes]
    app.env.metadata[app.env.docname][_SLIDES] = entries


def _faults(section: nodes.section, notes: int) -> Iterator[str]:
    if notes != 1:
        yield f"has {notes} blocks of notes, and needs one"
    words = sum(len(_WORD.findall(text)) for child in section.children for text in _texts(child))
    if words > MOST_WORDS:
        yield f"has {words} words besides its title; {MOST_WORDS} are the most"
    for block in section.findall(nodes.literal_block):
        if (lines := len(block.astext().strip().splitlines())) > MOST_LINES:
            yield f"shows {lines} lines of code; {MOST_LINES} are the most"


def _texts(node: nodes.Node) -> Iterator[str]:
    if isinstance(node, _APART) or _APART_CLASSES.intersection(getattr(node, "attributes", {}).get("classes", ())):
        return
    if isinstance(node, nodes.Text):
        yield node.astext()
    for child in node.children:
        yield from _texts(child)


def write_report(app: Sphinx, exception: Exception | None) -> None:
    """Write what each deck takes."""
    if exception is None and app.config.tfcourse_deck_report:
        metadata = app.env.metadata
        report = {name: metadata[name][_SLIDES] for name in sorted(app.env.found_docs) if _SLIDES in metadata[name]}
        Path(app.config.tfcourse_deck_report).write_text(json.dumps(report, indent=1), encoding="utf-8")
