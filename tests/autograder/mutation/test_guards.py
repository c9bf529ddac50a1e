"""Guards against wrong input are changed only where the docstring promises an error."""

from __future__ import annotations

import ast

import pytest

from autograder.quizzes.mutation.guards import is_guard, list_guard_lines, promises_errors
from autograder.quizzes.mutation.operators import list_mutations

GUARDED = "def f(x, n):\n    if n < 1:\n        raise ValueError(n)\n    _check_shape(x)\n    return x * n\n"


def silent(x: int) -> int:
    """Return x."""
    return x


def promising(x: int) -> int:
    """Return x.

    Raises:
        ValueError: If x is negative.
    """
    return x


class Promising:
    """A layer."""

    def forward(self, x: int) -> int:
        """Return x.

        Raises:
            ValueError: If x is negative.
        """
        return x


class Silent:
    """A layer."""

    def forward(self, x: int) -> int:
        """Return x."""
        return x


def test_the_docstring_of_a_function_or_of_a_method_promises_errors() -> None:
    assert [promises_errors(owner) for owner in (silent, promising, Silent, Promising)] == [False, True, False, True]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("if x:\n    raise ValueError", True),
        ("if x:\n    y = 1\n    raise ValueError", True),
        ("if x:\n    raise ValueError\nelse:\n    y = 1", False),
        ("if x:\n    return 1", False),
        ("_check_shape(x)", True),
        ("_require(x)", True),
        ("check(x)", False),
        ("y = _check_shape(x)", False),
        ("raise ValueError", False),
    ],
)
def test_a_guard_only_refuses(statement: str, expected: bool) -> None:
    (node,) = ast.parse(statement).body
    assert is_guard(node) is expected


def test_lines_of_guards_are_counted_from_one() -> None:
    assert list(list_guard_lines(GUARDED)) == [2, 3, 4]


def test_without_a_promise_nothing_in_a_guard_is_changed() -> None:
    everything = {mutation.after for mutation in list_mutations(GUARDED)}
    rest = {mutation.after for mutation in list_mutations(GUARDED, guards=False)}
    assert {"n <= 1", "pass"} <= everything
    assert "n <= 1" not in rest
    assert "x / n" in rest
