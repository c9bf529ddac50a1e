"""The span corruptor holds what the reference makes of each mask."""

from __future__ import annotations

import torch

from tfcourse.lessons.explorers.spans import MOST_WORDS, SENTINELS, span_explorer
from tfcourse.t5 import corrupt_spans

from .examples import data_of, tables_of

WORDS = ("the", "train", "to", "Lyon", "leaves", "at", "six", "and", "two")


def test_source_and_target_are_those_of_the_reference() -> None:
    explorer = span_explorer(WORDS, caption="c", masks=5, seed=3)
    texts = [*WORDS, *SENTINELS]
    for mask in explorer.drawn:
        parts = corrupt_spans(torch.arange(len(WORDS)), torch.tensor(mask), range(len(WORDS), len(texts)))
        assert explorer.corrupted(mask) == tuple([texts[token] for token in part.tolist()] for part in parts)


def test_data_and_table_name_hidden_words_by_their_places() -> None:
    explorer = span_explorer(WORDS, caption="c", masks=2)
    data = data_of(explorer)
    assert data["words"] == list(WORDS)
    assert [[place in hidden for place in range(len(WORDS))] for hidden in data["drawn"]] == [
        list(mask) for mask in explorer.drawn
    ]
    (table,) = tables_of(explorer)
    assert [row[1:] for row in table[1:]] == [
        [" ".join(part) for part in explorer.corrupted(mask)] for mask in explorer.drawn
    ]


def test_a_text_of_the_largest_length_has_sentinels_enough() -> None:
    explorer = span_explorer(["w"] * MOST_WORDS, caption="c")
    _, target = explorer.corrupted([place % 2 == 0 for place in range(MOST_WORDS)])
    assert target[-1] == SENTINELS[-1]
