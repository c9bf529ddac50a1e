"""A page of hostile text costs its author, and nobody else: the batch finishes, and all other grades stay as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.commands.grade_chapter import renew_pages
from autograder.course.folder import Course
from autograder.feedback import page_html
from autograder.feedback.pages import PLAIN, write_feedback
from autograder.grading.autograde import autograde
from autograder.grading.plugin import configured
from autograder.record.results import read_results
from autograder.submission.problem import LONGEST, MOST

from .conftest import CHAPTER
from .scripted import Scripted

BODY = "\n".join(f"    y{i} = {i}" for i in range(10))
BOMB = " ".join([r"$\begin{matrix}" + "&" * 60 + r"\end{matrix}$"] * 190)
SLOW = r"\\[" * 6_000
CELLS = {
    "a deep sum": ["x = " + " + ".join(["1"] * 2_500)],
    "a deep name": ["x = a" + ".b" * 5_000],
    "600 lines for the shell": ["!ls\n" * 600],
    "150 KB of magics": ["\n".join(f"%time f({i})\nx{i} = {i}" for i in range(6_000))],
    "magics that nothing closes": ["!echo (\n" * 2_000],
    "8,000 names": ["\n".join(f"import module_{i}" for i in range(8_000))],
    "220 cells of code": [f"def causal_mask(x):\n{BODY}\n    return {i}" for i in range(220)],
    "escapes": ["x = '\\d'"],
    "a null byte": ["x = '\0'"],
    "parentheses": ["(" * 500 + ")" * 500],
    "nothing but lines": ["\n" * 100_000 + "z"],
}
TEXTS = [
    *(f"def scaled_dot_product_attention(x):\n{BODY}\n    return {i}" for i in range(220)),
    BOMB,
    "#" + " " * 100_000 + "x",
    "# x" + " " * 100_000 + "x",
    ">" * 10_000,
    "[" * 10_000,
]


@pytest.fixture
def graded(course: Course, filled: Callable[..., Any], hand_in: Callable[..., Path]) -> Callable[[], dict[str, Any]]:
    for student in ("ann", "zoe"):
        hand_in(student, filled(answer="Because."))
    executor = Scripted({"ann": {"causal_mask": 0.5}})

    def grade() -> dict[str, Any]:
        results = autograde(course, CHAPTER, device="cpu", make_executor=executor, force=True)
        return {result.student: result for result in results}

    return grade


def test_nobody_else_loses_by_a_page_of_hostile_text(
    course: Course, filled: Callable[..., Any], hand_in: Callable[..., Path], graded: Callable[[], dict[str, Any]]
) -> None:
    before = graded()
    page = filled(answer=BOMB)
    page.cells += [new_code_cell(source) for sources in CELLS.values() for source in sources]
    page.cells += [new_markdown_cell(source) for source in TEXTS]
    hand_in("eve", json.dumps(page).encode())
    after = graded()
    assert set(after) == {"ann", "eve", "zoe"}
    for student in ("ann", "zoe"):
        assert after[student].exercises == before[student].exercises
        assert after[student].problems == before[student].problems
    hostile = after["eve"]
    assert hostile.status == "graded"
    assert len(hostile.problems) <= MOST
    assert max(len(str(problem)) for problem in hostile.problems) < 2 * LONGEST
    pages = write_feedback(course, CHAPTER, configured(course))
    assert len(pages) == 3
    assert all(path.stat().st_size < 1_000_000 for path in pages)


def test_a_page_that_takes_too_long_is_plain_and_the_commands_name_it(
    course: Course,
    filled: Callable[..., Any],
    hand_in: Callable[..., Path],
    graded: Callable[[], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_html, "PAGE_SECONDS", 0.8)
    hand_in("eve", filled(answer=SLOW))
    graded()
    assert len(write_feedback(course, CHAPTER, configured(course))) == 3
    page, other = (
        (course.root / "feedback" / student / CHAPTER / f"{CHAPTER}.html").read_text() for student in ("eve", "ann")
    )
    assert "This page shows your texts as you wrote them" in page
    assert "This page shows your texts as you wrote them" not in other
    kinds = {result.student: [problem.kind for problem in result.problems] for result in read_results(course, CHAPTER)}
    assert (PLAIN in kinds["eve"], PLAIN in kinds["ann"], PLAIN in kinds["zoe"]) == (True, False, False)
    (renewed, named) = renew_pages(course, [CHAPTER])
    assert renewed == f"{CHAPTER}: 1 feedback page updated"
    assert named.startswith(f"{CHAPTER}: eve: The feedback page shows the student's texts as they were written")
    hand_in("eve", filled(answer="Because."))
    graded()
    assert renew_pages(course, [CHAPTER]) == [f"{CHAPTER}: 1 feedback page updated"]
