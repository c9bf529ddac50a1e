"""What the position explorer does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tfcourse.lessons.explorers.positions import PositionExplorer, position_explorer
from tfcourse.positions import sinusoidal_positions

pytestmark = pytest.mark.browser

Open = Callable[..., Any]


def positions(n: int = 20, D: int = 16, **options: Any) -> PositionExplorer:
    drawn = torch.randn(n, D, generator=torch.Generator().manual_seed(0))
    encodings = {"Sinusoids": sinusoidal_positions(n, D), "Drawn": drawn}
    return position_explorer(encodings, **{"caption": "Does only the distance count?", "start": (3, 8), **options})


def said(page: Any) -> str:
    return page.locator(".explorer-live").first.text_content()


def test_dot_products_of_sinusoids_depend_on_the_distance_alone_and_others_do_not(open_page: Open) -> None:
    page = open_page(positions())
    matrix = sinusoidal_positions(20, 16)
    value = (matrix[3] @ matrix[8]).item()
    assert said(page) == (
        f"Sinusoids: positions 3 and 8 have the dot product {value:.2f}. So have all 15 pairs 5 apart: only the distance counts."
    )
    page.get_by_role("radio", name="Drawn").check()
    assert re.search(r"Among the 15 pairs 5 apart it goes from −\d+\.\d\d to \d+\.\d\d\.", said(page))


def test_sliders_choose_positions_with_the_keyboard(open_page: Open) -> None:
    page = open_page(positions())
    page.get_by_role("slider", name="position n").focus()
    page.keyboard.press("ArrowRight")
    assert "positions 3 and 9" in said(page)
    page.keyboard.press("End")
    assert "positions 3 and 19" in said(page)
    page.get_by_role("slider", name="position m").focus()
    page.keyboard.press("Home")
    assert said(page).endswith("No other two are as far apart.")
