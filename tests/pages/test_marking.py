"""The marking page in a marker's hands: by keyboard alone, in light and in dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from autograder.course.authoring.rubrics import Rubric
from autograder.course.folder import Course
from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.live_view import LiveApplication
from autograder.marking.questions import MarkState
from autograder.marking.server import MarkingApplication

from ..autograder.marking.conftest import CHAPTER, EXERCISE, QUESTION, course, graded  # noqa: F401
from .conftest import listening, objections
from .test_report import THEMES

pytestmark = pytest.mark.browser
RUBRIC = Rubric(QUESTION, "The variance of a score is $D_h$.", "- 2 points: the variance\n- 1 point: the root")


@pytest.fixture
def rubric(request: pytest.FixtureRequest) -> Rubric:
    """The question's rubric; a test may ask for another one."""
    return getattr(request, "param", RUBRIC)


@pytest.fixture
def addresses(course: Course, rubric: Rubric) -> Iterator[list[str]]:  # noqa: F811
    """The addresses of a running marking server and of its live view."""

    def start() -> list[Any]:
        application = MarkingApplication(course, CHAPTER, "a marker", lambda: {QUESTION: rubric})
        return [application.listen_locally(), LiveApplication(application.reader).listen_locally()]

    with listening(start) as addresses:
        yield addresses


@pytest.fixture
def address(addresses: list[str]) -> str:
    """The address of a running marking server."""
    return addresses[0]


def at_question(online, address: str, title: str = "9 · Why the root?", **options: Any) -> Any:
    """Open a question."""
    page = online(address, **options)
    page.get_by_role("link", name=title).click()
    page.locator("article.current").wait_for()
    return page


def _states(course: Course) -> dict[str, MarkState]:  # noqa: F811
    return {answer.student: answer.state for answer in ChapterReader(course, CHAPTER).question(QUESTION).answers}


def test_group_is_marked_by_keyboard_alone(online, address: str, course: Course) -> None:  # noqa: F811
    page = at_question(online, address)
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


@pytest.mark.parametrize("locale", ["en-GB", "de-DE"])
def test_a_decimal_comma_is_half_a_point_in_every_language(online, address: str, course: Course, locale: str) -> None:  # noqa: F811
    page = at_question(online, address, locale=locale)
    page.keyboard.press("p")
    page.keyboard.type("0,5")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Answer 1: 0.5 points given").wait_for()
    assert _states(course)["ada"].points == 0.5


def test_conflict_is_announced(online, address: str, course: Course) -> None:  # noqa: F811
    first, second = at_question(online, address), at_question(online, address)
    for page, points, shown in ((first, "1", "1 points given"), (second, "4", "changed since")):
        page.keyboard.press("p")
        page.keyboard.type(points)
        page.keyboard.press("Control+Enter")
        page.get_by_role("status").get_by_text(shown).wait_for()
    assert _states(course)["ada"].points == 1.0


def test_help_opens_and_closes_by_keyboard(online, address: str) -> None:
    page = at_question(online, address)
    page.keyboard.press("?")
    assert page.get_by_role("dialog", name="Keys").is_visible()
    page.keyboard.press("Escape")
    assert not page.get_by_role("dialog", name="Keys").is_visible()


CODE_TITLE = "1 · Causal mask"


def _code_states(course: Course) -> dict[str, MarkState]:  # noqa: F811
    question = ChapterReader(course, CHAPTER).question(EXERCISE)
    return {answer.student: answer.state for answer in question.answers}


def test_code_is_marked_by_keyboard_alone(online, address: str, course: Course) -> None:  # noqa: F811
    page = at_question(online, address, CODE_TITLE)
    assert page.get_by_role("button", name="Give to 3").is_visible()
    page.keyboard.press("m")
    page.keyboard.press("Space")
    page.get_by_role("button", name="Give to 2").wait_for()
    page.keyboard.press("p")
    page.keyboard.type("2.5")
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    page.keyboard.type("mind the future")
    page.keyboard.press("Control+Enter")
    page.get_by_role("status").get_by_text("Group 1: 2.5 points given to 2 of 3").wait_for()
    assert _code_states(course)["bob"] == _code_states(course)["cyd"] == MarkState(2.5, False, "mind the future")
    assert _code_states(course)["ada"] == MarkState(None, False, None)
    assert page.get_by_label("Earlier comments").locator("option").all_inner_texts() == [
        "Choose one",
        "mind the future",
    ]
    # The member that was taken out is chosen now, with an empty form.
    page.get_by_role("button", name="Give", exact=True).wait_for()
    assert (
        page.get_by_label("Points, of 4").input_value()
        == page.get_by_role("textbox", name="Comment").input_value()
        == ""
    )
    page.keyboard.press("c")
    page.keyboard.type("see me")
    page.keyboard.press("Control+Enter")
    page.get_by_role("status").get_by_text("Group 1: comment kept for 1 of 3").wait_for()
    assert _code_states(course)["ada"] == MarkState(None, False, "see me")
    assert page.locator("article.current").get_attribute("data-name") == "Group 2"
    for undone, key in (("Undone for 1.", "u"), ("Undone for 2.", "u")):
        page.keyboard.press(key)
        page.get_by_role("status").get_by_text(undone).wait_for()
    assert set(_code_states(course).values()) == {MarkState(None, False, None)}


