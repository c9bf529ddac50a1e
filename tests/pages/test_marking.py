"""The marking page in a marker's hands: by keyboard alone, in light and in dark, wide and narrow."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from autograder.authoring.rubrics import Rubric
from autograder.course.folder import Course
from autograder.marking.questions import MarkState, read_questions
from autograder.marking.server import MarkingApplication

from ..autograder.marking.conftest import CHAPTER, QUESTION, course, graded  # noqa: F401
from .test_report import THEMES, WCAG

pytestmark = pytest.mark.browser
RUBRIC = Rubric(QUESTION, "The variance of a score is $D_h$.", "- 2 points: the variance\n- 1 point: the root")


@pytest.fixture
def address(course: Course) -> Iterator[str]:  # noqa: F811
    """The address of a running server."""
    started: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []
    ready, end = threading.Event(), asyncio.Event()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        server, at = MarkingApplication(course, CHAPTER, "a marker", {QUESTION: RUBRIC}).listen_locally()
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
    """Return a function that opens the question in a browser that may reach this machine; a refusal by the CSP fails the test."""
    contexts, faults = [], []

    def open_question(address: str, **options: object) -> object:
        context = chromium.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(address)
        page.get_by_role("link", name="9 · Why the root?").click()
        page.locator("article.current").wait_for()
        return page

    yield open_question
    for context in contexts:
        context.close()
    assert [fault for fault in faults if "409" not in fault] == []


def _states(course: Course) -> dict[str, MarkState]:  # noqa: F811
    return {answer.student: answer.state for answer in read_questions(course, CHAPTER)[0].answers}


def test_group_is_marked_by_keyboard_alone(online, address: str, course: Course) -> None:  # noqa: F811
    page = online(address)
    page.keyboard.press("1")
    page.keyboard.press("2")
    assert page.get_by_label("Points, of 4").input_value() == "3"
    page.keyboard.press("c")
    page.keyboard.type("just so")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Answer 1: 3 points given").wait_for()
    assert _states(course)["ada"] == _states(course)["cyd"] == MarkState(3.0, False, "just so")
    page.keyboard.press("k")
    page.keyboard.press("j")
    page.keyboard.press("p")
    page.keyboard.type("0.5")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Answer 2: 0.5 points given").wait_for()
    assert _states(course)["eve"].points == 0.5
    page.keyboard.press("u")
    page.get_by_text("Undone for 1.").wait_for()
    assert _states(course)["eve"] == MarkState(None, True, None)


def test_conflict_is_announced(online, address: str, course: Course) -> None:  # noqa: F811
    first, second = online(address), online(address)
    for page, points, shown in ((first, "1", "1 points given"), (second, "4", "changed since the page")):
        page.keyboard.press("p")
        page.keyboard.type(points)
        page.keyboard.press("Control+Enter")
        page.get_by_role("status").get_by_text(shown).wait_for()
    assert _states(course)["ada"].points == 1.0


def test_help_opens_and_closes_by_keyboard(online, address: str) -> None:
    page = online(address)
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog", name="Keys").is_visible()


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("theme", THEMES)
def test_marking_page_is_accessible(online, axe, address: str, theme: str, width: int) -> None:
    page = online(address, color_scheme=theme, viewport={"width": width, "height": 900}, bypass_csp=True)
    page.evaluate("document.querySelectorAll('details').forEach(element => element.open = true)")
    violations = axe.run(page, options=WCAG).response["violations"]
    assert not [f"{item['id']}: {node['html'][:120]}" for item in violations for node in item["nodes"]]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
