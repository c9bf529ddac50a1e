"""What the gap explorer does of its own in a reader's hands; what all explorers do is in `test_explorers.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tfcourse.lessons.explorers.gaps import GapExplorer, gap_explorer

pytestmark = pytest.mark.browser

Open = Callable[..., Any]
PAIR = [
    [],
    [[("six", 0.3), ("two", 0.25)]],
    [[("hundred", 0.999)]],
    [[("one", 0.5), ("two", 0.004)], [("ten", 0.4), ("hundred", 0.1)]],
]


def two() -> GapExplorer:
    other = [[], [[("ten", 0.7), ("zero", 0.3)]]]
    return gap_explorer([["two", "hundred"], ["zero"]], [PAIR, other], caption="c")


def texts(page: Any, selector: str) -> list[str]:
    return page.locator(selector).all_text_contents()


def test_words_are_hidden_and_taken_back_by_mouse_and_keyboard(open_page: Open) -> None:
    page = open_page(two())
    assert texts(page, ".ge-word") == ["two", "[MASK]"]
    page.locator(".ge-word").first.click()
    assert texts(page, ".ge-word") == ["[MASK]", "[MASK]"]
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert texts(page, ".ge-word") == ["[MASK]", "hundred"]
    assert page.locator(".ge-word").nth(1).evaluate("e => e === document.activeElement")
    assert page.get_by_role("button", name="hundred, shown").get_attribute("aria-pressed") == "false"


def test_every_gap_has_its_guesses_with_the_hidden_word_framed(open_page: Open) -> None:
    page = open_page(two())
    page.locator(".ge-word").first.click()
    assert texts(page, ".ge-gap .explorer-legend") == ["Gap at word 1", "Gap at word 2"]
    assert texts(page, ".ge-name") == ["one", "two", "ten", "hundred"]
    assert texts(page, ".ge-true") == ["two", "hundred"]
    assert texts(page, ".ge-share") == ["50 %", "< 1 %", "40 %", "10 %"]


def test_sentence_says_how_probable_the_hidden_words_are(open_page: Open) -> None:
    page = open_page(two())
    live = page.locator(".explorer-live")
    assert live.text_content() == "Sentence 1, best guesses. Word 2: “hundred”, 100 %."
    page.locator(".ge-word").nth(1).click()
    assert live.text_content() == "Sentence 1: nothing is hidden."
    page.get_by_role("radio", name="2").click()
    assert live.text_content() == "Sentence 2, best guesses. Word 1: “ten”, 70 % (hidden: “zero”, 30 %)."


def test_gaps_of_a_sentence_are_still_there_when_the_reader_comes_back(open_page: Open) -> None:
    page = open_page(two())
    page.locator(".ge-word").first.click()
    page.get_by_role("radio", name="2").click()
    assert texts(page, ".ge-word") == ["[MASK]"]
    page.get_by_role("radio", name="1").click()
    assert texts(page, ".ge-word") == ["[MASK]", "[MASK]"]


def test_pictures_frame_the_rows_of_the_gaps_and_a_decoder_sees_no_later_word(open_page: Open) -> None:
    page = open_page(two())
    fills = page.locator(".ge-masks svg").evaluate_all(
        "all => all.map((one) => [...one.querySelectorAll('.ge-cell')].map((cell) => cell.style.fill))"
    )
    encoder, decoder = fills
    assert encoder[1] == encoder[3] == decoder[3]
    assert decoder[1] != encoder[1], "word 1 does not see word 2"
    assert page.locator(".ge-masks svg").first.locator(".ge-row").count() == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_hidden_words_can_be_read_in_both_themes(
    open_page: Open, contrast: Callable[[str, str], float], theme: str
) -> None:
    open_page(two(), theme=theme)
    assert contrast(".ge-word[aria-pressed=true]", "color") >= 4.5
