"""What the merge explorer does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tfcourse.lessons.explorers.merges import MergeExplorer, merge_explorer
from tfcourse.tokenization import pre_tokenize, train_bpe

pytestmark = pytest.mark.browser

Open = Callable[..., Any]


def lower() -> MergeExplorer:
    words = ["low", " low", " lower", " low"]
    return merge_explorer(words, [("l", "o"), ("lo", "w"), (" ", "low"), ("e", "r")], caption="c")


def texts(page: Any, selector: str) -> list[str]:
    return page.locator(selector).all_text_contents()


def test_text_is_cut_anew_at_every_step_of_the_slider(open_page: Open) -> None:
    page = open_page(lower())
    dial = page.get_by_role("slider", name="Merges done")
    assert texts(page, ".me-piece") == list("low␣low␣lower␣low")
    dial.focus()
    page.keyboard.press("ArrowRight")
    assert texts(page, ".me-piece") == ["lo", "w", "␣", "lo", "w", "␣", "lo", "w", "e", "r", "␣", "lo", "w"]
    page.keyboard.press("End")
    assert texts(page, ".me-piece") == ["low", "␣low", "␣low", "er", "␣low"]
    assert dial.get_attribute("aria-valuetext") == "4 of 4"
    page.keyboard.press("Home")
    assert texts(page, ".me-piece") == list("low␣low␣lower␣low")


def test_sentence_says_tokens_vocabulary_what_was_merged_and_what_comes_next(open_page: Open) -> None:
    page = open_page(lower())
    live = page.locator(".explorer-live")
    assert live.text_content() == "17 tokens, a vocabulary of 6. Next: “l” and “o”, 4 times."
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    assert live.text_content() == (
        "13 tokens, a vocabulary of 7. Merge 1 joined “l” and “o”, 4 times. Next: “lo” and “w”, 4 times."
    )
    page.keyboard.press("End")
    assert live.text_content() == "5 tokens, a vocabulary of 10. Merge 4 joined “e” and “r”, 1 time."


def test_pairs_with_their_counts_and_the_latest_symbols_follow(open_page: Open) -> None:
    page = open_page(lower())
    assert texts(page, ".me-pairs .me-names")[:3] == ["lo", "ow", "␣l"]
    assert texts(page, ".me-pairs .me-count")[:3] == ["4", "4", "3"]
    assert texts(page, ".me-latest") == ["single symbols only"]
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    assert texts(page, ".me-latest .me-count") == ["1", "2", "3", "4"]
    assert texts(page, ".me-latest .me-names")[2] == "␣low→␣low"


def test_pieces_of_the_latest_merge_are_framed_and_longer_ones_are_darker(open_page: Open) -> None:
    page = open_page(lower())
    page.get_by_role("slider").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert texts(page, ".me-new") == ["␣low"] * 3
    shares = page.locator(".me-piece").evaluate_all("all => all.map((e) => e.style.backgroundColor)")
    assert len(set(shares)) == 3, "low, ␣low and single letters have three shades"


OWN = "Aaaa banana, ananas! Don't: 1_000 żółć 東東東東.  In  the end\nthe end of the bend"


def test_a_text_of_ones_own_is_merged_as_python_merges_it(open_page: Open) -> None:
    page = open_page(lower())
    page.get_by_label("Or type a text of your own").fill(OWN)
    pieces = pre_tokenize(OWN)
    _, merges = train_bpe(Counter(pieces), 10_000)
    expected = json.loads(merge_explorer(pieces, merges, caption="c").to_json())
    shown = page.locator("merge-explorer").evaluate("e => e.data")
    assert {name: shown[name] for name in ("vocabulary", "words", "joined", "merges", "steps")} == {
        name: expected[name] for name in ("vocabulary", "words", "joined", "merges", "steps")
    }
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    assert texts(page, ".me-piece") == [piece.replace(" ", "␣").replace("\n", "⏎") for piece in pieces]


def test_without_a_text_of_ones_own_the_lessons_comes_back(open_page: Open) -> None:
    page = open_page(lower())
    field = page.get_by_label("Or type a text of your own")
    for text in ("low low", "x", ""):
        field.fill(text)
    assert texts(page, ".me-piece") == list("low␣low␣lower␣low")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pieces_can_be_read_in_both_themes(open_page: Open, contrast: Callable[[str, str], float], theme: str) -> None:
    page = open_page(
        merge_explorer(["aaaaaaaa"], [("a", "a"), ("aa", "aa"), ("aaaa", "aaaa")], caption="c"), theme=theme
    )
    page.get_by_role("slider").focus()
    page.keyboard.press("End")
    assert contrast(".me-piece", "color") >= 4.5
