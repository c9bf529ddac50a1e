"""What the rotary dial does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tfcourse.explorers.dials import DialExplorer, dial_explorer

pytestmark = pytest.mark.browser

Open = Callable[..., Any]


def dial() -> DialExplorer:
    return dial_explorer(caption="c", d_head=8, trained=16)


def said(page: Any) -> str:
    return str(page.locator(".explorer-live").text_content())


def move(page: Any, name: str, place: int) -> None:
    page.get_by_label(name).fill(str(place))


def test_moving_both_places_alike_changes_nothing_that_is_said(open_page: Open) -> None:
    page = open_page(dial())
    move(page, "query at m", 8)
    move(page, "key at n", 3)
    before = said(page)
    move(page, "query at m", 28)
    move(page, "key at n", 23)
    assert said(page) == before


def test_scores_are_those_of_python_for_every_way(open_page: Open) -> None:
    explorer = dial()
    page = open_page(explorer)
    move(page, "query at m", 20)
    move(page, "key at n", 13)
    for number, (name, _) in enumerate(explorer.ways):
        page.get_by_role("radio", name=name, exact=True).click()
        score = f"{explorer.score(number, 7):.2f}".replace("-", "\u2212")
        assert f"all pairs together score {score}." in said(page)


def test_a_difference_that_training_never_showed_is_told(open_page: Open) -> None:
    page = open_page(dial())
    move(page, "key at n", 0)
    move(page, "query at m", 15)
    assert "No training text" not in said(page)
    page.get_by_label("query at m").press("ArrowRight")
    assert "Difference 16" in said(page)
    assert "No training text was as long as this difference." in said(page)
