"""The cache calculator counts as the reference does, and refuses what it cannot show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tfcourse.explorers.costs import Card, CostExplorer, cost_explorer
from tfcourse.llama import llama_parameters

MODELS = {"8B": (128_256, 4096, 32, 8, 14_336, 32), "70B": (128_256, 8192, 64, 8, 28_672, 80)}
CARDS = (Card("A100", 312e12, 2.039e12, 80 * 10**9), Card("H100", 989.4e12, 3.35e12, 80 * 10**9))


def explorer(**changed: Any) -> CostExplorer:
    options: dict[str, Any] = {"models": MODELS, "cards": CARDS, "caption": "c"} | changed
    return cost_explorer(options.pop("models"), options.pop("cards"), **options)


def test_a_word_of_llama_8b_takes_five_milliseconds_on_an_h100() -> None:
    seen = explorer().reading(0, 1)
    assert seen.seconds == pytest.approx(4.8e-3, rel=0.02)
    assert seen.bound == "bandwidth"
    assert (seen.weight_bytes, seen.cache_bytes) == (2 * 8_030_261_248, 2**30)
    assert seen.fits == 59


def test_intensities_are_the_batch_the_heads_that_share_and_those_of_a_prompt() -> None:
    weights, caches, prompt = explorer().reading(1, 1, batch=32, length=4096).intensities
    assert (weights, caches) == (32, 8)
    assert 4096 < prompt < 5000


def test_a_step_is_the_slower_of_both_clocks_and_all_cards_share_it() -> None:
    one, four = (explorer().reading(1, 0, batch=256, length=512, cards=cards) for cards in (1, 4))
    assert one.seconds == pytest.approx(4 * four.seconds)
    assert one.bound == four.bound == "compute"
    assert (one.fits, four.fits > 256) == (0, True)


def test_fewer_heads_of_keys_make_smaller_caches_and_slightly_smaller_weights() -> None:
    few, many = (explorer().reading(0, 1, groups=groups) for groups in (1, 32))
    assert 32 * few.cache_bytes == many.cache_bytes
    assert 1 < many.weight_bytes / few.weight_bytes < 1.2


def test_data_has_the_weights_for_every_number_of_heads() -> None:
    data = json.loads(explorer().to_json())
    groups = {row[0]: row[1:] for row in data["models"][0]["groups"]}
    assert list(groups) == [1, 2, 4, 8, 16, 32]
    counts = llama_parameters(*MODELS["8B"])
    assert groups[8] == [sum(counts), counts.attention + counts.feed_forward + counts.output]
    assert data["models"][1]["published"] == 8


def test_a_table_and_a_summary_stand_in_for_the_figure() -> None:
    assert "<td>14.96</td><td>1.00</td><td>4.80</td><td>59.00</td>" in explorer().plain()
    assert explorer().summary() == "2 models, 2 cards, contexts up to 131,072 tokens"


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"models": {}}, "a model and a card"),
        ({"cards": ()}, "a model and a card"),
        ({"models": {"a": (1, 2, 3)}}, "six numbers"),
        ({"models": {"a": (9, 8, 2, 0, 9, 1)}}, "six numbers"),
        ({"models": {"a": (9, 9, 2, 1, 9, 1)}}, "that divide"),
        ({"models": {"a": (9, 8, 4, 3, 9, 1)}}, "that divide"),
        ({"cards": (Card("a", 1.0, 0.0, 1),)}, "positive"),
        ({"caption": " "}, "caption"),
    ],
)
def test_what_cannot_be_shown_is_refused(changed: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        explorer(**changed)
