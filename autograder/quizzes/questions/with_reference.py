"""Ask questions in a full installation, which has the references; students do not receive this module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograder.checks import exercise
from autograder.quizzes.questions.quiz import ask_about


def quiz(candidate: Callable[..., Any], *, seed: int | None = None) -> None:
    """Ask three questions about a solution of an exercise.

    Args:
        candidate: the function or class; the exercise is found by its name.
        seed: the seed of the question choice; random by default.

    Raises:
        LookupError: if there is no exercise of that name.
    """
    ask_about(candidate, exercise(str(getattr(candidate, "__name__", ""))).sheet(), seed)
