"""Students' code and the messages that it caused are text on the marking page: nothing in them runs, hides or leads away."""

from __future__ import annotations

import re
from typing import Any

import pytest

from autograder.checking.verdict import Finding, Verdict
from autograder.course.folder import Course
from autograder.marking.code_text import code_html, diff_html, escape_invisible, shortened_lines
from autograder.marking.live_view import LiveApplication
from autograder.marking.server import MarkingApplication
from tests.autograder.marking.conftest import (  # noqa: F401
    CHAPTER,
    EXERCISE,
    course,
    graded,
    write_answer,
    write_outcome,
)
from tests.nbgrader.hostile import ANSWERS, DO
from tests.pages.conftest import listening

LONG = "x" * 1_000_000
REORDERED = "level = 'user\u202e \u2066# only admins\u2069 \u2066'\u200b\ufeff\x00"
HOSTILE = (*ANSWERS, LONG, REORDERED, "\ud800 alone", f"$\\href{{javascript:{DO}}}{{x}}$", "'''</pre></code><script>")
# What could run, load or lead away if it stood on the page as it is.
ACTIVE = re.compile(r"<(?!/?(?:span|div|pre|code)\b)", re.IGNORECASE)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_code_and_difference_hold_no_markup(text: str) -> None:
    for shown in (code_html(text), diff_html("", text), diff_html(text, "y")):
        assert not ACTIVE.search(shown)
        assert len(shown) < 400_000
        shown.encode()


def test_characters_that_reorder_text_become_numbers() -> None:
    assert escape_invisible(REORDERED) == (
        r"level = 'user\u202e \u2066# only admins\u2069 \u2066'\u200b\ufeff\u0000"  # as one reads it, not as it was
    )


def test_long_line_is_truncated_and_says_so() -> None:
    (line,) = shortened_lines(LONG)
    assert line == "x" * 400 + " … (1,000,000 characters)"
    assert shortened_lines("a\n" * 1000)[-1] == "… (1,000 lines)"


def _fill(course: Course) -> None:  # noqa: F811
    """Put hostile text into everything that the page shows of a student."""
    for number, student in enumerate(("ada", "bob", "cyd")):
        write_answer(course, student, code="\n".join(HOSTILE[number::3]))
        message = " ".join(HOSTILE[:6])
        finding = Finding("values", "Values.", 4, False, message, example="\n".join(HOSTILE[6:12]))
        write_outcome(course, student, Verdict(EXERCISE, CHAPTER, (finding,)))
    write_outcome(course, "eve", None, f"ValueError: {''.join(HOSTILE[:3])}{LONG}")


@pytest.mark.browser
def test_hostile_code_is_shown_and_never_runs(chromium, course: Course) -> None:  # noqa: F811
    _fill(course)
    requests: list[str] = []
    complaints: list[str] = []

    def start() -> list[Any]:
        application = MarkingApplication(course, CHAPTER, "a marker", dict)
        return [application.listen_locally(), LiveApplication(application.reader).listen_locally()]

    with listening(start) as (marking, live):
        context = chromium.new_context()
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.goto(marking)
        page.goto(marking.partition("/open")[0] + f"/question/{EXERCISE}")
        page.keyboard.press("m")
        for button in page.locator("article.current .show").all():
            button.click()
        page.locator("article.current li pre").first.wait_for()
        page.locator("article.current .rows").get_by_text(f"<script>{DO}</script>").first.wait_for()
        assert page.locator("article :is(script, img, iframe, a, form, input:not([type=checkbox]), svg)").count() == 0
        assert page.evaluate("window.hostile") is None
        page.goto(live)
        page.locator("#questions li").first.wait_for()
        page.keyboard.press("r")
        page.locator("#detail article").wait_for()
        assert "hostile" not in page.content()
        assert page.evaluate("window.hostile") is None
        context.close()
    assert [url for url in requests if not url.startswith(("http://127.0.0.1:", "data:"))] == []
    assert complaints == []
