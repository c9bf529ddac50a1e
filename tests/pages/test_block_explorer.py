"""The Transformer layer and the position encodings in a reader's hands: fields, keyboard, light and dark, and without JavaScript."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tfcourse.explorers.blocks import BlockExplorer, PositionExplorer, block_explorer, position_explorer
from tfcourse.layers import DecoderLayer
from tfcourse.positions import sinusoidal_positions

pytestmark = pytest.mark.browser

STATIC = Path(__file__).parents[2] / "book" / "_static"
THEMES = ("light", "dark")
Open = Callable[..., Any]


def block(**options: Any) -> BlockExplorer:
    return block_explorer(**{"caption": "What shape has each tensor?", **options})


def positions(n: int = 20, D: int = 16, **options: Any) -> PositionExplorer:
    drawn = torch.randn(n, D, generator=torch.Generator().manual_seed(0))
    encodings = {"Sinusoids": sinusoidal_positions(n, D), "Drawn": drawn}
    return position_explorer(encodings, **{"caption": "Does only the distance count?", "start": (3, 8), **options})


def theme_styles() -> list[Path]:
    spec = importlib.util.find_spec("pydata_sphinx_theme")
    if spec is None or spec.origin is None:
        return []
    return [Path(spec.origin).parent / "theme/pydata_sphinx_theme/static/styles/pydata-sphinx-theme.css"]


@pytest.fixture
def open_page(page: Any, tmp_path: Path) -> Open:
    """Open a page from the disk that shows explorers, as a page of the site would."""

    def open_it(*explorers: Any, theme: str = "light", on: Any = page, width: int = 1000) -> Any:
        styles = [*theme_styles(), STATIC / "custom.css", STATIC / "transformer-explorer.css"]
        links = "".join(f'<link rel="stylesheet" href="{style.as_uri()}">' for style in styles if style.exists())
        script = (STATIC / "transformer-explorer.js").as_uri()
        cells = "".join(
            f'<div class="cell_output"><div class="output text_html">{explorer._repr_html_()}</div></div>'
            for explorer in explorers
        )
        (tmp_path / "page.html").write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Layers</title>'
            f'{links}<script src="{script}"></script></head><body style="display: block"><main class="bd-content" '
            f'style="display: block; max-width: 46rem; margin: auto"><h1>Layers</h1>{cells}</main></body></html>',
            encoding="utf-8",
        )
        on.set_viewport_size({"width": width, "height": 900})
        on.goto((tmp_path / "page.html").as_uri())
        return on

    return open_it


def said(page: Any) -> str:
    return page.locator(".te-live").first.text_content()


def parts(page: Any) -> list[str]:
    return page.locator(".te-part").all_text_contents()


def test_figure_comes_before_the_tables_which_are_folded_away(open_page: Open) -> None:
    page = open_page(block())
    assert page.locator("transformer-explorer > figure.te").is_visible()
    assert page.locator("details.te-all > summary").text_content() == "Everything as tables"
    assert not page.locator(".te-plain table").first.is_visible()
    page.locator("details.te-all > summary").click()
    assert page.locator(".te-plain table").first.is_visible()
    assert page.get_by_text("What shape has each tensor?").count() == 1


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
    assert page.locator(".te-bypass").count() == 3


def test_every_arrow_tells_its_shape_and_follows_the_sizes(open_page: Open) -> None:
    page = open_page(block(B=2, S=7, D=12, H=3, F=20))
    arrows = page.locator(".te-arrow")
    assert arrows.all_text_contents() == ["(B, S, D)(2, 7, 12)"] * 7
    page.get_by_role("spinbutton", name="B, batch").fill("32")
    page.get_by_role("spinbutton", name="S, source length, the encoder's").fill("1200")
    assert arrows.all_text_contents() == ["(B, S, D)(32, 1,200, 12)"] * 7
    row = page.locator(".te-details tr", has_text="scores")
    assert row.locator("td").all_text_contents() == ["(B, H, S, S)", "(32, 3, 1,200, 1,200)"]


def test_total_is_that_of_the_real_layer(open_page: Open) -> None:
    page = open_page(block(layer="decoder", D=12, H=3, F=20))
    total = sum(parameter.numel() for parameter in DecoderLayer(12, 3, 20).parameters())
    assert f"of the layer’s {total:,}." in said(page)


def test_width_that_heads_do_not_divide_is_refused_and_the_last_layer_stays(open_page: Open) -> None:
    page = open_page(block(D=12, H=3, F=20))
    page.get_by_role("spinbutton", name="H, heads").fill("5")
    assert page.get_by_role("alert").text_content() == "A width of 12 cannot be divided into 5 heads."
    assert page.locator(".te-arrow").first.text_content() == "(B, S, D)(2, 7, 12)"
    assert page.locator("[aria-invalid=true]").count() == 2
    page.get_by_role("spinbutton", name="H, heads").fill("")
    assert page.get_by_role("alert").text_content().startswith("H is a whole number from 1 to")
    page.get_by_role("spinbutton", name="H, heads").fill("6")
    assert page.get_by_role("alert").text_content() == ""
    assert page.locator("[aria-invalid=true]").count() == 0
    assert page.locator(".te-details tr", has_text="scores").locator("td").last.text_content() == "(2, 6, 7, 7)"


def test_parts_are_one_tab_stop_and_arrows_move_between_them(open_page: Open) -> None:
    page = open_page(block())
    page.get_by_role("radio", name="Self-attention, part 1 of 6").focus()
    heard = []
    for key in ("ArrowDown", "ArrowDown", "ArrowUp", "End", "ArrowDown", "Home", "ArrowUp"):
        page.keyboard.press(key)
        heard.append(page.evaluate("document.activeElement.getAttribute('aria-label')").split(",")[0])
        assert page.locator(".te-heading").text_content() == heard[-1]
    assert heard == ["Add", "Layer norm", "Add", "Layer norm", "Layer norm", "Self-attention", "Self-attention"]
    assert page.locator(".te-part[tabindex='0']").count() == 1


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


def test_explorers_on_one_page_do_not_disturb_each_other(open_page: Open) -> None:
    page = open_page(block(), positions(), block())
    page.locator("transformer-explorer").nth(2).get_by_role("radio", name="decoder").check()
    counts = [explorer.locator(".te-part").count() for explorer in page.locator("transformer-explorer").all()]
    assert counts == [6, 0, 9]


def test_texts_are_text_whatever_they_contain(open_page: Open) -> None:
    nasty = "</script><script>window.hacked = 1</script><b>bold</b>"
    page = open_page(position_explorer({nasty: torch.eye(3)}, caption=nasty))
    assert page.evaluate("window.hacked") is None
    assert page.locator("transformer-explorer b").count() == 0
    assert page.locator(".te-caption").text_content() == nasty


def test_tables_stay_if_the_data_cannot_be_read(open_page: Open) -> None:
    page = open_page()
    broken = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1{broken\2", block()._repr_html_())
    page.evaluate("html => document.querySelector('main').insertAdjacentHTML('beforeend', html)", broken)
    assert page.locator("table").first.is_visible()
    assert page.locator(".te").count() == 0


def test_without_javascript_the_tables_are_there_to_read(open_page: Open, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = open_page(block(), positions(), on=context.new_page())
    assert [table.is_visible() for table in page.locator("table").all()] == [True] + [False] * 3 + [True] + [False] * 3
    assert page.get_by_role("rowheader", name="Feed-forward").is_visible()
    assert page.get_by_text("Does only the distance count?").is_visible()
    context.close()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("unfolded", [False, True], ids=["figure", "tables"])
def test_axe_finds_nothing_to_complain_about(open_page: Open, axe: Any, theme: str, unfolded: bool) -> None:
    page = open_page(block(layer="decoder"), positions(), theme=theme)
    if unfolded:
        for summary in page.locator("details.te-all > summary").all():
            summary.click()
    page.locator("transformer-explorer").first.get_by_role("spinbutton", name="H, heads").fill(
        "7"
    )  # show the complaint as well
    page.wait_for_timeout(200)
    # Preloading would read style sheets with XMLHttpRequest, which a page from a disk may not do.
    violations = axe.run(page, options={"preload": False}).response["violations"]
    assert not [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in violations]


def test_dark_page_has_no_light_box_around_the_figure(open_page: Open) -> None:
    page = open_page(block(), theme="dark")
    box = page.locator(".text_html").evaluate("element => getComputedStyle(element).backgroundColor")
    assert box == "rgba(0, 0, 0, 0)"


def test_nothing_moves_for_readers_who_asked_for_that(open_page: Open, chromium: Any) -> None:
    durations = {}
    for preference in ("reduce", "no-preference"):
        context = chromium.new_context(reduced_motion=preference, offline=True)
        page = open_page(block(), on=context.new_page())
        durations[preference] = page.locator(".te-part").first.evaluate(
            "part => getComputedStyle(part).transitionDuration"
        )
        context.close()
    assert durations == {"reduce": "0s", "no-preference": "0.12s"}


@pytest.mark.parametrize("width", [320, 420, 800])
def test_figures_fit_their_page_without_scrolling_sideways(open_page: Open, width: int) -> None:
    page = open_page(block(layer="decoder"), positions(), width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_focus_can_be_seen(open_page: Open) -> None:
    page = open_page(block())
    for selector in (".te-part", ".te-size input"):
        page.locator(f"{selector}:not([tabindex='-1'])").first.focus()
        page.keyboard.press("Shift")  # the keyboard is in use
        page.keyboard.press("Tab")
        page.keyboard.press("Shift+Tab")
        target = page.locator(f"{selector}:focus-visible").first
        assert target.evaluate("element => parseFloat(getComputedStyle(element).outlineWidth)") >= 2
