"""The cost calculator holds the numbers of published models and of cards, and refuses what it cannot show."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tfcourse.lessons.explorers.costs import CARDS, GB, GIB, Card, CostExplorer, cost_explorer
from tfcourse.llama import decode_cost, kv_cache_bytes, llama_parameters

SIZES = {
    "8B": (128_256, 4096, 32, 8, 14_336, 32),
    "70B": (128_256, 8192, 64, 8, 28_672, 80),
    "405B": (128_256, 16_384, 128, 8, 53_248, 126),
}


def explorer(**options: Any) -> CostExplorer:
    return cost_explorer(**({"sizes": SIZES, "caption": "c"} | options))


def test_published_models_have_their_published_parameters() -> None:
    totals = [model.parameters[model.published][0] for model in explorer().models]
    assert totals == [8_030_261_248, 70_553_706_496, 405_853_388_800]
    for model, sizes in zip(explorer().models, SIZES.values(), strict=True):
        counts = llama_parameters(*sizes)
        assert model.parameters[8][1] == counts.attention + counts.feed_forward + counts.output


def test_every_number_of_heads_that_divides_the_queries_can_be_chosen() -> None:
    small, _, large = explorer().models
    assert list(small.parameters) == [1, 2, 4, 8, 16, 32]
    assert list(large.parameters) == [1, 2, 4, 8, 16, 32, 64, 128]
    for shared, (total, _) in small.parameters.items():
        assert total == sum(llama_parameters(128_256, 4096, 32, shared, 14_336, 32))


def test_costs_and_times_are_those_of_the_chapter() -> None:
    model, card = explorer().models[0], CARDS[1]
    cost = model.cost(8, 8_192, batch=3)
    assert cost == decode_cost(model.parameters[8][1], 32, 32, 8, 128, 8_192, batch=3)
    assert cost.cache_bytes == 3 * GIB
    assert 1e3 * model.latency(card, 8, 8_192).seconds == pytest.approx(4.8, abs=0.05)
    assert model.latency(card, 8, 8_192).bound == "bandwidth"
    assert model.latency(card, 8, 256, batch=1024).bound == "compute"
    assert model.most_texts(card, 8, 8_192) == (80 * GB - 2 * 8_030_261_248) // kv_cache_bytes(32, 8, 128, 8_192) == 59
    assert model.most_texts(card, 8, 8_192, bytes_per_number=1, cards=2) == 283


def test_ridges_are_those_of_the_chapter() -> None:
    assert [round(card.peak / card.bandwidth) for card in CARDS] == [153, 295, 206]


def test_data_has_the_counts_of_each_choice() -> None:
    data = json.loads(explorer(card=2).to_json())
    assert [model["name"] for model in data["models"]] == list(SIZES)
    assert data["models"][0]["shared"][3] == [8, *explorer().models[0].parameters[8]]
    assert data["cards"][1] == {"name": "H100 SXM", "peak": 989.4e12, "bandwidth": 3.35e12, "memory": 80 * GB}
    assert (data["start"], data["longest"]) == ({"card": 2, "length": 13}, 17)


def test_tables_and_summary_stand_in_for_the_figure() -> None:
    shown = explorer()
    assert "<td>14.96</td><td>1.00</td><td>16.00</td><td>4.00</td><td>64.00</td>" in shown.plain()
    seconds = [1e3 * shown.models[0].latency(card, 8, 8_192).seconds for card in CARDS]
    assert "".join(f"<td>{number:.2f}</td>" for number in seconds) in shown.plain()
    assert shown.summary() == "3 models, 3 GPUs, contexts of up to 131,072 tokens"


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        ({"sizes": {}}, "1 to 4 models, got 0"),
        ({"sizes": {str(n): SIZES["8B"] for n in range(5)}}, "got 5"),
        ({"sizes": {"few": (10, 8, 4, 2)}}, "six positive sizes"),
        ({"sizes": {"none": (10, 8, 4, 2, 16, 0)}}, "six positive sizes"),
        ({"sizes": {"odd": (10, 8, 4, 3, 16, 2)}}, "cannot share 3 heads"),
        ({"sizes": {"narrow": (10, 9, 4, 2, 16, 2)}}, "width of 9"),
        ({"card": 3}, "no card 3"),
        ({"cards": ()}, "among 0"),
        ({"cards": (Card("idle", 0.0, 1.0, 1),), "card": 0}, "positive"),
        ({"caption": " "}, "caption"),
    ],
)
def test_what_cannot_be_shown_is_refused(changed: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        explorer(**changed)
