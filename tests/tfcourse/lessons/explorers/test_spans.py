"""The span corruptor holds what the reference makes of each mask, and refuses what it cannot show."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import torch

from tfcourse.lessons.explorers.spans import MOST_WORDS, SENTINELS, span_explorer
from tfcourse.t5 import corrupt_spans

WORDS = ("the", "train", "to", "Lyon", "leaves", "at", "six", "and", "two")


def test_source_and_target_are_those_of_the_reference() -> None:
    explorer = span_explorer(WORDS, caption="c", masks=5, seed=3)
    texts = [*WORDS, *SENTINELS]
    for mask in explorer.drawn:
        parts = corrupt_spans(torch.arange(len(WORDS)), torch.tensor(mask), range(len(WORDS), len(texts)))
        assert explorer.corrupted(mask) == tuple([texts[token] for token in part.tolist()] for part in parts)


def test_data_names_hidden_words_by_their_places() -> None:
    explorer = span_explorer(WORDS, caption="c", masks=2)
    data = json.loads(explorer.to_json())
    assert data["words"] == list(WORDS)
    assert [[place in hidden for place in range(len(WORDS))] for hidden in data["drawn"]] == [
        list(mask) for mask in explorer.drawn
    ]


def test_a_text_of_the_largest_length_has_sentinels_enough() -> None:
    explorer = span_explorer(["w"] * MOST_WORDS, caption="c")
    _, target = explorer.corrupted([place % 2 == 0 for place in range(MOST_WORDS)])
    assert target[-1] == SENTINELS[-1]


def test_table_and_summary_say_what_is_hidden() -> None:
    explorer = span_explorer(WORDS, caption="Which?", masks=3)
    assert "Hidden: Which?" in explorer.plain()
    assert len(re.findall("<tr>", explorer.plain())) >= 3
    assert "&lt;0&gt;" in explorer.plain()
    assert explorer.summary() == "9 words, hidden in 3 ways"


@pytest.mark.parametrize(
    ("words", "options", "match"),
    [
        (["one"], {}, "expected 2 to 24 words, got 1"),
        (["w"] * 25, {}, "got 25"),
        (WORDS, {"masks": 0}, "at least 1 mask"),
        (WORDS, {"caption": " "}, "caption"),
    ],
)
def test_what_cannot_be_shown_is_refused(words: list[str], options: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        span_explorer(words, **({"caption": "c"} | options))
