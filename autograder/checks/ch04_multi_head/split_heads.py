"""The check of ``split_heads``: head h gets the h-th run of neighbouring columns."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import multihead


def columns(draw: Draw) -> Case:
    """Positions to split; the number of heads differs from their width."""
    b, t, h, dh = draw.sizes(4)
    return Case({"x": draw.normal(b, t, h * dh), "n_heads": h})


def other_columns(draw: Draw) -> Case:
    """Positions to split, of another width."""
    return columns(draw)


def many_columns(draw: Draw, size: int) -> Case:
    """More examples, positions and heads."""
    return Case({"x": draw.normal(size, size + 1, 4 * size), "n_heads": 2 * size})


def indivisible(draw: Draw) -> Case:
    """A width that cannot be cut into so many heads."""
    return Case({"x": draw.normal(2, 5, 10), "n_heads": 3})


SPLIT_HEADS = Exercise(
    reference=multihead.split_heads,
    rows=(
        rows.numbers(
            2,
            columns,
            other_columns,
            title="Head h gets the h-th run of neighbouring columns of every position.",
        ),
        rows.no_loop(0.5, many_columns, over="examples, positions or heads"),
        rows.errors(
            0.5, columns, indivisible, title="A width that cannot be divided by the number of heads is a ValueError."
        ),
    ),
    forbidden=("einops",),
    rule_case=columns,
)
