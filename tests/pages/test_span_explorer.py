"""What the span corruptor does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tfcourse.lessons.explorers.spans import SENTINELS, SpanExplorer, span_explorer
from tfcourse.t5 import corrupt_spans

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
WORDS = ("the", "train", "to", "Lyon", "leaves", "at", "six")


def sentence() -> SpanExplorer:
    return span_explorer(WORDS, caption="c", masks=3)


def shown(page: Any, part: str) -> list[str]:
    return list(page.locator(f".sc-{part} .sc-chip").all_text_contents())


def by_the_reference(mask: tuple[bool, ...]) -> list[list[str]]:
    """Source and target of the reference, in words."""
    texts = [*WORDS, *SENTINELS]
    marks = range(len(WORDS), len(texts))
    parts = corrupt_spans(torch.arange(len(WORDS)), torch.tensor(mask), marks)
    return [[texts[token] for token in part.tolist()] for part in parts]


def test_drawn_masks_give_what_the_reference_gives(open_page: Open) -> None:
    explorer = sentence()
    page = open_page(explorer)
    for number, mask in enumerate(explorer.drawn, start=1):
        page.get_by_role("radio", name=f"{number}", exact=True).click()
        assert [shown(page, "source"), shown(page, "target")] == by_the_reference(mask)


def test_words_are_hidden_and_taken_back_by_click_and_by_key(open_page: Open) -> None:
    explorer = sentence()
    page = open_page(explorer)
    mask = list(explorer.drawn[0])
    for place in (0, 3, 6):
        page.locator(".sc-word").nth(place).click()
        mask[place] = not mask[place]
        assert [shown(page, "source"), shown(page, "target")] == by_the_reference(tuple(mask))
    word = page.locator(".sc-word").nth(1)
    word.press("Space")
    mask[1] = not mask[1]
    assert word.get_attribute("aria-pressed") == str(mask[1]).lower()
    assert [shown(page, "source"), shown(page, "target")] == by_the_reference(tuple(mask))


def test_lengths_are_counted(open_page: Open) -> None:
    page = open_page(sentence())
    for place in range(len(WORDS)):
        word = page.locator(".sc-word").nth(place)
        if word.get_attribute("aria-pressed") == "true":
            word.click()
    assert (
        page.locator(".explorer-live").text_content() == "0 of 7 words hidden, in 0 spans; source 7, target 1 tokens."
    )
    page.locator(".sc-word").nth(2).click()
    assert page.locator(".explorer-live").text_content() == "1 of 7 words hidden, in 1 span; source 7, target 3 tokens."
