"""Write the page *Find the bug* of a chapter: exercises from its known mistakes, with folded answers."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.quizzes.exam.compose import practice
from autograder.quizzes.exam.pages import rendered

#: The name of the page.
PAGE = "find-the-bug.html"
QUESTIONS = 10


def chapters_with_open_solutions(shown: Sequence[str], offered: Sequence[str]) -> list[str]:
    """Return the chapters whose solutions are open: an offered package contains the solutions of all earlier chapters.

    Args:
        shown: the names of the chapters on the site.
        offered: the names of the chapters whose packages it offers.
    """
    last = max(offered, default="")
    return sorted(chapter for chapter in shown if chapter < last)


def practice_page(chapter: str) -> bytes:
    """Return the page of a chapter. Show it only when the chapter is closed, for each of its functions is one edit away from a solution."""
    exam = practice(chapter, QUESTIONS, f"practice {chapter}")
    return rendered("practice", exam, f"Find the bug: chapter {chapter[:2]}", chapter=chapter).encode()
