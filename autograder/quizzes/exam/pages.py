"""Render the pages of an exam (a paper for each version, and the keys) and the practice page *Find the bug* of a chapter."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.grading.feedback.page_html import printable_environment
from autograder.quizzes.exam.compose import Exam, compose_practice
from autograder.quizzes.exam.kinds import KINDS, ExamQuestion
from autograder.quizzes.questions.question import LETTERS, numbered_code

#: The file name of the practice page.
PAGE = "find-the-bug.html"
QUESTIONS = 10


def render_pages(exam: Exam, *, title: str) -> dict[str, bytes]:
    """Return an exam's HTML pages by file name."""
    papers = {
        f"paper-{letter}.html": render_page("paper", exam, title, letter=letter, items=items)
        for letter, items in zip(exam.letters, exam.versions, strict=True)
    }
    return {name: text.encode() for name, text in {**papers, "keys.html": render_page("keys", exam, title)}.items()}


def names_sentence(item: ExamQuestion) -> str:
    """Return sentences about the names that the code uses without defining them; empty if it defines all names."""
    right = f"{_join_names(item.uses)} {'is' if len(item.uses) == 1 else 'are'} right." if item.uses else ""
    raises = "raises an error" if len(item.checks) == 1 else "raise errors"
    checks = f"{_join_names(item.checks)} {raises} if the shapes or types do not fit." if item.checks else ""
    return " ".join(filter(None, [right, checks]))


def _join_names(names: tuple[str, ...]) -> str:
    quoted = [f"`{name}`" for name in names]
    return " and ".join(filter(None, [", ".join(quoted[:-1]), quoted[-1]]))


def render_page(name: str, exam: Exam, title: str, **values: object) -> str:
    """Render a template of the exam as HTML."""
    environment = printable_environment("autograder.quizzes.exam", "exam.css")
    environment.filters |= {"numbered": _number_lines, "uses": names_sentence}
    shared = {"exam": exam, "title": title, "letters": LETTERS, "kinds": KINDS}
    html: str = environment.get_template(f"{name}.html").render(**shared, **values)
    return html


def _number_lines(item: ExamQuestion) -> str:
    return numbered_code(item.code)


def chapters_with_open_solutions(shown: Sequence[str], offered: Sequence[str]) -> list[str]:
    """Return the chapters whose solutions are public, because an offered package contains the solutions of all earlier chapters.

    Args:
        shown: the names of the chapters on the site.
        offered: the names of the chapters whose packages the site offers.
    """
    last = max(offered, default="")
    return sorted(chapter for chapter in shown if chapter < last)


def render_practice_page(chapter: str) -> bytes:
    """Render the practice page of a chapter. Publish it only for closed chapters: its code is one edit away from solutions."""
    exam = compose_practice(chapter, QUESTIONS, f"practice {chapter}")
    return render_page("practice", exam, f"Find the bug: chapter {chapter[:2]}", chapter=chapter).encode()
