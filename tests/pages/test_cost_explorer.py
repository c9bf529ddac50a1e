"""What the cache calculator does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tfcourse.explorers.costs import BATCHES, LENGTHS, WIDTHS, Card, CostExplorer, Reading, cost_explorer

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
MODELS = {"8B": (128_256, 4096, 32, 8, 14_336, 32), "70B": (128_256, 8192, 64, 8, 28_672, 80)}
CARDS = (Card("A100", 312e12, 2.039e12, 80 * 10**9), Card("H100", 989.4e12, 3.35e12, 80 * 10**9))


def calculator() -> CostExplorer:
    return cost_explorer(MODELS, CARDS, caption="c")


def digits(number: float) -> str:
    if number >= 100:
        return f"{int(number + 0.5):,}"
    return f"{float(f'{number:.3g}'):g}"


def shown(page: Any) -> dict[str, str]:
    names, values = (
        page.locator(".ce-figures dt").all_text_contents(),
        page.locator(".ce-figures dd").all_text_contents(),
    )
    return dict(zip(names, values, strict=True))


def expected(seen: Reading, batch: int) -> dict[str, str]:
    return {
        "weights": f"{digits(seen.weight_bytes / 2**30)} GiB",
        "caches": f"{digits(seen.cache_bytes / 2**30)} GiB",
        "texts that fit": f"{seen.fits:,}",
        "a step": f"{digits(1000 * seen.seconds)} ms",
        "words a second": digits(batch / seen.seconds),
        "slower clock": seen.bound,
    }


def move(page: Any, name: str, place: int) -> None:
    slider = page.get_by_role("slider", name=name)
    slider.focus()
    page.keyboard.press("Home")
    for _ in range(place):
        page.keyboard.press("ArrowRight")


def test_figures_are_those_of_python_for_many_settings(open_page: Open) -> None:
    explorer = calculator()
    page = open_page(explorer)
    settings = [(0, 1, 3, 4, 0, 2, 1), (0, 0, 5, 8, 6, 1, 2), (1, 1, 0, 0, 10, 2, 8), (1, 0, 6, 6, 3, 4, 16)]
    for model, card, group, length, batch, width, cards in settings:
        page.get_by_role("radio", name=list(MODELS)[model], exact=True).click()
        page.get_by_role("radio", name=CARDS[card].name, exact=True).click()
        page.get_by_role("radio", name=str(width), exact=True).click()
        for name, place in (
            ("heads of keys", group),
            ("context", length),
            ("texts at a time", batch),
            ("cards", cards - 1),
        ):
            move(page, name, place)
        seen = explorer.reading(
            model,
            card,
            groups=explorer.models[model].groups[group],
            length=LENGTHS[length],
            batch=BATCHES[batch],
            width=width,
            cards=cards,
        )
        assert width in WIDTHS
        assert shown(page) == expected(seen, BATCHES[batch])
        for name, intensity in zip(("weights", "caches", "prompt"), seen.intensities, strict=True):
            assert page.locator(f".ce-roofline .ce-key.ce-{name}").text_content() == f"{name} {digits(intensity)}"


def test_it_begins_with_a_word_of_the_first_model_and_says_so(open_page: Open) -> None:
    page = open_page(calculator())
    said = str(page.locator(".explorer-live").first.text_content())
    assert said.startswith("8B with 8 heads of keys, 1 text of 8,192 tokens, 2 bytes a number, 1 H100: weights 15 GiB")
    assert said.endswith("A step takes 4.8 ms, 208 words a second; the slower clock is bandwidth.")


def test_what_does_not_fit_is_said_and_hatched(open_page: Open) -> None:
    page = open_page(calculator())
    assert "both fit" in str(page.locator(".ce-memory").text_content())
    page.get_by_role("radio", name="70B", exact=True).click()
    assert "does not fit" in str(page.locator(".ce-memory").text_content())
    assert page.locator(".ce-bar.ce-over").count() == 1
    move(page, "cards", 3)
    assert page.locator(".ce-bar.ce-over").count() == 0


def test_another_model_has_its_own_heads(open_page: Open) -> None:
    page = open_page(calculator())
    slider = page.get_by_role("slider", name="heads of keys")
    assert (slider.get_attribute("max"), slider.get_attribute("aria-valuetext")) == ("5", "8")
    page.get_by_role("radio", name="70B", exact=True).click()
    slider = page.get_by_role("slider", name="heads of keys")
    assert (slider.get_attribute("max"), slider.get_attribute("aria-valuetext")) == ("6", "8")
