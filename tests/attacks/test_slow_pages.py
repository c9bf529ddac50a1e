"""Text that takes any time to render keeps no command and no page waiting: it is shown as it was written, and the page says so.

Each of these would gain the same: grades and pages of the whole class wait, as long as the student likes. It is on the list *never*.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from nbgrader.server_extensions.formgrader import handlers
from traitlets.config import Config

from autograder.checking.verdict import Finding, Verdict
from autograder.course.folder import Course
from autograder.grading.feedback import page_html, safe_notebook
from autograder.grading.feedback.follow_ups import Outcome, find_causes
from autograder.grading.feedback.page_html import make_page, page_process
from autograder.grading.plugin import configure
from autograder.limited_process import LimitedProcess
from autograder.marking import answer_texts
from autograder.marking.answer_texts import NOTE, AnswerTexts
from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.page_data import Pseudonyms, code_groups, text_groups
from tests.autograder.marking.conftest import (  # noqa: F401
    CHAPTER,
    EXERCISE,
    QUESTION,
    course,
    graded,
    write_answer,
    write_outcome,
)

# An exponential string of Pygments' lexer for Maple, a quadratic one, brackets that nothing closes, and one of a lexer for build files.
EXPONENTIAL = '```maple\n"' + r"\a" * 60 + "\n```"
BUILD_FILE = '```androidbp\n"' + r"\a" * 60 + "\n```"
BRACKETS = r"\\[" * 6_500
# What is rendered once is remembered, so that only different texts take long.
DIFFERENT = [f"{number} {BRACKETS}" for number in range(98)]
OPENED = "[" * 19_000
DOTS = "a." * 500_000 + "a"
ANSI = "\x1b[31mx" * 150_000
TABLE = "<b><i>" * 30_000
ESCAPED_QUOTES = "'" + r"\'" * 20_000
# Seconds of all of a page; with no limit, each of these texts takes from minutes to for ever.
DONE = 90.0


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(page_html, "PAGE_SECONDS", 0.7)
    monkeypatch.setattr(safe_notebook, "PAGE_SECONDS", 0.7)
    monkeypatch.setattr(answer_texts, "ANSWER_SECONDS", 0.5)
    begin = time.monotonic()
    yield
    assert time.monotonic() - begin < DONE


def mark(name: str, *, solution: bool) -> dict[str, Any]:
    return {"grade_id": name, "grade": True, "solution": solution, "locked": not solution, "points": 1, "score": 0}


def answers(*texts: str) -> list[Any]:
    return [
        new_markdown_cell(text, metadata={"nbgrader": mark(f"question_{number}", solution=True)})
        for number, text in enumerate(texts)
    ]


@pytest.fixture(scope="module")
def feedback() -> Iterator[LimitedProcess]:
    with page_process() as process:
        yield process


def feedback_page(process: LimitedProcess, cells: list[Any]) -> page_html.RenderedPage:
    about = {"assignment": "01", "student": "eve", "score": 0, "max_score": 2, "late_penalty": 0}
    return make_page(process, new_notebook(cells=cells), about, "")


def test_only_python_is_highlighted_and_a_page_that_takes_too_long_shows_the_texts_as_they_were_written(
    feedback: LimitedProcess,
) -> None:
    for text in (EXPONENTIAL, BUILD_FILE):
        page = feedback_page(feedback, answers(text, "```python\ndef f(): pass\n```"))
        assert page.plain_because == ""
        assert r"\a" * 3 in page.html
        assert '<span class="k">def</span>' in page.html
    page = feedback_page(feedback, answers(*DIFFERENT, "It is **wide**."))
    assert "0.7 s" in page.plain_because
    assert "It is **wide**." in page.html
    other = feedback_page(feedback, answers("It is **wide**."))
    assert other.plain_because == ""
    assert "It is <strong>wide</strong>." in other.html


def formgrader_page(*cells: Any) -> str:
    config = Config()
    configure(config)
    config.HTMLExporter.template_name = "formgrade"
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    about = {"base_url": "", "notebook_id": "n", "index": 0, "total": 1, "assignment_id": "a", "submission_id": "s"}
    page, _ = HTMLExporter(config=config).from_notebook_node(new_notebook(cells=list(cells)), resources=about)
    return str(page)


@pytest.mark.parametrize(
    "cells",
    [
        answers(*DIFFERENT),
        [new_code_cell("f()", outputs=[new_output("stream", text=ANSI)])],
        [new_code_cell("f()", outputs=[new_output("display_data", data={"text/html": TABLE})] * 2)],
    ],
    ids=["brackets", "colours", "tables"],
)
def test_the_formgrader_shows_a_page_as_plain_text_and_says_so(cells: list[Any]) -> None:
    page = formgrader_page(*cells, new_markdown_cell("It is **wide**."))
    assert "0.7 s" in page
    assert "It is **wide**." in page


def test_the_formgrader_gives_no_text_to_nbconverts_own_expressions_and_holds_a_million_characters_of_output() -> None:
    # 98 different texts of opened brackets: what is rendered once is remembered.
    opened = [f"{number} {OPENED}" for number in range(98)]
    page = formgrader_page(*answers(EXPONENTIAL, *opened), new_code_cell("%time f()\n" + DOTS[:100_000]))
    assert r"\a" * 3 in page
    assert "[[[[[" in page
    outputs = [new_output("stream", text="x" * 100_000)]
    page = formgrader_page(*[new_code_cell("print(x)", outputs=outputs) for _ in range(30)])
    assert page.count("x" * 100_000) == 10


def test_an_answer_that_takes_too_long_is_plain_on_the_marking_page_and_the_others_are_not(course: Course) -> None:  # noqa: F811
    told: list[str] = []
    write_answer(course, "ada", BRACKETS)
    write_answer(course, "bob", "It is **wide**.")
    texts = AnswerTexts(told.append)
    question = ChapterReader(course, CHAPTER).question(QUESTION)
    assert question is not None
    for _ in range(2):
        texts.begin_page()
        shown = {group.html for group in text_groups(question, None, Pseudonyms(b"x"), texts, names=None)}
        assert any(html.startswith(f"{NOTE}<pre>{BRACKETS[:9]}") for html in shown)
        assert "<p>It is <strong>wide</strong>.</p>\n" in shown
    assert [QUESTION in text for text in told] == [True]


def test_code_that_takes_too_long_is_plain_on_the_marking_page(
    course: Course,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_answer(course, "ada", code="def f():\n    return 1")
    finding = Finding("values", "Values.", 4, False, "wrong")
    write_outcome(course, "ada", Verdict(EXERCISE, CHAPTER, (finding,)))
    reader = ChapterReader(course, CHAPTER)
    question = reader.question(EXERCISE)
    assert question is not None
    texts = AnswerTexts()
    groups = code_groups(question, reader.graded_code(), Pseudonyms(b"x"), texts, names=None)
    assert '<span class="k">def</span>' in "".join(html for group in groups for _, html in group.codes)
    monkeypatch.setattr(answer_texts, "ANSWER_SECONDS", 1e-6)
    groups = code_groups(question, reader.graded_code(), Pseudonyms(b"x"), AnswerTexts(), names=None)
    assert groups[0].codes[0][1].startswith(f"{NOTE}<pre>")


def test_which_exercise_calls_which_is_not_read_from_lines_that_take_long() -> None:
    findings = (Finding("values", "Values.", 4, False, "it raised KeyError"),)
    outcomes = [Outcome(name, ESCAPED_QUOTES, Verdict(name, CHAPTER, findings)) for name in map(str, range(26))]
    begin = time.process_time()
    assert find_causes(outcomes) == {}
    assert time.process_time() - begin < 1
