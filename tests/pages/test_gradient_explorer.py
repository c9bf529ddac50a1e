"""The gradient explorer in a reader's hands: mouse, keyboard, screen reader, light and dark, and without JavaScript."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tfcourse.explorers.gradients import GradientExplorer, gradient_explorer

pytestmark = pytest.mark.browser

STATIC = Path(__file__).parents[2] / "book" / "_static"
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


def theme_styles() -> list[Path]:
    spec = importlib.util.find_spec("pydata_sphinx_theme")
    if spec is None or spec.origin is None:
        return []
    return [Path(spec.origin).parent / "theme/pydata_sphinx_theme/static/styles/pydata-sphinx-theme.css"]


@pytest.fixture
def open_page(page: Any, tmp_path: Path) -> Open:
    """Open a page from the disk that shows explorers, as a page of the site would."""

    def open_it(*explorers: GradientExplorer, theme: str = "light", on: Any = page, width: int = 1000) -> Any:
        styles = [*theme_styles(), STATIC / "custom.css", STATIC / "gradient-explorer.css"]
        links = "".join(f'<link rel="stylesheet" href="{style.as_uri()}">' for style in styles if style.exists())
        script = (STATIC / "gradient-explorer.js").as_uri()
        cells = "".join(
            f'<div class="cell_output"><div class="output text_html">{explorer._repr_html_()}</div></div>'
            for explorer in explorers
        )
        (tmp_path / "page.html").write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Gradients</title>'
            f'{links}<script src="{script}"></script></head><body style="display: block"><main class="bd-content" '
            f'style="display: block; max-width: 46rem; margin: auto"><h1>Gradients</h1>{cells}</main></body></html>',
            encoding="utf-8",
        )
        on.set_viewport_size({"width": width, "height": 900})
        on.goto((tmp_path / "page.html").as_uri())
        return on

    return open_it


def said(page: Any) -> str:
    return page.locator(".ge-live").first.text_content()


def slide(page: Any, name: str) -> Any:
    return page.get_by_role("slider", name=name)


def test_figure_comes_before_the_tables_which_are_folded_away(open_page: Open) -> None:
    page = open_page(example())
    assert page.locator("gradient-explorer > figure.ge").is_visible()
    assert page.get_by_text(CAPTION).count() == 1
    assert not page.locator("table").first.is_visible()
    page.locator("details.ge-all > summary").click()
    assert page.locator("table").first.is_visible()


def test_sentence_says_the_norm_and_what_it_is_of_the_last_step(open_page: Open) -> None:
    page = open_page(example(start=(0, 0, 18)))
    assert said(page) == (
        "plain RNN, scale of the weights 0.5: at step 19 the gradient has the norm 0.25, "
        "0.25 times what it is at the last step, 2 steps before the loss."
    )
    live = page.locator(".ge-live")
    assert (live.get_attribute("role"), live.get_attribute("aria-live")) == ("status", "polite")


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
    assert page.locator(".ge-cell[aria-checked=true]").count() == 1
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


def test_other_keys_are_left_alone(open_page: Open) -> None:
    page = open_page(example())
    page.get_by_role("radio", name="plain RNN").focus()
    before = said(page)
    for key in ("Control+ArrowDown", "Alt+ArrowRight", "x", "Meta+ArrowUp"):
        page.keyboard.press(key)
    assert said(page) == before


def test_names_are_text_whatever_they_contain(open_page: Open) -> None:
    nasty = "</script><b>bold</b>"
    explorer = gradient_explorer({nasty: torch.ones(3, 4)}, DIAL, setting_name=nasty, caption=nasty)
    page = open_page(explorer)
    assert page.locator("gradient-explorer b:not(.ge-value)").count() == 0
    assert page.locator(".ge-cell").text_content() == nasty


def test_explorers_on_one_page_do_not_disturb_each_other(open_page: Open) -> None:
    page = open_page(example(), example())
    page.locator("gradient-explorer").nth(1).get_by_role("radio", name="GRU").click()
    assert [text.split(",")[0] for text in page.locator(".ge-live").all_text_contents()] == ["plain RNN", "GRU"]


def test_tables_stay_if_the_data_cannot_be_read(open_page: Open, page: Any) -> None:
    open_page()
    broken = re.sub(r"(<script[^>]*>).*?(</script>)", r"\1{broken\2", example()._repr_html_())
    page.evaluate("html => document.querySelector('main').insertAdjacentHTML('beforeend', html)", broken)
    assert page.locator("table").first.is_visible()
    assert page.locator(".ge").count() == 0


def test_without_javascript_the_tables_are_there_to_read(open_page: Open, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = open_page(example(start=(1, 0, 0)), on=context.new_page())
    assert [table.is_visible() for table in page.locator("table").all()] == [False, True, False, False]
    assert page.get_by_role("rowheader", name="0.5").is_visible()
    assert page.get_by_text(CAPTION).is_visible()
    context.close()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("unfolded", [False, True], ids=["figure", "tables"])
def test_axe_finds_nothing_to_complain_about(open_page: Open, axe: Any, theme: str, unfolded: bool) -> None:
    page = open_page(example(), theme=theme)
    if unfolded:
        page.locator("details.ge-all > summary").click()
    page.wait_for_timeout(250)
    # Preloading would read style sheets with XMLHttpRequest, which a page from a disk may not do.
    violations = axe.run(page, options={"preload": False}).response["violations"]
    found = [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in violations]
    assert not found


CONTRAST = """([first, second]) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((byte) => {
      const part = byte / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [high, low] = [luminance(first), luminance(second)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}"""


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("selector", "property_", "least"),
    [
        *((f".ge-chart .ge-line-{cell}", "stroke", 3) for cell in range(4)),
        (".ge-ring", "stroke", 3),
        (".ge-cursor", "stroke", 3),
        (".ge-cell[aria-checked=true]", "border-top-color", 3),
        (".ge-tick", "fill", 4.5),
        (".ge-live", "color", 4.5),
        (".ge-value", "color", 4.5),
    ],
)
def test_what_carries_meaning_stands_out_in_both_themes(
    open_page: Open, theme: str, selector: str, property_: str, least: float
) -> None:
    page = open_page(example(), theme=theme)
    page.wait_for_timeout(200)
    colour, back = (
        page.locator(where).first.evaluate(f"element => getComputedStyle(element).getPropertyValue('{name}')")
        for where, name in ((selector, property_), (".ge", "background-color"))
    )
    assert page.evaluate(CONTRAST, [colour, back]) >= least


def test_lines_differ_in_more_than_colour(open_page: Open) -> None:
    page = open_page(example())
    dashes = [
        page.locator(f".ge-chart .ge-line-{cell}").first.evaluate("e => getComputedStyle(e).strokeDasharray")
        for cell in range(4)
    ]
    assert len(set(dashes)) == 4


def test_dark_page_has_no_light_box_around_the_figure(open_page: Open) -> None:
    page = open_page(example(), theme="dark")
    box = page.locator(".text_html").first.evaluate("element => getComputedStyle(element).backgroundColor")
    assert box == "rgba(0, 0, 0, 0)"


@pytest.mark.parametrize("width", [360, 700])
def test_figure_stays_inside_a_narrow_page(open_page: Open, width: int) -> None:
    page = open_page(example(), width=width)
    edges = "selector => document.querySelector(selector).getBoundingClientRect().right"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(edges, ".ge-chart") <= page.evaluate(edges, ".ge")


def test_nothing_moves_for_whoever_wants_no_motion(open_page: Open, chromium: Any) -> None:
    context = chromium.new_context(reduced_motion="reduce", offline=True)
    page = open_page(example(), on=context.new_page())
    moving = page.locator("gradient-explorer *").evaluate_all(
        "all => all.filter((e) => parseFloat(getComputedStyle(e).transitionDuration) > 0).map((e) => e.className)"
    )
    assert moving == []
    context.close()


def test_focus_can_be_seen(open_page: Open) -> None:
    page = open_page(example())
    for _ in range(3):
        page.keyboard.press("Tab")
        width = page.evaluate("parseFloat(getComputedStyle(document.activeElement).outlineWidth)")
        assert width >= 2
