"""What the parts of `explorer.js` do that no explorer of a lesson has yet, on the example for contributors; and the colour of a weight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..tfcourse.lessons.explorers.examples import EXAMPLES, plainly
from .conftest import CONTRAST

pytestmark = pytest.mark.browser

Open = Callable[..., Any]


@pytest.fixture
def steps(open_page: Open, page: Any) -> Any:
    """The example for contributors, which shows four words, on a page whose clock stands still."""
    page.clock.install()
    open_page(EXAMPLES["documented"](plainly))
    return page


def step(page: Any) -> str:
    return page.locator(".explorer-stepper .explorer-value").text_content()


def press(page: Any, name: str) -> None:
    page.get_by_role("button", name=name).focus()
    page.keyboard.press("Enter")


def test_stepper_goes_back_and_forward_and_stops_at_both_ends_without_losing_the_focus(steps: Any) -> None:
    back, forward = steps.get_by_role("button", name="Back"), steps.get_by_role("button", name="Next")
    assert back.get_attribute("aria-disabled") == "true"
    press(steps, "Back")
    assert step(steps) == "1 of 4"
    for expected in ("2 of 4", "3 of 4", "4 of 4", "4 of 4"):
        press(steps, "Next")
        assert step(steps) == expected
        assert forward.evaluate("button => button === document.activeElement")
    assert (back.get_attribute("aria-disabled"), forward.get_attribute("aria-disabled")) == ("false", "true")
    press(steps, "Back")
    assert step(steps) == "3 of 4"


def test_play_goes_on_to_the_last_step_and_again_from_the_first(steps: Any) -> None:
    press(steps, "Play")
    assert step(steps) == "1 of 4"
    steps.clock.run_for(800)
    assert step(steps) == "2 of 4"
    steps.clock.run_for(1600)
    assert step(steps) == "4 of 4"
    press(steps, "Play")
    assert step(steps) == "1 of 4"


def test_live_region_is_silent_while_the_steps_play_and_then_says_the_last(steps: Any) -> None:
    live = steps.locator(".explorer-live")
    before = live.text_content()
    press(steps, "Play")
    assert live.get_attribute("aria-live") == "off"
    steps.clock.run_for(800)
    press(steps, "Pause")
    assert live.get_attribute("aria-live") == "polite"
    assert live.text_content() != before


@pytest.mark.parametrize("button", ["Pause", "Back", "Next"])
def test_playing_ends_with_any_button(steps: Any, button: str) -> None:
    press(steps, "Play")
    steps.clock.run_for(800)
    press(steps, button)
    here = step(steps)
    steps.clock.run_for(5000)
    assert step(steps) == here
    assert steps.get_by_role("button", name="Play").is_visible()


def test_playing_ends_when_the_figure_leaves_the_page(steps: Any) -> None:
    press(steps, "Play")
    explorer = steps.evaluate_handle("document.querySelector('.explorer')")
    explorer.evaluate("element => element.remove()")
    steps.clock.run_for(5000)
    explorer.evaluate("element => document.querySelector('main').append(element)")
    assert step(steps) == "1 of 4"
    assert steps.get_by_role("button", name="Play").is_visible()


def test_readers_who_want_no_motion_step_and_have_nothing_to_play(steps: Any) -> None:
    press(steps, "Play")
    steps.emulate_media(reduced_motion="reduce")
    steps.get_by_role("button", name="Pause").wait_for(state="detached")
    assert steps.get_by_role("button").all_text_contents() == ["Back", "Next"]
    steps.clock.run_for(5000)
    assert step(steps) == "1 of 4"
    press(steps, "Next")
    assert step(steps) == "2 of 4"
    steps.emulate_media(reduced_motion="no-preference")
    steps.get_by_role("button", name="Play").wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_more_weight_stands_out_more_and_behind_text_leaves_the_text_readable(open_page: Open, theme: str) -> None:
    page = open_page(EXAMPLES["documented"](plainly), theme=theme)
    colours = """behindText => {
      const figure = document.querySelector(".explorer-figure");
      const probe = figure.appendChild(document.createElement("i"));
      return [-1, 0, 0.25, 0.5, 1, 2].map((weight) => {
        probe.style.color = tfcourse.weightColour(weight, { behindText });
        return getComputedStyle(probe).color;
      });
    }"""
    ink, ground = page.locator(".explorer-figure").evaluate(
        "figure => [getComputedStyle(figure).color, getComputedStyle(figure).backgroundColor]"
    )
    strength = [page.evaluate(CONTRAST, [[ground, colour], ground]) for colour in page.evaluate(colours, False)]
    assert strength[0] == strength[1] == pytest.approx(1, abs=1e-6)
    assert strength[1] < strength[2] < strength[3] < strength[4] == strength[5]
    assert strength[4] >= 4.5
    behind = page.evaluate(colours, True)
    assert len(set(behind)) == 4, "more weight is darker behind a text, too"
    assert all(page.evaluate(CONTRAST, [ink, [ground, colour]]) >= 4.5 for colour in behind)