def test_code_of_one_member_is_shown_and_marked(online, address: str, course: Course) -> None:  # noqa: F811
    page = at_question(online, address, CODE_TITLE)
    page.keyboard.press("m")
    page.get_by_role("button", name="Show the code of Answer 1.2").focus()
    page.keyboard.press("Enter")
    page.locator("li pre.example").get_by_text("mask = upper(T)").wait_for()
    page.get_by_role("button", name="Choose only Answer 1.2").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("p")
    page.keyboard.type("3")
    page.keyboard.press("Control+Enter")
    page.get_by_role("status").get_by_text("3 points given to 1 of 3").wait_for()
    assert {student for student, state in _code_states(course).items() if state.points == 3} == {"bob"}


def test_live_view_reveals_groups_by_keyboard(online, addresses: list[str]) -> None:
    page = online(addresses[1])
    page.get_by_text("1 group of 3 answers or more not shown yet").wait_for()
    assert page.locator("#detail article").count() == 0
    page.keyboard.press("r")
    page.locator("#detail article").get_by_text("The mask shows the future.").wait_for()
    page.keyboard.press("h")
    page.locator("#detail article").wait_for(state="detached")


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("shown", ["9 · Why the root?", CODE_TITLE, "live"])
def test_marking_page_is_accessible(online, axe, addresses: list[str], theme: str, shown: str) -> None:
    options: dict[str, Any] = {"color_scheme": theme, "bypass_csp": True}
    if shown == "live":
        page = online(addresses[1], **options)
        page.locator("#questions li").first.wait_for()
        page.keyboard.press("r")
        page.locator("#detail article").wait_for()
    else:
        page = at_question(online, addresses[0], shown, **options)
    page.evaluate("document.querySelectorAll('details').forEach(element => element.open = true)")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert objections(axe, page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_half_an_item_is_ticked_and_shown_again(online, address: str, course: Course) -> None:  # noqa: F811
    page = at_question(online, address)
    for key in "112":
        page.keyboard.press(key)
    assert page.get_by_label("Points, of 4").input_value() == "2"
    half = page.get_by_role("button", name="Half of item 1")
    assert half.get_attribute("aria-pressed") == "true"
    page.keyboard.press("Control+Enter")
    page.get_by_text("Answer 1: 2 points given").wait_for()
    (ada,) = (answer for answer in ChapterReader(course, CHAPTER).question(QUESTION).answers if answer.student == "ada")
    assert [(tick.text, tick.share) for tick in ada.ticks] == [("the variance", 0.5), ("the root", 1.0)]
    page.reload()
    page.locator("article", has_text="Answer 1").first.click()
    assert half.get_attribute("aria-pressed") == "true"
    assert page.get_by_label("1 point: the root").is_checked()
    page.keyboard.press("1")
    assert not page.get_by_label("2 points: the variance").is_checked()
    assert page.get_by_label("Points, of 4").input_value() == "1"


LONG_RUBRIC = Rubric(
    QUESTION, "Because.", "\n".join(f"- 1 point: {'a demand of some length, ' * 6}{n}" for n in range(9))
)


@pytest.mark.parametrize("shown", ["9 · Why the root?", CODE_TITLE])
@pytest.mark.parametrize("rubric", [LONG_RUBRIC], indirect=True)
def test_give_is_on_a_small_screen(online, address: str, shown: str) -> None:
    page = at_question(online, address, shown, viewport={"width": 1366, "height": 650})
    page.evaluate("document.querySelectorAll('details.prompt').forEach(element => element.open = true)")
    box = page.locator("#give").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 650
    at = [box["x"] + 5, box["y"] + 5]
    assert page.evaluate("([x, y]) => document.elementFromPoint(x, y).id", at) == "give"


def test_the_page_says_that_a_mark_is_being_saved_or_is_not(online, address: str, course: Course) -> None:  # noqa: F811
    page = at_question(online, address)
    held = []
    page.route("**/give", lambda route: held.append(route))
    page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    page.get_by_role("status").get_by_text("Saving …").wait_for()
    page.keyboard.press("Control+Enter")
    assert page.locator("#give").get_attribute("aria-disabled") == "true"
    assert len(held) == 1
    held[0].continue_()
    page.get_by_role("status").get_by_text("Answer 1: 2 points given").wait_for()
    assert page.locator("#give").get_attribute("aria-disabled") is None


def test_history_is_in_the_readers_time(online, address: str) -> None:
    page = at_question(online, address, timezone_id="Asia/Kathmandu", locale="en-GB")
    page.keyboard.press("1")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Answer 1: 2 points given").wait_for()
    page.get_by_role("link", name="History").click()
    time = page.locator("time").first
    moment = datetime.fromisoformat(time.get_attribute("datetime")).astimezone(ZoneInfo("Asia/Kathmandu"))
    page.locator("time", has_text=f"{moment:%H:%M}").first.wait_for()
