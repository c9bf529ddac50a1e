"""The alignment explorer in a reader's hands: choosing pairs and aligners, keyboard, light and dark, and without JavaScript.

What a pair's own figure does is the head explorer's, and is tested there; here is what the alignment explorer puts around it.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tfcourse.explorers.alignments import AlignedPair, AlignmentExplorer, alignment_explorer

pytestmark = pytest.mark.browser

STATIC = Path(__file__).parents[2] / "book" / "_static"
THEMES = ("light", "dark")
NASTY = "</script><script>window.hacked = 1</script>"
FIRST = AlignedPair(
    ["forty-", "##five"],
    ["fünf", "##und", "##vierzig"],
    {
        "IBM model 1": torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]),
        "attention": torch.tensor([[0.05, 0.95], [0.7, 0.3], [0.9, 0.1]]),
    },
)
SECOND = AlignedPair(
    ["two", "hundred", "and", "three", "<eos>"],
    ["zwei", "##hundert", "##drei", "<eos>"],
    {"IBM model 1": torch.eye(5)[[0, 2, 3, 4]], "attention": torch.eye(5)[[0, 1, 3, 4]]},
)
TITLES = ["forty- ##five → fünf ##und ##vierzig", "two hundred and three <eos> → zwei ##hundert ##drei <eos>"]
Open = Callable[..., Any]


def on_numbers(*pairs: AlignedPair) -> AlignmentExplorer:
    return alignment_explorer(pairs or (FIRST, SECOND), caption="Which word comes from which?")


def theme_styles() -> list[Path]:
    spec = importlib.util.find_spec("pydata_sphinx_theme")
    if spec is None or spec.origin is None:
        return []
    return [Path(spec.origin).parent / "theme/pydata_sphinx_theme/static/styles/pydata-sphinx-theme.css"]


@pytest.fixture
def open_page(page: Any, tmp_path: Path) -> Open:
    """Open a page from the disk that shows explorers, with the files that a page of the site loads for them."""

    def open_it(*explorers: AlignmentExplorer, theme: str = "light", on: Any = page, width: int = 1000) -> Any:
        own = [STATIC / f"{name}.css" for name in ("alignment-explorer", "head-explorer")]
        styles = [*theme_styles(), STATIC / "custom.css", *own]
        links = "".join(f'<link rel="stylesheet" href="{style.as_uri()}">' for style in styles if style.exists())
        scripts = "".join(
            f'<script src="{(STATIC / name).as_uri()}"></script>'
            for name in ("alignment-explorer.js", "head-explorer.js")
        )
        cells = "".join(
            f'<div class="cell_output"><div class="output text_html">{explorer._repr_html_()}</div></div>'
            for explorer in explorers
        )
        (tmp_path / "page.html").write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Words</title>'
            f'{links}{scripts}</head><body style="display: block"><main class="bd-content" '
            f'style="display: block; max-width: 46rem; margin: auto"><h1>Words</h1>{cells}</main></body></html>',
            encoding="utf-8",
        )
        on.set_viewport_size({"width": width, "height": 900})
        on.goto((tmp_path / "page.html").as_uri())
        return on

    return open_it


def sentence_below(page: Any, pair: int = 0) -> str:
    """What a pair's figure says, without the marks that isolate words of another direction."""
    return re.sub("[\u2066-\u2069]", "", page.locator("head-explorer").nth(pair).locator(".he-live").text_content())


def visible(page: Any) -> list[bool]:
    return [section.is_visible() for section in page.locator(".ae-pair").all()]


def test_one_pair_is_shown_at_a_time_and_the_choice_names_them_all(open_page: Open) -> None:
    page = open_page(on_numbers())
    assert visible(page) == [True, False]
    choice = page.get_by_label("Pair of sentences")
    assert choice.locator("option").all_text_contents() == TITLES
    choice.select_option(label=TITLES[1])
    assert visible(page) == [False, True]
    assert page.get_by_role("radio", name="zwei, word 1").is_visible()


def test_chosen_aligner_is_kept_from_pair_to_pair_and_the_word_is_each_pairs_own(open_page: Open) -> None:
    page = open_page(on_numbers())
    first = page.locator("head-explorer").first
    first.get_by_role("radio", name="attention").click()
    first.get_by_role("radio", name="##vierzig, word 3").click()
    assert sentence_below(page) == "attention: “##vierzig” looks at “forty-” 0.90 and “##five” 0.10."
    page.mouse.move(2, 2)  # where it previews no word of the pair that appears
    page.get_by_label("Pair of sentences").select_option("1")
    assert sentence_below(page, 1) == "attention: “zwei” looks at “two” 1.00."
    page.get_by_label("Pair of sentences").select_option("0")
    assert sentence_below(page).startswith("attention: “##vierzig”")


