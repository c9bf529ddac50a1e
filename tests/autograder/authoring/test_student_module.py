"""A module of the students' package: exercises are stubs, and so is what only they need."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from autograder.course.release.student_module import student_module
from autograder.errors import CourseError
from autograder.static_analysis.definitions import ModuleSource

MODULE = '''"""A module."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

# The secret is 4711.
__all__ = ["answer", "earlier", "shown"]

_TABLE = {"a": 1}


def _check(x: int) -> None:
    """It raises or says nothing."""
    if x < 0:
        raise ValueError(f"x is negative: {x}")


def _work(x: int) -> int:
    return x * 4711


# So this is how it is done.
def _shared(x: int) -> int:
    """Needed by what is shown."""
    return _deeper(x) + 1


def _deeper(x: int) -> int:
    return x + 12


def answer(x: int) -> int:
    """What is asked for."""
    _check(x)
    return _work(x) + _shared(x)


def earlier(x: int) -> int:
    return x - 1  # a comment inside


def shown(x: int) -> int:
    return _shared(x)
'''


def test_private_helpers_go_with_the_solution_unless_they_only_check_or_something_else_needs_them() -> None:
    text = student_module(ModuleSource(Path("m.py"), MODULE), {"answer": "05_x"})
    scope: dict[str, Any] = {}
    exec(text, scope)
    for stubbed in ("answer", "_work"):
        with pytest.raises(NotImplementedError):
            scope[stubbed](1)
    assert scope["shown"](1) == 14
    assert scope["earlier"](1) == 0
    with pytest.raises(ValueError, match="negative"):
        scope["_check"](-1)
    assert "a comment inside" in text
    assert "4711" not in text
    assert "how it is done" not in text
    assert scope["answer"].__doc__ == "What is asked for."


def test_a_helper_that_another_module_needs_stays() -> None:
    text = student_module(ModuleSource(Path("m.py"), MODULE), {"answer": "05_x"}, needed={"_work"})
    scope: dict[str, Any] = {}
    exec(text, scope)
    assert scope["_work"](1) == 4711


def test_a_module_without_secrets_is_given_as_it_is() -> None:
    assert student_module(ModuleSource(Path("m.py"), MODULE), {"elsewhere": "05_x"}) == MODULE


@pytest.mark.parametrize("line", ["print(answer(2))", "_work = lambda x: x * 4711", "for i in range(2):\n    pass"])
def test_code_at_the_top_level_that_could_hold_a_solution_is_refused(line: str) -> None:
    with pytest.raises(CourseError, match="top level"):
        student_module(ModuleSource(Path("m.py"), f"{MODULE}\n{line}\n"), {"answer": "05_x"})
