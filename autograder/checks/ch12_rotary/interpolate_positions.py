"""The check of ``interpolate_positions``: squeeze positions into the trained range."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import rotary


def whole(draw: Draw) -> Case:
    """Whole places."""
    return Case({"positions": torch.arange(9) + int(draw.integers(0, 5)), "scale": 0.3})


def real(draw: Draw) -> Case:
    """Positions of two texts, which are not integers."""
    return Case({"positions": 7 * draw.normal(2, 5).abs(), "scale": 0.7})


def double(draw: Draw) -> Case:
    """Places in double precision."""
    return Case({"positions": 100_000 * draw.normal(5, dtype=torch.float64).abs(), "scale": 0.3})


def short(draw: Draw) -> Case:
    """Places in half precision, whose products are not rounded to it."""
    return Case({"positions": (50 + 9 * draw.normal(5)).to(torch.bfloat16), "scale": 0.3})


def unchanged(draw: Draw) -> Case:
    """A scale of 1, which is legal."""
    return whole(draw).with_arguments(scale=1.0)


def above_one(draw: Draw) -> Case:
    """A scale that stretches."""
    return whole(draw).with_arguments(scale=1.5)


def zero(draw: Draw) -> Case:
    """A scale that leaves nothing."""
    return whole(draw).with_arguments(scale=0.0)


INTERPOLATE_POSITIONS = Exercise(
    reference=rotary.interpolate_positions,
    rows=(
        rows.numbers(1.5, whole, real, gradients=False, title="Positions are squeezed, and become real numbers."),
        rows.numbers(
            1,
            double,
            short,
            name="precision",
            gradients=False,
            title="Positions in float64 stay in it, and half precision becomes float32.",
        ),
        rows.errors(
            0.5, whole, unchanged, above_one, zero, title="A scale that is not above 0 and at most 1 is a ValueError."
        ),
    ),
)
