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


def single_size(draw: Draw) -> Case:
    """A batch of one, and as many heads as positions and columns: the shapes do not show which axis is which."""
    return Case({"x": draw.normal(1, 3, 9), "n_heads": 3})


def many_columns(draw: Draw, size: int) -> Case:
    """More examples, positions and heads."""
    return Case({"x": draw.normal(size, size + 1, 4 * size), "n_heads": 2 * size})


def one_head(draw: Draw) -> Case:
    """A single head, which gets all columns."""
    b, t, d = draw.sizes(3)
    return Case({"x": draw.normal(b, t, d), "n_heads": 1})


def indivisible(draw: Draw) -> Case:
    """A width that cannot be cut into so many heads."""
    return Case({"x": draw.normal(2, 5, 10), "n_heads": 3})


def of_axes(*shape: int) -> rows.Maker:
    """Make a case of other than three axes, whose last one could be cut."""

    def positions(draw: Draw) -> Case:
        return Case({"x": draw.normal(*shape), "n_heads": 2})

    return positions


SPLIT_HEADS = Exercise(
    reference=multihead.split_heads,
    rows=(
        rows.numbers(
            1.5,
            columns,
            gradients=False,
            title="Head h gets the h-th run of neighbouring columns of every position.",
        ),
        rows.numbers(
            0.5,
            columns,
            single_size,
            one_head,
            name="gradients",
            title="Gradients flow back, and as many heads as positions, a single head and a batch of one do no harm.",
        ),
        rows.no_loop(0.5, many_columns, over="examples, positions or heads"),
        rows.errors(
            0.5,
            columns,
            indivisible,
            of_axes(5, 4),
            of_axes(2, 3, 5, 4),
            title="A width that the number of heads does not divide, and other than three dimensions, are a ValueError.",
        ),
    ),
    forbidden=("einops",),
    rule_case=columns,
)
