"""The page of notation folds the letters of each chapter, and loses none."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes

from autograder.site.page_parts.notation_page import fold_letters


def row(*cells: str) -> nodes.row:
    return nodes.row("", *(nodes.entry("", nodes.paragraph("", cell)) for cell in cells))


def page(label: str) -> nodes.document:
    document = nodes.document(None, None)  # type: ignore[arg-type]
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in range(3)), cols=3)
    group += nodes.thead("", row("chapter", "letter", "meaning"))
    group += nodes.tbody("", row("01", "u", "token"), row("01", "h", "state"), row("02", "s", "score"))
    document += nodes.section("", nodes.title("", "Letters"), nodes.table("", group, classes=["wide"]), ids=[label])
    return document


def test_each_chapter_has_a_fold_with_its_letters() -> None:
    document = page("chapter-symbols")
    fold_letters(document, {"01": "Recurrent & more", "02": "Alignment"})
    summaries = [raw.astext() for raw in document.findall(nodes.raw) if "summary" in raw.astext()]
    assert [text.partition("<summary>")[2] for text in summaries] == [
        "01 · Recurrent &amp; more</summary>",
        "02 · Alignment</summary>",
    ]
    assert not [raw for raw in document.findall(nodes.raw) if raw["classes"]]
    tables = [[cell.astext() for cell in table.findall(nodes.entry)] for table in document.findall(nodes.table)]
    assert tables == [["letter", "meaning", "u", "token", "h", "state"], ["letter", "meaning", "s", "score"]]


def test_other_tables_stay_as_they_are() -> None:
    document = page("shapes")
    before = document.pformat()
    fold_letters(document, {})
    assert document.pformat() == before


def test_each_row_of_the_page_belongs_to_one_chapter() -> None:
    text = (Path(__file__).parents[2] / "docs/notation.md").read_text(encoding="utf-8")
    rows = text.partition("(chapter-symbols)=")[2].splitlines()
    first = [row.split("|")[1].strip() for row in rows if row.startswith("| ")][1:]
    assert first == sorted(first)
    assert all(re.fullmatch(r"\d\d", cell) for cell in first)
