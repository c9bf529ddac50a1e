"""The check of ``quadratic``: logits bent along a parabola."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import share
from autograder.checks.combined_rows import also_asking, joined
from tfcourse import sampling


def plain(draw: Draw) -> Case:
    """A square alone."""
    return Case({"logits": draw.normal(*draw.sizes(2, low=3)), "factor": 0.6})


def of_three_axes(draw: Draw) -> Case:
    """A row for each position of each example, and another factor."""
    return Case({"logits": draw.normal(*draw.sizes(3)), "factor": 1.3})


def curved(draw: Draw) -> Case:
    """A cube beside the square."""
    return plain(draw).with_arguments(curve=2.2)


def cubic(draw: Draw) -> Case:
    """A cube alone."""
    return plain(draw).with_arguments(curve=3.0)


def holes(draw: Draw) -> Case:
    """Logits of which one of each row is excluded already."""
    logits = draw.normal(4, 5)
    logits[torch.arange(4), draw.integers(0, 5, 4)] = -torch.inf
    return Case({"logits": logits, "factor": 0.6})


def more(draw: Draw, size: int) -> Case:
    """More rows, of more tokens."""
    return Case({"logits": draw.normal(2 * size, 3 + size), "factor": 0.6})


def no_factor(draw: Draw) -> Case:
    """A factor of 0 would make all tokens equally probable."""
    return plain(draw).with_arguments(factor=0.0)


def too_curved(draw: Draw) -> Case:
    """A curve above 3 would turn the square round."""
    return plain(draw).with_arguments(curve=3.5)


def too_straight(draw: Draw) -> Case:
    """A curve below 1 would bend the far tokens upwards."""
    return plain(draw).with_arguments(curve=0.5)


def any_curve(draw: Draw) -> Case:
    """A small batch, any factor and any curve: 1 and 3 among them."""
    curve = (1.0, share(draw, 1.0, 3.0), 3.0)[int(draw.integers(0, 3))]
    logits = draw.normal(int(draw.integers(1, 4)), int(draw.integers(1, 7)))
    return Case({"logits": logits, "factor": share(draw, 0.05, 2.5), "curve": curve})


QUADRATIC = Exercise(
    reference=sampling.quadratic,
    rows=(
        rows.numbers(
            1.5,
            plain,
            plain,
            title="Logits below the largest fall by factor times their distance squared.",
            gradients=False,
        ),
        also_asking(
            rows.numbers(
                0.75,
                curved,
                cubic,
                name="curve",
                title="A curve above 1 replaces part of the quadratic term by a cubic term, in many random batches.",
                gradients=False,
            ),
            rows.many(0, any_curve, title=""),
        ),
        also_asking(
            rows.edge(
                0.5,
                holes,
                name="edges",
                title="Excluded tokens stay excluded, the dtype is kept, three axes work, and gradients are right.",
                gradients=False,
                dtypes=(torch.float64, torch.bfloat16),
            ),
            rows.numbers(0, plain, of_three_axes),
        ),
        joined(
            "manner",
            "Inputs are left as they were, nothing loops over rows or tokens, and a factor or a curve out of range is a ValueError.",
            0.25,
            rows.inputs_kept(1, plain),
            rows.no_loop(1, more, over="rows or tokens"),
            rows.errors(1, plain, no_factor, too_straight, too_curved, title=""),
        ),
    ),
)
