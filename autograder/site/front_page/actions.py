"""The front page's ways in: the directive ``{actions}`` and the role ``{first-lesson}``, which lead to the first lesson of the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.addnodes import pending_xref

from autograder.site.page_parts.closed_chapters import site_chapters


class Actions(Directive):  # type: ignore[misc] # docutils has no types
    """The directive ``{actions}``: two buttons, one to the first lesson and one to what lecturers read."""

    def run(self) -> list[nodes.Node]:
        """Return the buttons as raw HTML."""
        env = self.state.document.settings.env
        lesson = f"{'../' * str(env.docname).count('/')}{_first(env)}.html"
        markup = (
            f'<ul class="tfc-actions"><li><a href="{lesson}">Start reading</a></li>'
            '<li><a href="#for-lecturers">Teach with it</a></li></ul>'
        )
        return [nodes.raw("", markup, format="html")]


def first_lesson(name: str, rawtext: str, text: str, lineno: int, inliner: Any, *_: Any) -> tuple[list[Any], list[Any]]:
    """Return a reference to the first lesson of the site; the role's text is what it says."""
    env = inliner.document.settings.env
    target = f"/{_first(env)}"
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


def _first(env: Any) -> str:
    return f"chapters/{site_chapters(Path(env.srcdir), env.config.tfcourse_chapters)[0].name}/lesson"
