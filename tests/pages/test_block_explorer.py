"""What the block explorer does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tfcourse.layers import DecoderLayer
from tfcourse.lessons.explorers.blocks import BlockExplorer, block_explorer

pytestmark = pytest.mark.browser

Open = Callable[..., Any]


def block(**options: Any) -> BlockExplorer:
    return block_explorer(**{"caption": "What shape has each tensor?", **options})


def said(page: Any) -> str:
    return page.locator(".explorer-live").first.text_content()


def parts(page: Any) -> list[str]:
    return page.locator(".be-part").all_text_contents()


def test_reader_chooses_the_layer_and_the_place_of_the_norm(open_page: Open) -> None:
    page = open_page(block())
    assert parts(page) == ["Self-attention", "+", "Layer norm", "Feed-forward", "+", "Layer norm"]
    page.get_by_role("radio", name="decoder").check()
    page.get_by_role("radio", name="pre-norm").check()
    assert parts(page) == [
        *("Layer norm", "Causal self-attention", "+"),
        *("Layer norm", "Cross-attention", "+"),
        *("Layer norm", "Feed-forward", "+"),
    ]
    assert page.locator(".be-bypass").count() == 3


def test_every_arrow_tells_its_shape_and_follows_the_sizes(open_page: Open) -> None:
    page = open_page(block(B=2, S=7, D=12, H=3, F=20))
    arrows = page.locator(".be-arrow")
    assert arrows.all_text_contents() == ["(B, S, D)(2, 7, 12)"] * 7
    page.get_by_role("spinbutton", name="B, batch").fill("32")
    page.get_by_role("spinbutton", name="S, source length, the encoder's").fill("1200")
    assert arrows.all_text_contents() == ["(B, S, D)(32, 1,200, 12)"] * 7
    row = page.locator(".be-details tr", has_text="scores")
    assert row.locator("td").all_text_contents() == ["(B, H, S, S)", "(32, 3, 1,200, 1,200)"]


def test_total_is_that_of_the_real_layer(open_page: Open) -> None:
    page = open_page(block(layer="decoder", D=12, H=3, F=20))
    total = sum(parameter.numel() for parameter in DecoderLayer(12, 3, 20).parameters())
    assert f"of the layer’s {total:,}." in said(page)


def test_width_that_heads_do_not_divide_is_refused_and_the_last_layer_stays(open_page: Open) -> None:
    page = open_page(block(D=12, H=3, F=20))
    page.get_by_role("spinbutton", name="H, heads").fill("5")
    assert page.get_by_role("alert").text_content() == "A width of 12 cannot be divided into 5 heads."
    assert page.locator(".be-arrow").first.text_content() == "(B, S, D)(2, 7, 12)"
    assert page.locator("[aria-invalid=true]").count() == 2
    page.get_by_role("spinbutton", name="H, heads").fill("")
    assert page.get_by_role("alert").text_content().startswith("H is a whole number from 1 to")
    page.get_by_role("spinbutton", name="H, heads").fill("6")
    assert page.get_by_role("alert").text_content() == ""
    assert page.locator("[aria-invalid=true]").count() == 0
    assert page.locator(".be-details tr", has_text="scores").locator("td").last.text_content() == "(2, 6, 7, 7)"


def test_parts_are_one_tab_stop_and_arrows_move_between_them(open_page: Open) -> None:
    page = open_page(block())
    page.get_by_role("radio", name="Self-attention, part 1 of 6").focus()
    heard = []
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "End", "ArrowDown", "Home", "ArrowUp"):
        page.keyboard.press(key)
        heard.append(page.evaluate("document.activeElement.getAttribute('aria-label')").split(",")[0])
        assert page.locator(".explorer-heading").text_content() == heard[-1]
    assert heard == ["Add", "Layer norm", "Add", "Layer norm", "Layer norm", "Self-attention", "Self-attention"]
    assert page.locator(".be-part[tabindex='0']").count() == 1


def test_nothing_moves_for_readers_who_asked_for_that(open_page: Open, chromium: Any) -> None:
    durations = {}
    for preference in ("reduce", "no-preference"):
        context = chromium.new_context(reduced_motion=preference, offline=True)
        page = open_page(block(), on=context.new_page())
        durations[preference] = page.locator(".be-part").first.evaluate(
            "part => getComputedStyle(part).transitionDuration"
        )
        context.close()
    assert durations == {"reduce": "0s", "no-preference": "0.12s"}


def test_complaint_about_a_size_passes_axe_in_both_themes(open_page: Open, axe: Any) -> None:
    for theme in ("light", "dark"):
        page = open_page(block(layer="decoder"), theme=theme)
        page.get_by_role("spinbutton", name="H, heads").fill("7")
        assert page.get_by_role("alert").text_content() != ""
        assert axe.run(page, options={"preload": False}).response["violations"] == []


def test_letter_of_a_size_is_explained_by_pointing_and_with_the_keyboard(open_page: Open) -> None:
    page = open_page(block())
    page.locator(".be-size", has_text="F").hover()
    assert page.get_by_role("tooltip").text_content() == "feed-forward width"
    page.get_by_role("spinbutton", name="D, model width").focus()
    assert page.get_by_role("tooltip").text_content() == "model width"
    page.keyboard.press("Tab")
    page.keyboard.press("Escape")
    assert page.get_by_role("tooltip").count() == 0
