"""The check of ``sinusoidal_positions``: a row of sines and cosines for every position."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.variants import changed
from tfcourse import positions


def table(draw: Draw) -> Case:
    """A table of positions: at least three pairs of columns, so that a wavelength in the middle shows."""
    length, pairs = draw.sizes(2, low=3)
    return Case({"length": length, "d_model": 2 * pairs})


def far(draw: Draw) -> Case:
    """A table so long that the angles of its last rows are large."""
    return Case({"length": draw.unseen(40, 60), "d_model": 6})


def elsewhere(draw: Draw) -> Case:
    """A table that is wanted on another device."""
    return table(draw).with_arguments(device="meta")


def growing(draw: Draw, size: int) -> Case:
    """More positions, and more columns."""
    return Case({"length": 6 * size, "d_model": 4 * size})


def odd_width(draw: Draw) -> Case:
    """A sine without its cosine."""
    return Case({"length": 4, "d_model": 7})


SINUSOIDAL_POSITIONS = Exercise(
    reference=positions.sinusoidal_positions,
    rows=(
        rows.numbers(
            2.75,
            table,
            far,
            gradients=False,
            title="Sines in the even columns, their cosines beside them, at the right speeds; far positions, too.",
        ),
        rows.edge(0.25, changed(table, length=0), name="empty", title="A table of no positions is empty.", dtypes=()),
        rows.device(0.5, elsewhere),
        rows.no_loop(0.5, growing, over="positions or columns"),
        rows.errors(
            0.5,
            table,
            odd_width,
            changed(table, length=-1),
            changed(table, d_model=-2),
            title="A width that is odd, and a size that is negative, are a ValueError.",
        ),
    ),
)
