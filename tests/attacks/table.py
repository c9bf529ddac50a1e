"""Writes the table of attacks into docs/attacks.md: ``python -m tests.attacks.table``."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from .attack import attacks

PAGE = Path(__file__).resolve().parents[2] / "docs" / "attacks.md"
BEGIN, END = "<!-- attacks: begin -->", "<!-- attacks: end -->"


def table() -> str:
    """Return the table of all attacks in Markdown, a heading per family."""
    found = attacks()
    lines = [f"{len(found)} attacks.", ""]
    for family, members in groupby(found, key=lambda attack: attack.family):
        lines += [
            f"### {family.capitalize()}",
            "",
            "| attack | what it tries | under stock nbgrader |",
            "|---|---|---|",
        ]
        lines += [f"| {_cell(each.name)} | {_cell(each.story)} | {_cell(each.stock)} |" for each in members]
        lines.append("")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def page_with_table(text: str) -> str:
    """Return the page with the table put between its markers."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
