"""The quiz of a student's package, which has recorded sheets and no reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograder.checking.recorded import FOLDER, read_sheet
from autograder.checking.sheet import Sheet
from autograder.questions.quiz import ask_about


def quiz(candidate: Callable[..., Any], *, seed: int | None = None) -> None:
    """Ask three questions about your own code of an exercise.

    Args:
        candidate: your function or class; the exercise is found by its name.
        seed: decides which questions are asked; by default every call asks others.

    Raises:
        LookupError: if this build has no exercise of that name.
    """
    ask_about(candidate, recorded_sheet(str(getattr(candidate, "__name__", ""))), seed)


def recorded_sheet(exercise: str) -> Sheet:
    """Return the recorded sheet of an exercise.

    Raises:
        LookupError: if this build has none of that name.
    """
    path = FOLDER / f"{exercise}.safetensors"
    if not exercise.isidentifier() or not path.is_file():
        raise LookupError(f"there is no exercise named {exercise!r} in this package")
    return read_sheet(path)
