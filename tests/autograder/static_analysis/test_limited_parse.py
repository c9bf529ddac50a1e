"""Students' texts are parsed after a look at their length and depth, and in one place only."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autograder.static_analysis import limited_parse
from autograder.static_analysis.cell_ast import parse_cell, syntax_error
from autograder.static_analysis.cell_names import defined_names
from autograder.static_analysis.limited_parse import (
    LONGEST,
    MOST_BRACKETS,
    UnreadableCellError,
    bracket_depth,
    parse_text,
)

ROOT = Path(__file__).parents[3]
# Packages that read what students hand in, outside of their processes.
READERS = ("static_analysis", "submission", "collecting", "engine/checker", "record", "feedback", "grading", "marking")
DEEP = MOST_BRACKETS + 1
HOSTILE = {
    "brackets": "(" * DEEP + "a b" + ")" * DEEP,
    "mixed brackets": "f(a[{1:" * 9 + "a b" + "}])" * 9,
    "never closed": "[" * DEEP,
    "closed in texts only": "".join("(')' + " for _ in range(DEEP)) + "$",
    "closed in comments only": "".join("( # )\n" for _ in range(DEEP)) + "$",
    "closed in a comment that a backslash does not continue": "x # \\\n" + "(" * DEEP + "$",
    "closed in long texts only": "".join('("""\n)" ) ""\\")""" + ' for _ in range(DEEP)) + "$",
    "in a formatted text": f"f'{{{'(' * DEEP}a b{')' * DEEP}}}'",
    "in a raw formatted text": f'rf"""{{{"(" * DEEP}a b"""',
}


@pytest.fixture
def no_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*arguments: Any, **options: Any) -> None:
        raise AssertionError("the parser was asked")

    monkeypatch.setattr(limited_parse, "ast", SimpleNamespace(parse=parse))


@pytest.mark.usefixtures("no_parser")
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_nested_brackets_do_not_reach_the_parser(text: str) -> None:
    with pytest.raises(UnreadableCellError, match="deep"):
        parse_text(text)
    with pytest.raises(UnreadableCellError):
        parse_cell(f"{text}\nx = 1")
    assert syntax_error(text) == ""
    assert defined_names(f"def soft_lookup(q):\n    pass\n{text}") == {"soft_lookup"}


@pytest.mark.usefixtures("no_parser")
def test_a_long_text_does_not_reach_the_parser() -> None:
    with pytest.raises(UnreadableCellError, match="too long"):
        parse_text("x\n" * LONGEST)


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("f(a[1], {2: (3,)})", 3),
        ("x = '((((((' + \"it's (\" + '''\n((\n'''  # ((((", 0),
        ("print(f'{a} of {b}: {c[0]}')", 5),
        ("print('a' 'b', r'\\')', \"\\\"(\")", 1),
        ("print('')\nprint(\"\")\nprint(''' ' ''')", 1),
        (")]}(", 1),
    ],
)
def test_brackets_in_texts_and_comments_do_not_count(text: str, most: int) -> None:
    assert bracket_depth(text) == most


@pytest.mark.parametrize("piece", [r"\'", '""', "(\"'", "f'", "# \\\n"])
def test_a_look_at_a_text_takes_time_in_proportion_to_its_length(piece: str) -> None:
    def seconds(times: int) -> float:
        begin = time.process_time()
        text = "'" + piece * times
        bracket_depth(text)
        for read in (parse_cell, syntax_error, defined_names):
            with suppress(UnreadableCellError):
                read(f"!ls\n{text}")
        return time.process_time() - begin

    # Ten times the length takes ten times as long; with the square of the length it would be a hundred.
    assert seconds(60_000) < 33 * max(seconds(6_000), 0.02)


def test_nothing_else_parses_what_students_hand_in() -> None:
    found = [
        str(file.relative_to(ROOT))
        for package in READERS
        for file in sorted((ROOT / "autograder" / package).rglob("*.py"))
        if "ast.parse(" in file.read_text(encoding="utf-8")
    ]
    # The one that parses the modules of the course itself; a constant; and the one place.
    assert found == [
        f"autograder/static_analysis/{name}.py" for name in ("definitions", "limited_parse", "suspicious_code")
    ]
