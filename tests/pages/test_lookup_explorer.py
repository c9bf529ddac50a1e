"""What the lookup explorer does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tfcourse.lessons.explorers.lookups import LookupExplorer, lookup_explorer

pytestmark = pytest.mark.browser

Open = Callable[..., Any]


def forecast() -> LookupExplorer:
    scores, values = math.log(2) * torch.tensor([4.0, 2.0, 0.0]), torch.tensor([4.2, 2.1, 0.0])
    return lookup_explorer(["gale", "breeze", "calm"], scores, values, answer="Forecast", unit="m", caption="c")


def test_sentence_says_weights_and_answer_for_every_setting_of_the_dial(open_page: Open) -> None:
    page = open_page(forecast())
    live, dial = page.locator(".explorer-live"), page.get_by_role("slider", name="c")
    assert live.text_content() == "Weights: gale 0.76, breeze 0.19, calm 0.05. Forecast 3.60 m."
    dial.focus()
    page.keyboard.press("Home")
    assert live.text_content() == "Weights: gale 0.33, breeze 0.33, calm 0.33. Forecast 2.10 m."
    page.keyboard.press("ArrowRight")
    assert dial.get_attribute("aria-valuetext") == "0.05"
    page.keyboard.press("End")
    assert live.text_content() == "Weights: gale 1.00, breeze 0.00, calm 0.00. Forecast 4.19 m."


def test_bars_are_as_long_as_the_weights(open_page: Open) -> None:
    page = open_page(forecast())
    first, second, third = (bar.bounding_box()["width"] for bar in page.locator(".le-fill").all())
    assert first == pytest.approx(4 * second, rel=0.02)
    assert first == pytest.approx(16 * third, rel=0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_bars_stand_out_in_both_themes(open_page: Open, contrast: Callable[[str, str], float], theme: str) -> None:
    open_page(forecast(), theme=theme)
    assert contrast(".le-fill", "background-color") >= 3
    assert contrast(".le-number", "color") >= 4.5
