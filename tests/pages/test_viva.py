"""The page for conversations in an assistant's hands: by keyboard alone, in light and in dark, wide and narrow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from autograder.course.folder import Course
from autograder.record.viva_journal import VivaAnswer, VivaJournal
from autograder.viva.live_view.server import VivaApplication
from autograder.viva.pages import write_pages

from ..autograder.marking.conftest import CHAPTER, course, graded  # noqa: F401
from ..autograder.viva.conftest import interviews
from .test_report import THEMES, WCAG

pytestmark = pytest.mark.browser


@pytest.fixture
def address(course: Course) -> Iterator[str]:  # noqa: F811
    """The address of a running server."""
    started: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []
    ready, end = threading.Event(), asyncio.Event()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        server, at = VivaApplication(course, CHAPTER, interviews(), "an assistant").listen_locally()
        started.append(at)
        ready.set()
        await end.wait()
        server.stop()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(30)
    yield started[0]
    loops[0].call_soon_threadsafe(end.set)
    thread.join()


@pytest.fixture
def online(chromium) -> Iterator[Callable[..., object]]:
    """Return a function that opens the page in a browser that may reach this machine; a refusal by the CSP fails the test."""
    contexts, faults = [], []

    def open_page(address: str, **options: object) -> object:
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [fault for fault in faults if "409" not in fault] == []


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
        page.get_by_text("Right. What the run showed:").nth(right).wait_for()
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
    second.get_by_role("alert").get_by_text("Another person has recorded something").wait_for()
    assert second.get_by_text("1 of 3 answered").is_visible()
    assert second.get_by_label("Note, for you and the other assistants").input_value() == "typed here"


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("shown", ["list", "student"])
def test_page_for_conversations_is_accessible(online, axe, address: str, theme: str, width: int, shown: str) -> None:
    options = {"color_scheme": theme, "viewport": {"width": width, "height": 900}, "bypass_csp": True}
    page = online(address, **options)
    page.get_by_role("link", name="Ada").click()
    page.get_by_role("button", name="(0, 2)").click()
    page.get_by_text("Right. What the run showed:").wait_for()
    page.get_by_role("button", name="(1, 3)").click()
    page.get_by_text("The answer differs from the key.").wait_for()
    if shown == "list":
        page.get_by_label("Note, for you and the other assistants").fill("a_rather_long_word_" * 12)
        page.get_by_role("button", name="Save the note").click()
        page.get_by_role("link", name="Students").click()
        page.get_by_text("2 of 4 answered, 1 right").wait_for()
    violations = axe.run(page, options=WCAG).response["violations"]
    assert not [f"{item['id']}: {node['html'][:120]}" for item in violations for node in item["nodes"]]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["questions", "keys"])
def test_sheets_to_print_are_accessible(page, axe, tmp_path: Path, name: str, theme: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=theme)
    paths = dict(zip(("questions", "keys"), write_pages(interviews(), tmp_path, title=CHAPTER), strict=True))
    page.goto(paths[name].as_uri())
    violations = axe.run(page, options=WCAG).response["violations"]
    assert not [f"{item['id']}: {node['html'][:120]}" for item in violations for node in item["nodes"]]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
