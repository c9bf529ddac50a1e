"""Numbers that a figure's script computes for each setting are those that Python computes."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tfcourse.layers import DecoderLayer
from tfcourse.lessons.explorers.blocks import block_explorer
from tfcourse.lessons.explorers.caches import CacheStep, cache_explorer
from tfcourse.lessons.explorers.costs import CARDS, GIB, cost_explorer
from tfcourse.lessons.explorers.dials import dial_explorer
from tfcourse.lessons.explorers.merges import merge_explorer
from tfcourse.lessons.explorers.positions import position_explorer
from tfcourse.lessons.explorers.reaches import (
    SHOWN,
    WAYS,
    WIDTH,
    layers_until_all_met,
    pairs,
    reach,
    reach_explorer,
)
from tfcourse.lessons.explorers.samplers import SAMPLERS, sampler_explorer
from tfcourse.lessons.explorers.spans import SENTINELS, span_explorer
from tfcourse.llama import decode_cost, inference_latency, kv_cache_bytes, largest_batch, llama_parameters
from tfcourse.positions import sinusoidal_positions
from tfcourse.sampling import sampler_chain
from tfcourse.t5 import corrupt_spans
from tfcourse.tokenization import pre_tokenize, train_bpe

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
SIZES = {
    "8B": (128_256, 4096, 32, 8, 14_336, 32),
    "70B": (128_256, 8192, 64, 8, 28_672, 80),
    "405B": (128_256, 16_384, 128, 8, 53_248, 126),
}
# Model, key/value heads, context, texts, bytes per number, card, how many of them.
SETTINGS = [
    ("8B", 8, 8_192, 1, 2, 1, 1),
    ("8B", 32, 131_072, 4, 2, 0, 1),
    ("8B", 1, 256, 1024, 1, 1, 1),
    ("70B", 8, 8_192, 64, 2, 2, 4),
    ("405B", 8, 131_072, 8, 2, 1, 17),
    ("405B", 128, 16_384, 16, 4, 0, 32),
]
WORDS = ("the", "train", "to", "Lyon", "leaves", "at", "six")
OWN = "Aaaa banana, ananas! Don't: 1_000 żółć 東東東東.  In  the end\nthe end of the bend"


@pytest.fixture
def page(reused_page: Any) -> Any:
    return reused_page


def said(page: Any) -> str:
    return str(page.locator(".explorer-live").first.text_content())


def choose(page: Any, *names: str) -> None:
    for name in names:
        page.get_by_role("radio", name=name, exact=True).click()


def slide(page: Any, **values: int) -> None:
    """Set dials, each by a name in which underscores stand for what is between words."""
    for name, value in values.items():
        page.get_by_role("slider", name=re.compile(f"^{name.replace('_', '.')}$")).fill(str(value))


def numbers(texts: list[str]) -> list[float]:
    return [float(re.findall(r"[\d.,]*\d", text)[0].replace(",", "")) for text in texts]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_costs_are_those_of_the_chapters_functions(open_page: Open, setting: tuple[Any, ...]) -> None:
    name, shared, length, batch, width, which, many = setting
    explorer, card = cost_explorer(SIZES, caption="c"), CARDS[which]
    page = open_page(explorer)
    choose(page, name, str(width), card.name)
    steps = {"context_length": length, "key.value_heads": shared, "texts_in_the_batch": batch}
    slide(page, **{dial: value.bit_length() - 1 for dial, value in steps.items()}, GPUs=many)
    vocabulary, d_model, heads, _, d_ff, layers = SIZES[name]
    counts = llama_parameters(vocabulary, d_model, heads, shared, d_ff, layers)
    weights = counts.attention + counts.feed_forward + counts.output
    cost = decode_cost(weights, layers, heads, shared, d_model // heads, length, batch=batch, bytes_per_number=width)
    moved = cost.weight_bytes + cost.cache_bytes
    latency = inference_latency(cost.flops, moved, peak_flops=card.peak, bandwidth=card.bandwidth, n_devices=many)
    text = kv_cache_bytes(layers, shared, d_model // heads, length, bytes_per_number=width)
    most = largest_batch(many * card.memory, sum(counts) * width, text)
    shown = dict(zip(*(page.locator(f".co-counts {tag}").all_text_contents() for tag in ("dt", "dd")), strict=True))
    assert shown["texts that fit"] == f"{most:,}"
    assert shown["the longer one"] == {"compute": "FLOP", "bandwidth": "bytes"}[latency.bound]
    times = numbers([shown[name] for name in ("a token of each text", "tokens per second", "time of the FLOP")])
    flop = 1e3 * cost.flops / card.peak / many
    assert times == pytest.approx([1e3 * latency.seconds, batch / latency.seconds, flop], rel=0.005)
    weighed = [sum(counts) * width / GIB, cost.cache_bytes / GIB, many * card.memory / GIB]
    legend = page.locator(".co-memory .co-legend span").all_text_contents()
    assert numbers(legend) == pytest.approx(weighed, rel=0.005)
    assert page.locator(".co-memory .co-much").count() == (batch > most)
    # A prompt asks for every position what a step asks for one, and reads the weights once.
    model = next(model for model in explorer.models if model.name == name)
    ends = [model.cost(shared, end, batch=batch).flops for end in (1, length)]
    expected = [2 * batch / width, 2 * heads / shared / width, length * sum(ends) / 2 / moved]
    marks = page.locator(".co-chart > svg .co-point").evaluate_all("all => all.map((one) => +one.dataset.intensity)")
    assert marks == pytest.approx(expected, rel=1e-9)


def test_scores_of_the_dial_are_those_of_python_and_moving_both_changes_none(open_page: Open) -> None:
    explorer = dial_explorer(*torch.randn(2, 8, generator=torch.Generator().manual_seed(0)), caption="c")
    page = open_page(explorer)

    def score() -> float:
        return float(re.findall(r"score (\u2212?\d+\.\d\d)\.", said(page))[0].replace("\u2212", "-"))

    for number, theta in enumerate(("10,000", "500,000")):
        choose(page, theta)
        for clock in explorer.clocks[4 * number : 4 * number + 4]:
            for name in ("half-split", "interleaved"):
                choose(page, clock.way, name)
                expected = explorer.score(clock, 12, interleaved=name == "interleaved")
                assert score() == pytest.approx(expected, abs=0.0051), (theta, clock.way, name)
    before, hand = score(), page.locator(".de-hand").first.get_attribute("x2")
    slide(page, move_both=13)
    assert score() == before
    assert page.locator(".de-hand").first.get_attribute("x2") != hand
    choose(page, "10,000", "as trained", "half-split")
    slide(page, query_at_m=256, key_at_n=8)
    assert score() == pytest.approx(explorer.score(explorer.clocks[0], 248), abs=0.0051)
    slide(page, pair_shown=3)
    turned = [float(number) for number in re.findall(r"turns by (\d+\.\d+)", said(page))]
    assert turned == pytest.approx([248 * explorer.clocks[0].frequencies[3] % (2 * np.pi)], abs=0.0051)


def test_dot_products_of_positions_are_those_of_the_matrices(open_page: Open) -> None:
    drawn = torch.randn(20, 16, generator=torch.Generator().manual_seed(0))
    matrices = {"Sinusoids": sinusoidal_positions(20, 16), "Drawn": drawn}
    page = open_page(position_explorer(matrices, start=(3, 8), caption="c"))
    for name, matrix in matrices.items():
        choose(page, name)
        apart = (matrix[5:] * matrix[:-5]).sum(-1)
        found = re.findall(r"-?\d+\.\d\d", said(page).replace("\u2212", "-"))
        spread = [] if name == "Sinusoids" else [apart.min(), apart.max()]
        assert found == [f"{value:.2f}" for value in (apart[3], *spread)]


def heard(way: str, n: int, place: int, layers: int) -> int:
    """How many places of a line one of them has heard of, by products of the matrices of all layers."""
    known = np.eye(n, dtype=int)
    for layer in range(layers):
        known = np.minimum(known @ reach(way, n, layer).astype(int), 1)
    return int(known[place].sum())


@pytest.mark.parametrize("way", WAYS)
def test_reach_is_that_of_python_for_every_size(open_page: Open, way: str) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    page = open_page(reach_explorer(noise, caption="c", alt="Noise."))
    for side, row, column, layers in ((16, 3, 9, 2), (32, 0, 5, 3), (8, 17, 30, 5)):
        choose(page, way, str(side))
        slide(page, row=row + 1, column=column + 1, layers=layers)
        n = SHOWN // side
        reached = heard(way, n, row, layers) * heard(way, n, column, layers)
        tokens, found, looks, cost, met = page.locator(".re-figures dd").all_text_contents()
        assert [tokens, found, looks] == [f"{n * n:,}", f"{reached:,}", f"{pairs(way, n):,}"], side
        assert float(cost.split()[0]) == pytest.approx(4 * WIDTH * pairs(way, n) / 1e9, rel=0.01)
        assert met == str(layers_until_all_met(way, n) or "never")


def drawn_chains(count: int) -> list[tuple[list[float], list[tuple[str, dict[str, float]]]]]:
    """Logits and chains of two to four samplers with drawn settings."""
    rng = random.Random(0)
    chains = []
    for _ in range(count):
        chain = []
        for name in rng.sample(list(SAMPLERS), rng.randint(1, 4)):
            settings = {
                setting: 1 if setting == "probability" else least + (most - least) * round(rng.uniform(0.05, 0.95), 3)
                for setting, (least, most, _, _) in SAMPLERS[name][1].items()
            }
            chain.append((name, settings | ({"k": rng.randint(2, 9)} if name == "top_k" else {})))
        chains.append(([round(rng.gauss(0, 2), 4) for _ in range(12)], chain))
    return chains


def test_samplers_are_those_of_the_course(open_page: Open) -> None:
    page = open_page(sampler_explorer({"six": (list("ABCDEF"), torch.arange(6.0))}, caption="c"))
    chains = drawn_chains(40)
    found = page.evaluate(
        """chains => chains.map(([logits, chain]) => customElements.get('sampler-explorer').apply(logits, chain)
            .map((logit) => logit === -Infinity ? -1e30 : logit))""",
        [[logits, [list(step) for step in chain]] for logits, chain in chains],
    )
    assert {name for _, chain in chains for name, _ in chain} == set(SAMPLERS)
    for (logits, chain), result in zip(chains, found, strict=True):
        ours = sampler_chain(torch.tensor([logits], dtype=torch.float64), torch.zeros(1, 1, dtype=torch.long), chain)
        assert result == pytest.approx(ours[0].clamp(min=-1e30).tolist(), abs=1e-6), chain


def test_a_text_of_ones_own_is_merged_as_python_merges_it(open_page: Open) -> None:
    page = open_page(merge_explorer(["low", " low"], [("l", "o")], caption="c"))
    page.get_by_role("textbox").fill(OWN)
    pieces = pre_tokenize(OWN)
    expected = json.loads(merge_explorer(pieces, train_bpe(Counter(pieces), 10_000)[1], caption="c").to_json())
    shown = page.locator("merge-explorer").evaluate("e => e.data")
    names = ("vocabulary", "words", "joined", "merges", "steps")
    assert [shown[name] for name in names] == [expected[name] for name in names]
    page.get_by_role("slider").fill(str(len(expected["merges"])))
    cut = page.locator(".me-piece").all_text_contents()
    assert cut == [piece.replace(" ", "␣").replace("\n", "⏎") for piece in pieces]


def test_spans_are_corrupted_as_the_reference_corrupts_them(open_page: Open) -> None:
    explorer = span_explorer(WORDS, caption="c", masks=3)
    page = open_page(explorer)
    texts = [*WORDS, *SENTINELS]

    def corrupted(mask: list[bool]) -> None:
        parts = corrupt_spans(torch.arange(len(WORDS)), torch.tensor(mask), range(len(WORDS), len(texts)))
        for kind, part in zip(("source", "target"), parts, strict=True):
            shown = page.locator(f".sc-{kind} .sc-chip").all_text_contents()
            assert shown == [texts[token] for token in part.tolist()]

    for number, mask in enumerate(explorer.drawn, start=1):
        choose(page, str(number))
        corrupted(list(mask))
    mask = list(explorer.drawn[-1])
    for place in (0, 3, 6, 1):
        page.locator(".sc-word").nth(place).press("Space") if place == 1 else page.locator(".sc-word").nth(
            place
        ).click()
        mask[place] = not mask[place]
        corrupted(mask)
        assert page.locator(".sc-word").nth(place).get_attribute("aria-pressed") == str(mask[place]).lower()


def test_total_of_a_block_is_that_of_the_real_layer(open_page: Open) -> None:
    page = open_page(block_explorer(layer="decoder", D=12, H=3, F=20, caption="c"))
    total = sum(parameter.numel() for parameter in DecoderLayer(12, 3, 20).parameters())
    assert f" {total:,}." in said(page)


def test_counters_of_a_cache_follow_the_newest_token(open_page: Open) -> None:
    page = open_page(cache_explorer(["one", "two", "three", "four", "five"], d_model=8, n_layers=2, caption="c"))
    steps = [CacheStep.of(length, 8, 2) for length in range(1, 6)]
    plain, cached = sum(step.recomputed for step in steps), sum(step.cached for step in steps)
    page.get_by_role("button", name="Next").click()  # from the fourth token to the last one
    counts = page.locator(".ce-counts dd")
    assert counts.all_text_contents()[:2] == [f"{steps[4].recomputed:,}", f"{plain:,}"]
    assert counts.nth(3).text_content() == f"{plain / cached:.1f}"
    choose(page, "With a cache")
    assert counts.all_text_contents()[:3] == [f"{steps[4].cached:,}", f"{cached:,}", f"{steps[4].kept} bytes"]
    for word in ("four", "three", "two", "one"):
        page.get_by_role("button", name="Back").click()
        assert f"“{word}”" in said(page)
