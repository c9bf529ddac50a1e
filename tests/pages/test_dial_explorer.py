"""What the rotary dial does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tfcourse.lessons.explorers.dials import DialExplorer, dial_explorer

pytestmark = pytest.mark.browser

Open = Callable[..., Any]


def dial() -> DialExplorer:
    q, k = torch.randn(2, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return dial_explorer(q, k, caption="c")


def said(page: Any) -> str:
    return str(page.locator(".explorer-live").first.text_content())


def score(page: Any) -> float:
    match = re.search(r"the score (\u2212?\d+\.\d\d)\.", said(page))
    assert match is not None
    return float(match[1].replace("\u2212", "-"))


def test_scores_are_those_of_python_for_every_clock_and_pairing(open_page: Open) -> None:
    explorer = dial()
    page = open_page(explorer)
    for number, theta in enumerate(("10,000", "500,000")):
        page.get_by_role("radio", name=theta, exact=True).click()
        for clock in explorer.clocks[4 * number : 4 * number + 4]:
            page.get_by_role("radio", name=clock.way, exact=True).click()
            for name in ("half-split", "interleaved"):
                page.get_by_role("radio", name=name, exact=True).click()
                expected = explorer.score(clock, 12, interleaved=name == "interleaved")
                assert score(page) == pytest.approx(expected, abs=0.0051), (theta, clock.way, name)


def test_moving_both_changes_positions_and_not_the_score(open_page: Open) -> None:
    page = open_page(dial())
    before, hands = score(page), page.locator(".de-hand").first.get_attribute("x2")
    page.get_by_role("slider", name="move both").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    assert said(page).startswith("Query at 25, key at 13, so m \u2212 n = 12.")
    assert score(page) == before
    assert page.locator(".de-hand").first.get_attribute("x2") != hands
    page.keyboard.press("End")
    assert said(page).startswith("Query at 256, key at 244,")


def test_sliders_move_one_and_choose_a_pair_with_the_keyboard(open_page: Open) -> None:
    explorer = dial()
    page = open_page(explorer)
    page.get_by_role("slider", name="query at m").focus()
    page.keyboard.press("End")
    assert "so m \u2212 n = 248. Pair 2 turns by" in said(page)
    assert said(page).endswith("Training has never shown this distance.")
    assert score(page) == pytest.approx(explorer.score(explorer.clocks[0], 248), abs=0.0051)
    page.get_by_role("slider", name="pair shown").focus()
    page.keyboard.press("End")
    assert "Pair 3 turns by 0.25 radians" in said(page)


def test_interpolated_positions_are_not_grey(open_page: Open) -> None:
    page = open_page(dial())
    widths = lambda: [float(one.get_attribute("width")) for one in page.locator(".de-unseen").all()]  # noqa: E731
    assert min(widths()) > 30
    page.get_by_role("radio", name="positions \u00d7 0.25", exact=True).click()
    assert max(widths()) == 0
