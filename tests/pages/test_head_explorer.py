"""What the head explorer does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tfcourse.lessons.explorers.heads import HeadExplorer, head_explorer

pytestmark = pytest.mark.browser

SENTENCE = ["the", "aunt", "near", "the", "boys", "says", "she", "sees", "them"]
NASTY = [
    "</script><script>window.hacked = 1</script>",
    "<b>bold</b>",
    '"quoted" & more',
    "\u05de\u05d9\u05dc\u05d4",
    " ",
]
THEMES = ("light", "dark")
Open = Callable[..., Any]


def causal_weights(layers: int = 2, heads: int = 3, seed: int = 0) -> Tensor:
    scores = 2.5 * torch.randn(layers, heads, 9, 9, generator=torch.Generator().manual_seed(seed))
    return scores.masked_fill(~torch.ones(9, 9).tril().bool(), -torch.inf).softmax(-1)


def on_sentence(weights: Tensor | None = None, **options: Any) -> HeadExplorer:
    weights = causal_weights() if weights is None else weights
    return head_explorer(SENTENCE, weights, caption="Who looks where in our sentence?", **options)


def sentence_below(page: Any) -> str:
    """What the live region says, without the marks that isolate words of another direction."""
    return re.sub("[\u2066-\u2069]", "", page.locator(".explorer-live").first.text_content())


def strongest(row: Tensor) -> str:
    return SENTENCE[int(row.argmax())]


def focused(page: Any) -> str:
    return page.evaluate("document.activeElement.getAttribute('aria-label')")


def test_every_weight_of_the_chosen_word_is_shown_as_number_and_bar(open_page: Open) -> None:
    weights = causal_weights()
    page = open_page(on_sentence(weights, start=(1, 2, 6)))
    row = weights[1, 2, 6].tolist()
    expected = ["0" if weight == 0 else "<\u20090.01" if weight < 0.005 else f"{weight:.2f}" for weight in row]
    assert page.locator(".he-number").all_text_contents() == expected
    scales = [fill.evaluate("element => element.style.transform") for fill in page.locator(".he-fill").all()]
    drawn = torch.tensor([float(re.sub(r"scaleX\((.*)\)", r"\1", scale)) for scale in scales])
    torch.testing.assert_close(drawn, weights[1, 2, 6], atol=1e-4, rtol=0)


def test_click_chooses_a_head_and_a_word(open_page: Open) -> None:
    weights = causal_weights()
    page = open_page(on_sentence(weights))
    page.get_by_role("radio", name="Layer 2, head 3").click()
    page.get_by_role("radio", name="she, word 7").click()
    assert page.locator(".explorer-heading").text_content() == "Layer 2, head 3"
    assert sentence_below(page).startswith("Layer 2, head 3: “she” looks at “")
    assert strongest(weights[1, 2, 6]) in sentence_below(page)
    assert page.locator(".he-thumb[aria-checked=true]").count() == 1
    assert page.locator(".he-word[aria-checked=true]").count() == 1


def test_mouse_over_a_word_previews_it_and_leaving_goes_back(open_page: Open) -> None:
    page = open_page(on_sentence(start=(0, 0, 8)))
    chosen = sentence_below(page)
    page.get_by_role("radio", name="aunt, word 2").hover()
    assert "“aunt” looks at" in sentence_below(page)
    assert page.get_by_role("radio", name="them, word 9").get_attribute("aria-checked") == "true"
    page.mouse.move(2, 2)
    assert sentence_below(page) == chosen


def test_heads_and_words_are_one_tab_stop_each(open_page: Open) -> None:
    page = open_page(on_sentence(start=(1, 1, 4)))
    stops = []
    for _ in range(3):
        page.keyboard.press("Tab")
        stops.append(
            page.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.tagName")
        )
    assert stops == ["Layer 2, head 2", "boys, word 5", "SUMMARY"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("ArrowRight", "Layer 1, head 2"),
        ("ArrowRight ArrowRight ArrowRight", "Layer 2, head 1"),
        ("ArrowLeft", "Layer 2, head 3"),
        ("ArrowDown", "Layer 2, head 1"),
        ("ArrowDown ArrowDown", "Layer 2, head 1"),
        ("ArrowRight ArrowDown ArrowUp", "Layer 1, head 2"),
        ("End", "Layer 2, head 3"),
        ("End Home", "Layer 1, head 1"),
    ],
)
def test_arrows_move_between_heads_and_layers_and_take_the_focus_along(
    open_page: Open, keys: str, expected: str
) -> None:
    page = open_page(on_sentence())
    page.get_by_role("radio", name="Layer 1, head 1").focus()
    for key in keys.split():
        page.keyboard.press(key)
    assert focused(page) == expected
    assert page.locator(".explorer-heading").text_content() == expected


@pytest.mark.parametrize(
    ("keys", "word", "heading"),
    [
        ("ArrowUp", "sees, word 8", "Layer 1, head 1"),
        ("ArrowDown", "them, word 9", "Layer 1, head 1"),
        ("Home", "the, word 1", "Layer 1, head 1"),
        ("Home ArrowUp", "the, word 1", "Layer 1, head 1"),
        ("Home End", "them, word 9", "Layer 1, head 1"),
        ("ArrowUp ArrowRight", "sees, word 8", "Layer 1, head 2"),
        ("ArrowLeft", "them, word 9", "Layer 2, head 3"),
    ],
)
def test_up_and_down_choose_the_word_and_left_and_right_its_head(
    open_page: Open, keys: str, word: str, heading: str
) -> None:
    page = open_page(on_sentence())
    page.get_by_role("radio", name="them, word 9").focus()
    for key in keys.split():
        page.keyboard.press(key)
    assert focused(page) == word
    assert page.locator(".explorer-heading").text_content() == heading
    assert sentence_below(page).startswith(f"{heading}: “{word.split(',')[0]}”")


def test_live_region_says_the_strongest_links_and_which_of_two_equal_words(open_page: Open) -> None:
    weights = torch.zeros(1, 1, 9, 9)
    weights[..., 0] = 1.0
    weights[0, 0, 4, :4] = torch.tensor([0.62, 0.04, 0.06, 0.28])
    page = open_page(on_sentence(weights, start=(0, 0, 4)))
    assert sentence_below(page) == (
        "Layer 1, head 1: “boys” looks at “the” (word 1) 0.62, “the” (word 4) 0.28 and “near” 0.06."
    )


def test_live_region_points_out_rows_that_are_empty_or_do_not_sum_to_one(open_page: Open) -> None:
    weights = torch.full((1, 1, 9, 9), 0.2)
    weights[0, 0, 1] = 0.0
    page = open_page(on_sentence(weights, start=(0, 0, 1)))
    assert sentence_below(page) == "Layer 1, head 1: “aunt” looks at nothing: all of its weights are zero."
    page.get_by_role("radio", name="near, word 3").click()
    assert sentence_below(page).endswith("Its weights sum to 1.80, not to one.")


def test_thin_spread_is_told_by_its_strongest_link(open_page: Open) -> None:
    tokens = [f"t{i}" for i in range(40)]
    page = open_page(head_explorer(tokens, torch.full((1, 1, 40, 40), 1 / 40), caption="Even"))
    assert sentence_below(page) == "Layer 1, head 1: “t39” looks at “t0” 0.03."


def test_cross_attention_shows_both_sequences(open_page: Open) -> None:
    weights = torch.randn(1, 2, 3, 5, generator=torch.Generator().manual_seed(1)).softmax(-1)
    explorer = head_explorer(
        ["she", "sees", "them", "all", "day"], weights, query_tokens=["elle", "les", "voit"], caption="c"
    )
    page = open_page(explorer)
    assert page.locator(".he-word .he-token").all_text_contents() == ["elle", "les", "voit"]
    assert page.locator(".he-key .he-token").all_text_contents() == ["she", "sees", "them", "all", "day"]


def test_tokens_are_text_whatever_they_contain(open_page: Open) -> None:
    weights = torch.randn(1, 1, 5, 5, generator=torch.Generator().manual_seed(1)).softmax(-1)
    page = open_page(head_explorer(NASTY, weights, caption="<i>not</i> italic"))
    assert page.evaluate("window.hacked") is None
    assert page.locator("head-explorer b, head-explorer i").count() == 0
    assert page.locator(".he-word .he-token").all_text_contents() == [*NASTY[:-1], "\u2423"]
    assert page.locator(".explorer-caption").text_content() == "<i>not</i> italic"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(
    ("selector", "property_", "least"),
    [
        (".he-fill", "background-color", 3),
        (".he-link", "stroke", 3),
        (".he-thumb .he-row", "stroke", 3),
        (".he-word[aria-checked=true] .he-token", "border-top-color", 3),
        (".he-number", "color", 4.5),
        (".he-place", "color", 4.5),
    ],
)
def test_what_carries_meaning_stands_out_in_both_themes(
    open_page: Open, contrast: Callable[[str, str], float], theme: str, selector: str, property_: str, least: float
) -> None:
    open_page(on_sentence(), theme=theme)
    assert contrast(selector, property_) >= least


def test_strength_can_be_seen_without_colour(open_page: Open) -> None:
    weights = torch.zeros(1, 1, 9, 9)
    weights[..., 0], weights[..., 1] = 0.8, 0.2
    page = open_page(on_sentence(weights))
    strong, weak = (float(link.get_attribute("stroke-width")) for link in page.locator(".he-link").all())
    assert strong > 2 * weak
    page.wait_for_timeout(250)
    first, second = (fill.bounding_box()["width"] for fill in page.locator(".he-fill").all()[:2])
    assert first == pytest.approx(4 * second, rel=0.05)


def test_nothing_moves_for_readers_who_asked_for_that(open_page: Open, chromium: Any) -> None:
    durations = {}
    for preference in ("reduce", "no-preference"):
        context = chromium.new_context(reduced_motion=preference, offline=True)
        page = open_page(on_sentence(), on=context.new_page())
        style = "element => getComputedStyle(element).transitionDuration"
        durations[preference] = {page.locator(name).first.evaluate(style) for name in (".he-fill", ".he-key .he-token")}
        context.close()
    assert durations == {"reduce": {"0s"}, "no-preference": {"0.16s"}}


def test_long_words_are_cut_and_can_be_read_in_full_by_pointing_or_with_the_keyboard(open_page: Open) -> None:
    long = "antidisestablishmentarianism-" * 3
    page = open_page(head_explorer([long, "a"], torch.full((1, 1, 2, 2), 0.5), caption="c"), width=420)
    tip = page.get_by_role("tooltip")
    page.locator(".he-key .he-token").last.hover()
    assert tip.count() == 0, "a short word needs no tip"
    page.locator(".he-key .he-token").first.hover()
    assert tip.text_content() == long
    page.locator(".he-heads").hover()
    assert tip.count() == 0
    page.get_by_role("radio", name="a, word 2").focus()
    page.keyboard.press("ArrowUp")
    assert tip.text_content() == long
    assert tip.bounding_box()["width"] <= page.locator(".explorer-figure").bounding_box()["width"]
    page.keyboard.press("Escape")
    assert tip.count() == 0
