"""What figures compute is what a loop, a model of the course or a second program computes."""

from __future__ import annotations

import inspect
import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tfcourse import sampling
from tfcourse.lessons.explorers.alignments import count_crossings
from tfcourse.lessons.explorers.caches import CacheStep
from tfcourse.lessons.explorers.costs import CARDS, GB, GIB, cost_explorer
from tfcourse.lessons.explorers.dials import dial_explorer
from tfcourse.lessons.explorers.samplers import SAMPLERS
from tfcourse.lessons.explorers.spans import MOST_WORDS, SENTINELS, span_explorer
from tfcourse.llama import decode_cost, kv_cache_bytes, llama_parameters
from tfcourse.rotary import rotary_embedding, rotary_frequencies
from tfcourse.t5 import corrupt_spans


@given(st.lists(st.none() | st.integers(0, 5), min_size=1, max_size=7))
def test_crossings_are_those_of_lines_that_intersect(places: list[int | None]) -> None:
    links = [(row, place) for row, place in enumerate(places) if place is not None]
    weights = torch.zeros(len(places), 6)
    for row, place in links:
        weights[row] = 0.1
        weights[row, place] = 0.5
    intersect = sum((a - b) * (s - t) < 0 for (a, s), (b, t) in itertools.combinations(links, 2))
    assert count_crossings(weights) == intersect


def products(queries: range, d_model: int, n_layers: int) -> int:
    """Multiplications of the tokens at these places, by loops over the layers, the matrices and the keys."""
    count = 0
    for _ in range(n_layers):
        for query in queries:
            for rows, columns in [(d_model, d_model)] * 4 + [(d_model, 4 * d_model), (4 * d_model, d_model)]:
                count += rows * columns
            for _key in range(query + 1):
                count += 2 * d_model  # the score, and the value times its weight
    return count


@pytest.mark.parametrize("length", [1, 2, 7])
def test_a_step_costs_what_a_loop_counts(length: int) -> None:
    step = CacheStep.of(length, d_model=6, n_layers=3)
    assert step.recomputed == products(range(length), 6, 3)
    assert step.cached == products(range(length - 1, length), 6, 3)
    assert step.kept == 3 * length * (6 + 6) * 4, "a key and a value for each token and layer, in float32"


SIZES = {
    "8B": (128_256, 4096, 32, 8, 14_336, 32),
    "70B": (128_256, 8192, 64, 8, 28_672, 80),
    "405B": (128_256, 16_384, 128, 8, 53_248, 126),
}
EXPLORER = cost_explorer(SIZES, caption="c")


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


TURNED = torch.randn(2, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("interleaved", [False, True])
def test_scores_are_those_of_rows_that_are_turned(interleaved: bool) -> None:
    explorer = dial_explorer(*TURNED, caption="c")
    for clock in explorer.clocks:
        frequencies, positions = torch.tensor(clock.frequencies, dtype=torch.float64), torch.tensor([31.0, 12.0])
        q, k = rotary_embedding(TURNED, positions * clock.scale, frequencies, interleaved=interleaved)
        assert explorer.score(clock, 19, interleaved=interleaved) == pytest.approx(float(q @ k), abs=1e-6)


def test_clocks_are_stretched_by_how_far_the_sliders_reach() -> None:
    trained, squeezed, based, slowed = dial_explorer(*TURNED, caption="c", trained=32, longest=128).clocks[:4]
    assert trained.frequencies == pytest.approx(rotary_frequencies(8).tolist())
    assert (squeezed.frequencies, squeezed.scale) == (trained.frequencies, 0.25)
    assert based.frequencies[0] == 1
    for clock in (based, slowed):
        assert clock.frequencies[-1] == pytest.approx(trained.frequencies[-1] / 4)


def test_its_samplers_are_those_of_the_course_that_need_no_text_with_their_settings() -> None:
    without_text = {
        name
        for name in sampling.__all__
        if "tokens" not in (parameters := inspect.signature(getattr(sampling, name)).parameters)
        and "mu" not in parameters
    }
    assert set(SAMPLERS) == without_text
    for name, (_, settings) in SAMPLERS.items():
        assert set(settings) <= set(inspect.signature(getattr(sampling, name)).parameters)
        for least, most, step, start in settings.values():
            assert least <= start <= most
            assert step > 0


def test_source_and_target_are_those_of_the_reference() -> None:
    explorer = span_explorer(words := list("abcdefghi"), caption="c", masks=5, seed=3)
    texts = [*words, *SENTINELS]
    for mask in explorer.drawn:
        parts = corrupt_spans(torch.arange(9), torch.tensor(mask), range(9, len(texts)))
        assert explorer.corrupted(mask) == tuple([texts[token] for token in part.tolist()] for part in parts)


def test_a_text_of_the_largest_length_has_sentinels_enough() -> None:
    explorer = span_explorer(["w"] * MOST_WORDS, caption="c")
    _, target = explorer.corrupted([place % 2 == 0 for place in range(MOST_WORDS)])
    assert target[-1] == SENTINELS[-1]
