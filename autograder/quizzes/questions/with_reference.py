"""The quiz of a full installation, which has the reference; students do not receive this module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograder.checks import exercise
from autograder.quizzes.questions.quiz import ask_about


def quiz(candidate: Callable[..., Any], *, seed: int | None = None) -> None:
    """Ask three questions about code of an exercise.

    Args:
        candidate: the function or class; the exercise is found by its name.
        seed: selects the questions; by default every call has other ones.

    Raises:
        LookupError: if there is no exercise of that name.
    """
    ask_about(candidate, exercise(str(getattr(candidate, "__name__", ""))).sheet(), seed)
