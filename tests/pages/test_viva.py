"""The page for conversations in an assistant's hands: by keyboard alone, in light and in dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.course.folder import Course
from autograder.grading.record.viva_journal import VivaAnswer, VivaJournal
from autograder.quizzes.viva.live_view.server import VivaApplication
from autograder.quizzes.viva.pages import write_pages

from ..autograder.marking.conftest import CHAPTER, course, graded  # noqa: F401
from ..autograder.viva.conftest import interviews
from .conftest import listening, objections
from .test_report import THEMES

pytestmark = pytest.mark.browser


@pytest.fixture
def address(course: Course) -> Iterator[str]:  # noqa: F811
    """The address of a running server."""
    with listening(
        lambda: [VivaApplication(course, CHAPTER, interviews(), "an assistant").listen_locally()]
    ) as addresses:
        yield addresses[0]


def test_a_conversation_is_recorded_by_keyboard_alone(online, address: str, course: Course) -> None:  # noqa: F811
    page = online(address)
    page.get_by_role("link", name="Ada").focus()
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="Ada").wait_for()
    for right in range(2):
        key = page.get_by_role("button", name=f"({right}, {(2, 0)[right]})")
        for _ in range(30):
            if key.evaluate("element => element === document.activeElement"):
                break
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_text("Right.").nth(right).wait_for()
    page.get_by_label("Note, for you and the other assistants").focus()
    page.keyboard.type("explains it\nwell")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="Bob").wait_for()
    conversation = VivaJournal(course, CHAPTER).conversation("ada")
    assert conversation.answers == {0: VivaAnswer("causal_mask", 2, True), 1: VivaAnswer("causal_mask", 0, True)}
    assert conversation.note == "explains it\nwell"


def test_the_second_of_two_pages_shows_what_the_first_has_recorded(online, address: str) -> None:
    first, second = online(address), online(address)
    for page in (first, second):
        page.get_by_role("link", name="Bob").click()
    first.get_by_role("button", name="(0, 0)").click()
    first.get_by_text("The answer differs from the key.").wait_for()
    second.get_by_label("Note, for you and the other assistants").fill("typed here")
    second.get_by_role("button", name="(1, 0)").click()
    second.get_by_role("alert").wait_for()
    assert second.get_by_text("1 of 3 answered").is_visible()
    assert second.get_by_label("Note, for you and the other assistants").input_value() == "typed here"


@pytest.mark.parametrize("theme", THEMES)
def test_page_for_conversations_is_accessible(online, axe, address: str, theme: str) -> None:
    page = online(address, color_scheme=theme, bypass_csp=True)
    page.get_by_role("link", name="Ada").click()
    page.get_by_role("button", name="(0, 2)").click()
    page.get_by_text("Right.").first.wait_for()
    page.get_by_role("button", name="(1, 3)").click()
    page.get_by_text("differs from the key").wait_for()
    student = page.url
    page.get_by_label("Note").fill("a_rather_long_word_" * 12)
    page.get_by_role("button", name="Save the note").click()
    page.get_by_role("link", name="Students").click()
    page.get_by_text("2 of 4 answered").wait_for()
    for place in (page.url, student):
        page.goto(place)
        accessible(page, axe)


@pytest.mark.parametrize("theme", THEMES)
def test_sheets_to_print_are_accessible(page, axe, tmp_path: Path, theme: str) -> None:
    page.emulate_media(color_scheme=theme)
    for path in write_pages(interviews(), tmp_path, title=CHAPTER):
        page.goto(path.as_uri())
        accessible(page, axe)


def accessible(page, axe) -> None:
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert objections(axe, page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
