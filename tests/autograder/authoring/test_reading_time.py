"""The reading time of a lesson, against what the lessons themselves state."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder.site.front_page.facts import reading_minutes

ROOT = Path(__file__).parents[3]
LESSONS = sorted((ROOT / "chapters").glob("*/lesson.md"))


def test_words_and_shown_lines_count_and_folded_code_does_not() -> None:
    words = "word " * 400
    shown = "```{code-cell} ipython3\n" + "x = 1\n" * 20 + "```\n"
    folded = shown.replace("ipython3\n", "ipython3\n:tags: [hide-input]\n", 1)
    assert reading_minutes(words) == 2
    assert reading_minutes(words + shown) == 4
    assert reading_minutes(words + folded) == 2


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.parent.name)
def test_a_lesson_that_states_its_time_is_right(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    stated = re.search(r"\*\*It takes\*\*\s+about (\d+) minutes", text)
    if stated is None:
        pytest.skip("this lesson does not say how long it takes")
    assert abs(reading_minutes(text) - int(stated[1])) <= 5
