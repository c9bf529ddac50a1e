"""Fold the chapters' symbols on the notation page: a fold per chapter instead of one long table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from html import escape
from itertools import groupby

from docutils import nodes

SECTION = "chapter-symbols"


def fold_letters(document: nodes.document, titles: Mapping[str, str], closed: Collection[str] = ()) -> None:
    """Split the table in the section of the chapters' symbols by its first column, and fold each part.

    Args:
        titles: the chapters' titles by number.
        closed: the numbers of chapters whose letters are left out.
    """
    for section in document.findall(nodes.section):
        if SECTION not in section["ids"]:
            continue
        for table in list(section.findall(nodes.table)):
            body = table.next_node(nodes.tbody)
            groups = groupby(list(body.children), key=lambda row: row[0].astext().strip())
            folds = [
                node
                for number, rows in groups
                for node in _fold_part(table, number, list(rows), titles)
                if number not in closed
            ]
            # Not `replace_self`, which hands the table's classes on to the first raw node, and with them a box around its tag.
            table.parent[table.parent.index(table) : table.parent.index(table) + 1] = folds


def _fold_part(table: nodes.table, number: str, rows: list[nodes.row], titles: Mapping[str, str]) -> list[nodes.Node]:
    part = table.deepcopy()
    group = part.next_node(nodes.tgroup)
    widths = list(group.findall(nodes.colspec))
    group.remove(widths[0])
    group["cols"] = len(widths) - 1
    head = part.next_node(nodes.thead)
    for row in head.findall(nodes.row):
        row.remove(row[0])
    copies = [row.deepcopy() for row in rows]
    for row in copies:
        row.remove(row[0])
    part.next_node(nodes.tbody).children = []
    part.next_node(nodes.tbody).extend(copies)
    summary = f"<summary>{escape(number)} · {escape(titles.get(number, 'Chapter'))}</summary>"
    return [
        nodes.raw("", f'<details class="tfc-letters">{summary}', format="html"),
        part,
        nodes.raw("", "</details>", format="html"),
    ]
