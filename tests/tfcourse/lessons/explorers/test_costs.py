"""The cost calculator holds the numbers of published models and of cards."""

from __future__ import annotations

import pytest

from tfcourse.lessons.explorers.costs import CARDS, GB, GIB, cost_explorer
from tfcourse.llama import decode_cost, kv_cache_bytes, llama_parameters

from .examples import data_of, tables_of

SIZES = {
    "8B": (128_256, 4096, 32, 8, 14_336, 32),
    "70B": (128_256, 8192, 64, 8, 28_672, 80),
    "405B": (128_256, 16_384, 128, 8, 53_248, 126),
}
EXPLORER = cost_explorer(SIZES, caption="c", card=2)


def test_published_models_have_their_published_parameters() -> None:
    totals = [model.parameters[model.published][0] for model in EXPLORER.models]
    assert totals == [8_030_261_248, 70_553_706_496, 405_853_388_800]


def test_every_number_of_heads_that_divides_the_queries_can_be_chosen() -> None:
    for model, (vocabulary, d_model, heads, _, d_ff, layers) in zip(EXPLORER.models, SIZES.values(), strict=True):
        assert list(model.parameters) == [n for n in range(1, heads + 1) if heads % n == 0]
        for shared, (total, read) in model.parameters.items():
            counts = llama_parameters(vocabulary, d_model, heads, shared, d_ff, layers)
            assert (total, read) == (sum(counts), counts.attention + counts.feed_forward + counts.output)


def test_costs_and_times_are_those_of_the_chapter() -> None:
    model, card = EXPLORER.models[0], CARDS[1]
    cost = model.cost(8, 8_192, batch=3)
    assert cost == decode_cost(model.parameters[8][1], 32, 32, 8, 128, 8_192, batch=3)
    assert cost.cache_bytes == 3 * GIB
    assert 1e3 * model.latency(card, 8, 8_192).seconds == pytest.approx(4.8, abs=0.05)
    assert model.latency(card, 8, 8_192).bound == "bandwidth"
    assert model.latency(card, 8, 256, batch=1024).bound == "compute"
    assert model.most_texts(card, 8, 8_192) == (80 * GB - 2 * 8_030_261_248) // kv_cache_bytes(32, 8, 128, 8_192) == 59
    assert model.most_texts(card, 8, 8_192, bytes_per_number=1, cards=2) == 283
    assert [round(card.peak / card.bandwidth) for card in CARDS] == [153, 295, 206]


def test_data_and_tables_have_the_counts_of_each_choice() -> None:
    data = data_of(EXPLORER)
    assert [model["name"] for model in data["models"]] == list(SIZES)
    assert data["models"][0]["shared"][3] == [8, *EXPLORER.models[0].parameters[8]]
    assert data["cards"][1] == {"name": "H100 SXM", "peak": 989.4e12, "bandwidth": 3.35e12, "memory": 80 * GB}
    assert (data["start"], data["longest"]) == ({"card": 2, "length": 13}, 17)
    sizes, times = tables_of(EXPLORER)
    assert sizes[1] == ["8B", "14.96", "1.00", "16.00", "4.00", "64.00"]
    assert times[1][1:] == [f"{1e3 * EXPLORER.models[0].latency(card, 8, 8_192).seconds:.2f}" for card in CARDS]
