"""Render answers for the marking page in a process with time limits; slow answers are shown as plain text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from autograder.grading.feedback.markup import markdown_answer
from autograder.limited_process import FailedCallError, LimitedProcess
from autograder.marking.code_text import CodeView, diff_lines, view_group_code

# Processor time that one answer may take.
ANSWER_SECONDS = 2.0
# After so many answers that exceeded it, one page tries no others; those that did are remembered, so the next page gets further.
_MOST_FAILURES = 3
NOTE = '<p class="note">This answer is shown as it was written: to render it took too long.</p>'


class AnswerTexts:
    """Renders answers as HTML, each within a time limit.

    Args:
        report: called with a message for each answer that is shown as it was written.
    """

    def __init__(self, report: Callable[[str], None] = lambda message: None) -> None:
        self._process = LimitedProcess(view_group_code.__module__)
        self._report = report
        self._slow: set[str] = set()
        self._failures = 0

    def begin_page(self) -> None:
        """Reset the failure count, which limits the slow answers per page."""
        self._failures = 0

    def answer(self, question: str, text: str, attachments: Any) -> str:
        """Return a written answer as HTML, or as plain text with a note if it renders too slowly.

        Args:
            question: the question's name.
            text: the answer, Markdown.
            attachments: its cell's attachments.
        """
        shown = self._call_within_limits(question, markdown_answer, text, attachments)
        return NOTE + markdown_answer(text, plain=True) if shown is None else str(shown)

    def code(self, exercise: str, source: str, others: list[str], reference: str) -> CodeView:
        """Return a group's code as HTML: see :func:`autograder.marking.code_text.view_group_code`."""
        shown = self._call_within_limits(exercise, view_group_code, source, others, reference)
        if shown is not None:
            return CodeView(*shown)
        view = view_group_code(source, others, reference, plain=True)
        return view._replace(code=NOTE + view.code)

    def difference(self, exercise: str, before: str, after: str) -> list[str]:
        """Return the lines of a unified diff; empty if the comparison takes too long."""
        return self._call_within_limits(exercise, diff_lines, before, after) or []

    def _call_within_limits(self, question: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function in the limited process and return its result; None if it exceeds a limit."""
        key = hashlib.sha256(json.dumps([function.__qualname__, *arguments]).encode()).hexdigest()
        if key in self._slow or self._failures >= _MOST_FAILURES:
            return None
        try:
            return self._process.call(function, *arguments, seconds=ANSWER_SECONDS)
        except FailedCallError as error:
            self._slow.add(key)
            self._failures += 1
            self._report(f"{question}: an answer is shown as it was written, because {error}")
            return None
