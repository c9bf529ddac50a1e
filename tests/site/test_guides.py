"""The guides lead to all that they promise: each page of details, and each command."""

from __future__ import annotations

import re
from pathlib import Path

from click import Context

from autograder.commands.main import main

ROOT = Path(__file__).parents[2]
BOOK = ROOT / "book"
INSTRUCTORS = (BOOK / "instructors.md").read_text(encoding="utf-8")
DETAILS = {path.stem: path.read_text(encoding="utf-8") for path in (BOOK / "teaching").glob("*.md")}


def test_the_guide_for_instructors_names_every_page_of_details() -> None:
    assert DETAILS
    assert {name for name in DETAILS if f"{{doc}}`/book/teaching/{name}`" not in INSTRUCTORS} == set()


def test_every_command_is_in_the_table_of_commands() -> None:
    listed = set(re.findall(r"^\| `tfcourse ([\w-]+)", DETAILS["commands"], re.MULTILINE))
    assert listed == set(main.list_commands(Context(main)))


def test_hero_names_an_explorer_of_its_lesson():
    text = (ROOT / "book" / "intro.md").read_text(encoding="utf-8")
    lesson, caption = re.search(r"```\{hero\} (\S+)\n:caption: (.+)\n", text).groups()
    assert f'caption="{caption}' in (ROOT / f"{lesson}.md").read_text(encoding="utf-8")
