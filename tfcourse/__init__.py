"""An open course on attention and Transformers: reference package and stubs.

Shapes are written with one legend throughout:
``B`` batch, ``T`` query length, ``S`` key/value length, ``D`` model width, ``H`` heads, ``Dh`` head width, ``V``
vocabulary. Boolean masks are True where a query may attend.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from autograder.checking.verdict import Verdict
    from tfcourse.lessons import OwnCode

__version__ = "0.4.0"
__all__ = ["__version__", "check", "quiz", "use"]


def check(
    candidate: Callable[..., Any], *, hidden: bool = False, seed: int | None = None, device: str | None = None
) -> Verdict:
    """Check your implementation of an exercise.

    Args:
        candidate: your function or class; the exercise is found by its name.
        hidden: also run the hidden tests; this needs the installed reference.
        seed: the seed of the hidden tests; by default the grader's seed if it is set,
            otherwise 0.
        device: where to run it, ``"cpu"`` or ``"cuda"``; by default the CPU.

    Returns:
        A verdict: its text form is the score; a notebook shows it as a table with one
        row per requirement.

    Raises:
        RuntimeError: if no checks are installed.
        LookupError: if no exercise has the candidate's name.
    """
    verdict: Verdict = _installed_check()(candidate, hidden=hidden, seed=seed, device=device)
    return verdict


def quiz(candidate: Callable[..., Any], *, seed: int | None = None) -> None:
    """Answer three questions about your own code of an exercise, at the keyboard.

    The questions come from running your code: the shape of a value after a line, how
    often a line runs, what the check says with one line changed. Nothing is recorded.

    Args:
        candidate: your function or class, which must earn nine tenths of its points; the
            exercise is found by its name.
        seed: selects the questions; by default every call has other ones.

    Raises:
        RuntimeError: if no quiz is installed.
        LookupError: if no exercise has the candidate's name.
    """
    quizzes = tuple(entry_points(group="tfcourse.quizzes"))
    if not quizzes:
        raise RuntimeError("no quiz is installed: install the course's package again")
    quizzes[0].load()(candidate, seed=seed)


def use(notebook: str | Path) -> OwnCode:
    """Run a lesson's notebook on your code: your solutions replace the empty ones.

    Args:
        notebook: the chapter's exercise notebook, for example
            ``"03_scaled_dot_product.ipynb"``; save it first.

    Returns:
        The exercises that were replaced; a notebook shows them as a sentence.

    Raises:
        FileNotFoundError: if there is no such notebook.
        ValueError: if the file is not a notebook.
    """
    from tfcourse.lessons import use as take_over

    return take_over(notebook)


@cache
def _installed_check() -> Callable[..., Any]:
    """Return the check of this installation, cached: finding it takes longer than most checks."""
    checks = tuple(entry_points(group="tfcourse.checks"))
    if not checks:
        raise RuntimeError(
            "no checks are installed: install the course's package (pip install <the tfcourse wheel of your chapter>)"
        )
    check: Callable[..., Any] = checks[0].load()
    return check
