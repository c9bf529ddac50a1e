"""MyST becomes Markdown that any notebook program shows; nothing of MyST's own is left in any lesson."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.course.authoring.chapter import load_chapters
from autograder.course.authoring.myst import parse_notebook
from autograder.course.release.lesson_notebook import lesson_name
from autograder.course.release.plain_markdown import PlainMarkdown, References, collect_references

ROOT = Path(__file__).parents[3]
KNOWN = References(
    {"here": ("03_x", "A heading of `ours`"), "there": ("02_y", "Another"), "page": ("book", "A page")},
    {"a2017": ("Vaswani et al.", "2017"), "b2015": ("Luong and Manning", "2015")},
)


@pytest.mark.parametrize(
    ("myst", "plain"),
    [
        ("(here)=\n## A heading", "## A heading"),
        ("see {ref}`here`.", "see [A heading of `ours`](#A-heading-of-`ours`)."),
        ("see {ref}`there`.", "see *Another* (lesson 02)."),
        ("see {ref}`the page <page>`.", "see the page (the course's site)."),
        ("{cite:t}`a2017` said", "Vaswani et al. (2017) said"),
        ("so {cite}`a2017,b2015`.", "so (Vaswani et al., 2017; Luong and Manning, 2015)."),
        ("{py:func}`~tfcourse.attention.causal_mask`", "`causal_mask`"),
        ("{doc}`exercises </chapters/03/exercises>`", "exercises"),
        ("$$\nx\n$$ (eq-a)\n\nby {eq}`eq-a`", "$$\nx\n\\tag{1}\n$$\n\nby (1)"),
        ("```{admonition} Mind\n:class: tip\nthe gap\n```", "> **Mind**\n>\n> the gap"),
    ],
)
def test_each_construct_has_a_plain_form(myst: str, plain: str) -> None:
    turn = PlainMarkdown("03_x", KNOWN)
    turn.number_equations(iter([myst]))
    assert turn(myst) == plain


def test_a_role_without_a_plain_form_is_refused() -> None:
    with pytest.raises(ValueError, match="no plain form of the role 'kbd'"):
        PlainMarkdown("03_x", KNOWN)("{kbd}`Ctrl`")


@pytest.mark.parametrize("chapter", load_chapters(ROOT), ids=lambda chapter: chapter.name)
def test_nothing_of_myst_is_left_in_a_lesson(chapter) -> None:
    cells = parse_notebook(chapter.lesson.read_text(encoding="utf-8"), chapter.lesson).cells
    turn = PlainMarkdown(chapter.name, collect_references(ROOT))
    turn.number_equations(cell.source for cell in cells if cell.cell_type == "markdown")
    texts = [turn(cell.source) for cell in cells if cell.cell_type == "markdown"]
    assert not [text for text in texts if re.search(r"\{[a-z:]+\}`|^```\{|^\([\w-]+\)=|\$\$ \(eq", text, re.MULTILINE)]
    assert lesson_name(chapter) == f"{chapter.name[:2]}_lesson.ipynb"


def test_authors_are_written_as_on_the_site() -> None:
    works = collect_references(ROOT).works
    assert works["velickovic2018"] == ("Veličković et al.", "2018")
    assert "others" not in " ".join(names for names, _ in works.values())
