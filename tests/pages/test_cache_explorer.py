"""What the cache explorer does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tfcourse.lessons.explorers.caches import CacheExplorer, CacheStep, cache_explorer

pytestmark = pytest.mark.browser

Open = Callable[..., Any]


def sentence() -> CacheExplorer:
    return cache_explorer(["one", "two", "three", "four", "five"], d_model=8, n_layers=2, caption="c")


def computed(page: Any) -> int:
    return int(page.locator(".ce-cell.ce-now").count())


def test_without_a_cache_all_scores_are_computed_again_and_with_one_a_row(open_page: Open) -> None:
    page = open_page(sentence())
    assert computed(page) == 10, "four tokens look at 1 + 2 + 3 + 4 keys"
    page.get_by_role("radio", name="With a cache", exact=True).click()
    assert computed(page) == 4
    assert page.locator(".ce-word.ce-now").all_text_contents() == ["four"]
    assert page.locator(".ce-word.ce-kept").all_text_contents() == ["one", "two", "three"]


def test_counters_and_the_sentence_follow_the_newest_token(open_page: Open) -> None:
    page = open_page(sentence())
    steps = [CacheStep.of(length, 8, 2) for length in range(1, 6)]
    forward, back = (page.get_by_role("button", name=name) for name in ("Next", "Back"))
    forward.click()  # from the fourth token to the last one
    counts = page.locator(".ce-counts dd")
    assert counts.nth(0).text_content() == f"{steps[4].recomputed:,}"
    assert counts.nth(1).text_content() == f"{sum(step.recomputed for step in steps):,}"
    assert counts.nth(2).text_content() == "nothing"
    page.get_by_role("radio", name="With a cache", exact=True).click()
    assert counts.nth(0).text_content() == f"{steps[4].cached:,}"
    assert counts.nth(2).text_content() == f"{steps[4].kept} bytes"
    live = page.locator(".explorer-live").text_content()
    assert live.startswith("After “five”: 1 token goes through the model,")
    for _ in steps[1:]:
        back.click()
    assert page.locator(".explorer-live").text_content().startswith("After “one”")


def test_the_ratio_of_both_ways_is_shown(open_page: Open) -> None:
    page = open_page(sentence())
    steps = [CacheStep.of(length, 8, 2) for length in range(1, 5)]
    ratio = sum(step.recomputed for step in steps) / sum(step.cached for step in steps)
    assert page.locator(".ce-counts dd").nth(3).text_content() == f"{ratio:.1f}"
