"""Write the pages of a chapter's interviews: the questions, one printed sheet per student, and the keys."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autograder.atomic_files import write_all_or_none
from autograder.grading.feedback.page_html import printable_environment
from autograder.quizzes.questions.question import LETTERS, numbered_code
from autograder.quizzes.viva.interviews import Interview
from autograder.quizzes.viva.told_facts import DefinitionQuestions


def write_pages(interviews: Sequence[Interview], folder: Path, *, title: str) -> tuple[Path, Path]:
    """Write the page with the questions and the page with the keys, and return their paths.

    Raises:
        CourseError: if the pages cannot be written.
    """
    pages = {folder / f"{name}.html": render_page(name, interviews, title).encode() for name in ("questions", "keys")}
    write_all_or_none(pages)
    first, second = pages
    return first, second


def render_page(name: str, interviews: Sequence[Interview], title: str) -> str:
    """Render one of the two pages, ``"questions"`` or ``"keys"``, as HTML."""
    environment = printable_environment("autograder.quizzes.viva", "viva.css")
    environment.filters["code"] = _number_lines
    html: str = environment.get_template(f"{name}.html").render(interviews=interviews, title=title, letters=LETTERS)
    return html


def _number_lines(part: DefinitionQuestions) -> str:
    return numbered_code(part.source, part.hidden_lines)
