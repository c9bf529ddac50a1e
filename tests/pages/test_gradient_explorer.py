"""What the gradient explorer does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tfcourse.lessons.explorers.gradients import GradientExplorer, gradient_explorer

pytestmark = pytest.mark.browser

DIAL = (0.5, 1.0, 2.0)
CAPTION = "How much of the gradient comes back?"
THEMES = ("light", "dark")
Open = Callable[..., Any]


def power_of(factor: float, steps: int = 21) -> Tensor:
    """A gradient that every step back multiplies by a number, (steps,)."""
    return factor ** torch.arange(steps - 1, -1, -1, dtype=torch.float64)


def example(**options: Any) -> GradientExplorer:
    norms = {
        "plain RNN": torch.stack([power_of(scale) for scale in DIAL]),
        "LSTM": torch.stack([power_of(0.9)] * 3),
        "GRU": torch.stack([power_of(0.8)] * 3),
        "none": torch.zeros(3, 21),
    }
    return gradient_explorer(norms, DIAL, setting_name="scale of the weights", caption=CAPTION, **options)


def said(page: Any) -> str:
    return page.locator(".explorer-live").first.text_content()


def slide(page: Any, name: str) -> Any:
    return page.get_by_role("slider", name=name)


def test_sentence_says_the_norm_and_what_it_is_of_the_last_step(open_page: Open) -> None:
    page = open_page(example(start=(0, 0, 18)))
    assert said(page) == (
        "plain RNN, scale of the weights 0.5: at step 19 the gradient has the norm 0.25, "
        "0.25 times what it is at the last step, 2 steps before the loss."
    )


def test_tiny_and_huge_norms_are_said_as_powers_of_ten_and_the_last_step_as_the_loss(open_page: Open) -> None:
    page = open_page(example(start=(0, 0, 0)))
    assert "has the norm 9.5 \u00d7 10\u207b\u2077" in said(page)
    slide(page, "scale of the weights").fill("2")
    assert "has the norm 1.1 \u00d7 10\u2076" in said(page) or "has the norm 1.0 \u00d7 10\u2076" in said(page)
    slide(page, "Step").fill("20")
    assert said(page).endswith("has the norm 1; the loss is here.")


def test_gradient_that_is_nothing_is_said_without_dividing_by_it(open_page: Open) -> None:
    page = open_page(example(start=(3, 0, 4)))
    assert said(page).endswith("has the norm 0, 16 steps before the loss.")


def test_click_on_a_cell_and_in_the_chart_chooses_cell_and_step(open_page: Open) -> None:
    page = open_page(example())
    page.get_by_role("radio", name="LSTM").click()
    assert page.get_by_role("radio", name="LSTM").get_attribute("aria-checked") == "true"
    assert page.locator(".explorer-option[aria-checked=true]").count() == 1
    box = page.locator(".ge-chart").bounding_box()
    page.mouse.click(box["x"] + box["width"] - 16, box["y"] + 100)
    assert said(page).startswith("LSTM, scale of the weights 1: at step 21")


def test_line_of_the_chart_lies_where_the_norms_are(open_page: Open) -> None:
    page = open_page(example(start=(0, 0, 0)))
    d = page.locator(".ge-line-0.ge-chosen").last.get_attribute("d")
    points = torch.tensor([[float(n) for n in pair.split()] for pair in re.findall(r"[ML]([\d.]+ [\d.]+)", d)])
    assert len(points) == 21
    steps = points.diff(dim=0)
    assert (steps[:, 1] < 0).all(), "the norm grows towards the loss, so the line rises"
    torch.testing.assert_close(steps, steps.mean(dim=0).expand_as(steps), atol=0.15, rtol=0)  # straight


def test_three_tab_stops_and_arrows_move_the_cell_and_the_dials(open_page: Open) -> None:
    page = open_page(example(start=(1, 1, 5)))
    stops = []
    for _ in range(4):
        page.keyboard.press("Tab")
        stops.append(
            page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName")
        )
    assert stops == ["LSTM", "INPUT", "INPUT", "SUMMARY"]
    page.get_by_role("radio", name="LSTM").focus()
    for key, cell in (("ArrowRight", "GRU"), ("End", "none"), ("ArrowDown", "plain RNN"), ("ArrowLeft", "none")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.getAttribute('aria-label')") == cell
    slide(page, "Step").focus()
    page.keyboard.press("ArrowRight")
    assert slide(page, "Step").get_attribute("aria-valuetext") == "7 of 21"
    slide(page, "scale of the weights").focus()
    page.keyboard.press("ArrowLeft")
    assert slide(page, "scale of the weights").get_attribute("aria-valuetext") == "0.5"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("selector", "property_", "least"),
    [
        *((f".ge-chart .ge-line-{cell}", "stroke", 3) for cell in range(4)),
        (".ge-ring", "stroke", 3),
        (".ge-cursor", "stroke", 3),
        (".ge-tick", "fill", 4.5),
        (".explorer-value", "color", 4.5),
    ],
)
def test_what_carries_meaning_stands_out_in_both_themes(
    open_page: Open, contrast: Callable[[str, str], float], theme: str, selector: str, property_: str, least: float
) -> None:
    open_page(example(), theme=theme)
    assert contrast(selector, property_) >= least


def test_lines_differ_in_more_than_colour(open_page: Open) -> None:
    page = open_page(example())
    dashes = [
        page.locator(f".ge-chart .ge-line-{cell}").first.evaluate("e => getComputedStyle(e).strokeDasharray")
        for cell in range(4)
    ]
    assert len(set(dashes)) == 4