def test_status_says_how_many_links_cross(open_page: Open) -> None:
    page = open_page(on_numbers())
    status = page.locator(".ae-status")
    assert status.get_attribute("role") == "status"
    assert status.text_content() == "Pairs of links that cross – IBM model 1: 2; attention: 2."
    page.get_by_label("Pair of sentences").select_option("1")
    assert status.text_content() == "Pairs of links that cross – IBM model 1: none; attention: none."


def test_keyboard_reaches_pair_aligner_and_word_and_the_arrows_choose(open_page: Open) -> None:
    page = open_page(on_numbers())
    stops = []
    for _ in range(3):
        page.keyboard.press("Tab")
        stops.append(
            page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName")
        )
    assert stops == ["SELECT", "IBM model 1", "fünf, word 1"]
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert sentence_below(page) == "attention: “##und” looks at “forty-” 0.70 and “##five” 0.30."
    page.get_by_label("Pair of sentences").focus()
    page.keyboard.press("ArrowDown")
    assert visible(page) == [False, True]


def test_words_are_text_whatever_they_contain(open_page: Open) -> None:
    page = open_page(on_numbers(AlignedPair([NASTY, "b"], [NASTY, "<b>"], {"<i>": torch.eye(2)})))
    assert page.evaluate("window.hacked") is None
    assert page.locator("alignment-explorer b, alignment-explorer i").count() == 0
    assert page.locator("option").text_content() == f"{NASTY} b → {NASTY} <b>"


def test_two_explorers_on_a_page_do_not_disturb_each_other(open_page: Open) -> None:
    page = open_page(on_numbers(), on_numbers())
    page.get_by_label("Pair of sentences").nth(1).select_option("1")
    assert visible(page) == [True, False, False, True]


def test_element_that_is_moved_has_one_choice(open_page: Open) -> None:
    page = open_page()
    page.evaluate(
        "html => document.querySelector('main').insertAdjacentHTML('beforeend', html)", on_numbers()._repr_html_()
    )
    page.evaluate(
        "const e = document.querySelector('alignment-explorer'); e.remove(); document.querySelector('main').append(e)"
    )
    assert page.locator(".ae-choice").count() == 1
    assert visible(page) == [True, False]


def test_without_javascript_every_pair_is_there_to_read(open_page: Open, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False, offline=True)
    page = open_page(on_numbers(), on=context.new_page())
    assert visible(page) == [True, True]
    assert page.locator("table").count() == 4
    assert page.get_by_role("rowheader", name="##vierzig").first.is_visible()
    assert page.get_by_text("Pairs of links that cross – IBM model 1: 2; attention: 2.").is_visible()
    assert page.get_by_text("Which word comes from which?").is_visible()
    context.close()


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("unfolded", [False, True], ids=["figure", "tables"])
def test_axe_finds_nothing_to_complain_about(open_page: Open, axe: Any, theme: str, unfolded: bool) -> None:
    page = open_page(on_numbers(), theme=theme)
    if unfolded:
        page.locator("details.he-all > summary").first.click()
    page.wait_for_timeout(250)  # the shade of a word changes slowly
    # Preloading would read style sheets with XMLHttpRequest, which a page from a disk may not do.
    violations = axe.run(page, options={"preload": False}).response["violations"]
    found = [(violation["id"], [node["html"] for node in violation["nodes"]]) for violation in violations]
    assert not found


def test_axe_finds_nothing_without_javascript_either(open_page: Open, axe: Any, chromium: Any) -> None:
    context = chromium.new_context(offline=True)
    page = context.new_page()
    page.route("**/*.js", lambda route: route.abort())  # the element's script is missing; axe itself needs one
    open_page(on_numbers(), on=page)
    assert page.locator(".ae-choice").count() == 0
    found = [one["id"] for one in axe.run(page, options={"preload": False}).response["violations"]]
    context.close()
    assert not found


def test_dark_page_has_no_light_box_around_the_figure(open_page: Open) -> None:
    page = open_page(on_numbers(), theme="dark")
    box = page.locator(".text_html").evaluate("element => getComputedStyle(element).backgroundColor")
    assert box == "rgba(0, 0, 0, 0)"


@pytest.mark.parametrize("width", [320, 420, 800])
def test_figure_fits_its_page_without_scrolling_sideways(open_page: Open, width: int) -> None:
    words = [f"{word}-hundredthousand" for word in "abcdefgh"]
    page = open_page(
        on_numbers(AlignedPair(words, words, {name: torch.eye(8) for name in ("IBM model 1", "b", "c")})), width=width
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    edge = "selector => document.querySelector(selector).getBoundingClientRect().right"
    assert page.evaluate(edge, "select") <= page.evaluate(edge, ".ae")


def test_focus_on_the_choice_can_be_seen(open_page: Open) -> None:
    page = open_page(on_numbers())
    page.keyboard.press("Tab")
    outline = page.locator("select:focus-visible").evaluate(
        "element => parseFloat(getComputedStyle(element).outlineWidth)"
    )
    assert outline >= 2
