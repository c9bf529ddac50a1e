"""The check of ``ntk_theta``: another base for longer texts."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.variants import changed
from tfcourse import rotary


def usual(draw: Draw) -> Case:
    """A usual base."""
    return Case({"theta": 10_000.0, "factor": 1.0 * draw.unseen(2, 20), "d_head": 64})


def shorter(draw: Draw) -> Case:
    """A text that becomes shorter."""
    return usual(draw).with_arguments(factor=0.5)


def two_columns(draw: Draw) -> Case:
    """A head with a single pair."""
    return usual(draw).with_arguments(d_head=2)


def anything(draw: Draw) -> Case:
    """Any base, factor and width."""
    theta = 500.0 * (1 + int(draw.integers(0, 1000)))
    factor = 1.0 + 0.25 * int(draw.integers(0, 61))
    return Case({"theta": theta, "factor": factor, "d_head": 4 + 2 * int(draw.integers(0, 63))})


NTK_THETA = Exercise(
    reference=rotary.ntk_theta,
    rows=(
        rows.numbers(1.5, usual, title="The new base slows the slowest pair by the factor."),
        rows.many(1, anything, title="So it does for many bases, factors and widths."),
        rows.errors(
            0.5,
            usual,
            changed(usual, factor=1.0),
            changed(usual, d_head=4),
            shorter,
            two_columns,
            changed(usual, d_head=7),
            title="A factor below 1, a head of one pair and an odd width are a ValueError.",
        ),
    ),
)
