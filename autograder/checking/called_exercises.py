"""Find the cause of a failure: an exercise that the student's code calls and whose own check finds wrong numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

# Solutions that come with the course are right.
_COURSE = "tfcourse"


def explain_failing_dependency(candidate: Any, is_right: Callable[[Any], bool | None]) -> str:
    """Return a note on the exercise that a failing candidate calls and that fails itself, or an empty string.

    If that exercise fails because of a third one, the note names the third.

    Args:
        candidate: the student's function or class.
        is_right: returns whether a function or class has the right numbers; None if no exercise has its name.
    """
    name = _find_first_failing(candidate, is_right, {id(candidate)})
    return f"It calls your {name}, whose own check finds wrong numbers: correct that first." if name else ""


def _find_first_failing(candidate: Any, is_right: Callable[[Any], bool | None], visited: set[int]) -> str:
    for called in _called_definitions(candidate):
        if id(called) not in visited:
            visited.add(id(called))
            if is_right(called) is False:
                return _find_first_failing(called, is_right, visited) or str(called.__name__)
    return ""


def _called_definitions(candidate: Any) -> Iterator[Any]:
    """Yield the student's own functions and classes that the candidate's code names, in order."""
    for function in _own_functions(candidate):
        for name in _code_names(function.__code__):
            value = function.__globals__.get(name)
            is_own = isinstance(value, FunctionType | type) and value.__module__.partition(".")[0] != _COURSE
            if is_own and value is not candidate:
                yield value


def _own_functions(candidate: Any) -> list[FunctionType]:
    if isinstance(candidate, FunctionType):
        return [candidate]
    return (
        [value for value in vars(candidate).values() if isinstance(value, FunctionType)]
        if isinstance(candidate, type)
        else []
    )


def _code_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_names(constant)
