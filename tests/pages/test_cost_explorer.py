"""What the cost calculator does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from tfcourse.lessons.explorers.costs import CARDS, GIB, CostExplorer, cost_explorer
from tfcourse.llama import decode_cost, inference_latency, kv_cache_bytes, largest_batch, llama_parameters

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


def llamas() -> CostExplorer:
    return cost_explorer(SIZES, caption="c")


def said(page: Any) -> str:
    return str(page.locator(".explorer-live").first.text_content())


def number(text: str) -> float:
    match = re.search(r"[\d.,]+", text)
    assert match is not None, text
    return float(match[0].replace(",", ""))


def shown(page: Any) -> dict[str, str]:
    names, values = (page.locator(f".co-counts {tag}").all_text_contents() for tag in ("dt", "dd"))
    return dict(zip(names, values, strict=True))


def slide(page: Any, name: str, value: int) -> None:
    page.get_by_role("slider", name=name).fill(str(value))


def set_up(page: Any, name: str, shared: int, length: int, batch: int, width: int, card: int, many: int) -> None:
    page.get_by_role("radio", name=name, exact=True).click()
    page.get_by_role("radio", name=str(width), exact=True).click()
    page.get_by_role("radio", name=CARDS[card].name, exact=True).click()
    slide(page, "key/value heads", shared.bit_length() - 1)
    slide(page, "context length", length.bit_length() - 1)
    slide(page, "texts in the batch", batch.bit_length() - 1)
    page.get_by_role("slider", name="GPUs", exact=True).fill(str(many))


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_numbers_are_those_of_the_chapters_functions(open_page: Open, setting: tuple[Any, ...]) -> None:
    name, shared, length, batch, width, which, many = setting
    page = open_page(llamas())
    set_up(page, *setting)
    vocabulary, d_model, heads, _, d_ff, layers = SIZES[name]
    counts = llama_parameters(vocabulary, d_model, heads, shared, d_ff, layers)
    head, card = d_model // heads, CARDS[which]
    weights = counts.attention + counts.feed_forward + counts.output
    cost = decode_cost(weights, layers, heads, shared, head, length, batch=batch, bytes_per_number=width)
    moved = cost.weight_bytes + cost.cache_bytes
    latency = inference_latency(cost.flops, moved, peak_flops=card.peak, bandwidth=card.bandwidth, n_devices=many)
    text = kv_cache_bytes(layers, shared, head, length, bytes_per_number=width)
    most = largest_batch(many * card.memory, sum(counts) * width, text)
    counted = shown(page)
    assert counted["texts that fit"] == f"{most:,}"
    assert number(counted["a token of each text"]) == pytest.approx(1e3 * latency.seconds, rel=0.005)
    assert number(counted["tokens per second"]) == pytest.approx(batch / latency.seconds, rel=0.005)
    assert number(counted["time of the FLOP"]) == pytest.approx(1e3 * cost.flops / card.peak / many, rel=0.005)
    assert counted["the longer one"] == {"compute": "FLOP", "bandwidth": "bytes"}[latency.bound]
    weighed = [number(part) for part in page.locator(".co-memory .co-legend span").all_text_contents()]
    assert weighed == pytest.approx(
        [sum(counts) * width / GIB, cost.cache_bytes / GIB, many * card.memory / GIB], rel=0.005
    )
    verdict = page.locator(".co-memory strong").text_content()
    assert verdict == ("fits" if batch <= most else "does not fit")


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_points_lie_where_flop_and_bytes_put_them(open_page: Open, setting: tuple[Any, ...]) -> None:
    name, shared, length, batch, width, _, _ = setting
    page = open_page(llamas())
    set_up(page, *setting)
    _, d_model, heads, _, _, layers = SIZES[name]
    model = next(model for model in llamas().models if model.name == name)
    cost = model.cost(shared, length, batch=batch, bytes_per_number=width)
    # A prompt asks for every place what a step asks for one, and reads the weights once.
    first, last = model.cost(shared, 1, batch=batch).flops, model.cost(shared, length, batch=batch).flops
    prompt = length * (first + last) / 2
    expected = [2 * batch / width, 2 * heads / shared / width, prompt / (cost.weight_bytes + cost.cache_bytes)]
    marks = page.locator(".co-chart > svg .co-point")
    intensities = [float(mark.get_attribute("data-intensity")) for mark in marks.all()]
    assert intensities == pytest.approx(expected, rel=1e-9)
    assert (d_model // heads, layers) == (model.d_head, model.layers)


def test_a_card_that_is_too_small_is_said(open_page: Open) -> None:
    page = open_page(llamas())
    assert "it fits; 59 such texts would. A token of each text takes 4.80 ms." in said(page)
    assert said(page).endswith("The bytes take longer.")
    page.get_by_role("radio", name="405B", exact=True).click()
    assert "it does not fit; not even one such text would." in said(page)
    assert page.locator(".co-much").text_content() == "does not fit"


def test_model_brings_its_own_heads_and_the_keyboard_chooses_others(open_page: Open) -> None:
    page = open_page(llamas())
    heads = page.get_by_role("slider", name="key/value heads")
    assert heads.get_attribute("aria-valuetext") == "8 of 32"
    heads.focus()
    page.keyboard.press("End")
    assert heads.get_attribute("aria-valuetext") == "32 of 32"
    page.get_by_role("radio", name="405B", exact=True).click()
    assert heads.get_attribute("aria-valuetext") == "8 of 128"
    heads.focus()
    page.keyboard.press("End")
    assert heads.get_attribute("aria-valuetext") == "128 of 128"
    page.get_by_role("radio", name="8B", exact=True).focus()
    page.keyboard.press("Home")
    assert heads.get_attribute("aria-valuetext") == "8 of 32"
