"""What “who may look at whom” does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tfcourse.lessons.explorers.reaches import (
    SHOWN,
    WAYS,
    WIDTH,
    ReachExplorer,
    layers_until_all_met,
    pairs,
    reach,
    reach_explorer,
)

pytestmark = pytest.mark.browser

Open = Callable[..., Any]


def looks() -> ReachExplorer:
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    return reach_explorer(noise, caption="c", alt="Noise.")


def said(page: Any) -> str:
    return str(page.locator(".explorer-live").first.text_content())


def shown(page: Any) -> list[str]:
    return list(page.locator(".re-figures dd").all_text_contents())


def heard(way: str, n: int, place: int, layers: int) -> int:
    """How many places of a line one of them has heard of, by products of the matrices of all layers."""
    known = np.eye(n, dtype=int)
    for layer in range(layers):
        known = np.minimum(known @ reach(way, n, layer).astype(int), 1)
    return int(known[place].sum())


def move(page: Any, name: str, place: int) -> None:
    page.get_by_role("slider", name=name).focus()
    page.keyboard.press("Home")
    for _ in range(place):
        page.keyboard.press("ArrowRight")


def test_figures_are_those_of_python_for_every_way_and_size(open_page: Open) -> None:
    page = open_page(looks())
    for way in WAYS:
        page.get_by_role("radio", name=way, exact=True).click()
        for side, row, column, layers in ((16, 3, 9, 2), (32, 0, 5, 3), (8, 17, 30, 5)):
            page.get_by_role("radio", name=str(side), exact=True).click()
            for name, place in (("row", row), ("column", column), ("layers", layers - 1)):
                move(page, name, place)
            n = SHOWN // side
            met = layers_until_all_met(way, n)
            reached = heard(way, n, row, layers) * heard(way, n, column, layers)
            found = shown(page)
            assert found[:3] == [f"{n * n:,}", f"{reached:,}", f"{pairs(way, n):,}"], (way, side)
            assert float(found[3].split()[0]) == pytest.approx(4 * WIDTH * pairs(way, n) / 1e9, rel=0.01)
            assert found[4] == ("never" if met is None else str(met))


def test_a_click_on_the_picture_chooses_a_place(open_page: Open) -> None:
    page = open_page(looks())
    box = page.locator(".re-picture svg").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.99, box["y"] + box["height"] * 0.01)
    assert "the patch in row 1, column 16 has heard of" in said(page)


def test_a_place_stays_where_it_is_when_patches_change(open_page: Open) -> None:
    page = open_page(looks())
    move(page, "row", 15)
    page.get_by_role("radio", name="64", exact=True).click()
    assert "Patches of 64 pixels, shifted windows: after one layer the patch in row 4," in said(page)
    assert page.get_by_role("slider", name="row").get_attribute("max") == "4"


def test_windows_without_a_shift_never_meet_and_it_is_said(open_page: Open) -> None:
    page = open_page(looks())
    page.get_by_role("radio", name="windows", exact=True).click()
    assert said(page).endswith("Not everything ever meets everything.")
