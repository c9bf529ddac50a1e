"""What every lesson promises about its form: code that fits the page, and a reading time that is true."""

from __future__ import annotations

import re

import pytest

from .lesson import ROOT

LESSONS = sorted((ROOT / "chapters").glob("*/lesson.md"))
# These do not say yet how long they take.
UNTIMED = {"02_alignment", "03_scaled_dot_product", "04_multi_head", "05_transformer"}
TIMED = [path for path in LESSONS if path.parent.name not in UNTIMED]
HIDDEN = {"hide-input", "remove-input"}
WORDS_PER_MINUTE, LINES_PER_MINUTE = 200, 10


def shown_cells(source: str) -> list[str]:
    """Return the code of a lesson's cells that a reader sees without unfolding anything."""
    shown = []
    for cell in re.findall(r"```\{code-cell\}[^\n]*\n(.*?)\n```", source, flags=re.S):
        tags = re.findall(r"[\w-]+", "".join(re.findall(r"^:tags: \[(.*)\]$", cell, flags=re.M)))
        if not HIDDEN & set(tags):
            shown.append(re.sub(r"^:(?:tags|mystnb):.*\n+", "", cell, flags=re.M))
    return shown


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.parent.name)
def test_code_that_is_shown_fits_the_page(path):
    for code in shown_cells(path.read_text("utf-8")):
        assert len(code.splitlines()) <= 20, code
        assert max(map(len, code.splitlines())) <= 80, code


@pytest.mark.parametrize("path", TIMED, ids=lambda path: path.parent.name)
def test_reading_time_is_that_of_its_words_and_lines(path):
    source = path.read_text("utf-8")
    words = len(re.sub(r"```.*?\n```", "", source, flags=re.S).split())
    lines = sum(bool(line.strip()) for code in shown_cells(source) for line in code.splitlines())
    stated = re.search(r"\*\*It takes\*\*\s+about (\d+) minutes", source)
    assert stated, "a lesson says how long it takes to read"
    assert abs(words / WORDS_PER_MINUTE + lines / LINES_PER_MINUTE - int(stated[1])) < 5
