"""What the alignment explorer does of its own in a reader's hands: what stands around the figures of the head explorer.

What all explorers do is in `test_explorers.py`, and what a pair's own figure does in `test_head_explorer.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tfcourse.lessons.explorers.alignments import AlignedPair, AlignmentExplorer, alignment_explorer

pytestmark = pytest.mark.browser

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


def sentence_below(page: Any, pair: int = 0) -> str:
    """What a pair's figure says, without the marks that isolate words of another direction."""
    return re.sub(
        "[\u2066-\u2069]", "", page.locator("head-explorer").nth(pair).locator(".explorer-live").text_content()
    )


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
    status = page.locator(".ae-choice .explorer-live")
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


def test_element_that_is_moved_has_one_choice(open_page: Open) -> None:
    page = open_page(on_numbers())
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


@pytest.mark.parametrize("width", [320, 420, 800])
def test_figure_fits_its_page_without_scrolling_sideways(open_page: Open, width: int) -> None:
    words = [f"{word}-hundredthousand" for word in "abcdefgh"]
    page = open_page(
        on_numbers(AlignedPair(words, words, {name: torch.eye(8) for name in ("IBM model 1", "b", "c")})), width=width
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    edge = "selector => document.querySelector(selector).getBoundingClientRect().right"
    assert page.evaluate(edge, "select") <= page.evaluate(edge, ".explorer-figure")
