"""Write an exam's pages: a paper for each version, and the keys with their evidence."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from autograder.exam.compose import Exam
from autograder.exam.item import KINDS, LETTERS, Item
from autograder.questions.question import numbered_code

_CODE = re.compile(r"`([^`]+)`")


def pages(exam: Exam, *, title: str) -> dict[str, bytes]:
    """Return the pages by file name."""
    papers = {
        f"paper-{letter}.html": _page("paper", exam, title, letter=letter, items=items)
        for letter, items in zip(exam.letters, exam.versions, strict=True)
    }
    return {name: text.encode() for name, text in {**papers, "keys.html": _page("keys", exam, title)}.items()}


def names_sentence(names: tuple[str, ...]) -> str:
    """Return a sentence about the names that shown code uses; empty if it uses none."""
    if not names:
        return ""
    listed = " and ".join(filter(None, [", ".join(f"`{name}`" for name in names[:-1]), f"`{names[-1]}`"]))
    return f"{listed} {'is' if len(names) == 1 else 'are'} right."


def with_code(text: str) -> Markup:
    """Return text as HTML, with what stands between backquotes as code."""
    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704 (it is escaped)


def _page(name: str, exam: Exam, title: str, **values: object) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("autograder.exam"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(numbered=_numbered, with_code=with_code, uses=names_sentence)
    shared = {"exam": exam, "title": title, "letters": LETTERS, "kinds": KINDS}
    html: str = environment.get_template(f"{name}.html").render(**shared, **values)
    return html


def _numbered(item: Item) -> str:
    return numbered_code(item.code)


def template_folder() -> Path:
    """Return the folder of the templates."""
    return Path(__file__).parent / "templates"
