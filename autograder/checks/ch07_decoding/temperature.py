"""The check of ``temperature``: sharper or flatter."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import manners, share
from autograder.checks.combined_rows import also_asking, joined
from tfcourse import sampling


def sharp(draw: Draw) -> Case:
    """A temperature below 1."""
    return Case({"logits": draw.normal(*draw.sizes(2, low=3), scale=2.0), "t": 0.4})


def flat(draw: Draw) -> Case:
    """A temperature above 1, and a row for each position of each example."""
    return Case({"logits": draw.normal(*draw.sizes(3), scale=2.0), "t": 2.5})


def holes(draw: Draw) -> Case:
    """Logits of which one of each row is excluded already."""
    logits = draw.normal(4, 5)
    logits[torch.arange(4), draw.integers(0, 5, 4)] = -torch.inf
    return Case({"logits": logits, "t": 1.7})


def more(draw: Draw, size: int) -> Case:
    """More rows, of more tokens."""
    return Case({"logits": draw.normal(2 * size, 3 + size), "t": 0.7})


def zero(draw: Draw) -> Case:
    """A temperature of 0."""
    return sharp(draw).with_arguments(t=0.0)


def negative(draw: Draw) -> Case:
    """A temperature below 0 would make the least probable token the most probable one."""
    return sharp(draw).with_arguments(t=-0.5)


def warm(draw: Draw) -> Case:
    """A temperature above 1."""
    return sharp(draw).with_arguments(t=1.9)


def any_temperature(draw: Draw) -> Case:
    """A small batch at any temperature: 1 and very low ones among them."""
    t = (share(draw, 0.05, 0.99), 1.0, share(draw, 1.01, 6.0))[int(draw.integers(0, 3))]
    return Case({"logits": draw.normal(int(draw.integers(1, 4)), int(draw.integers(1, 7)), scale=2.0), "t": t})


TEMPERATURE = Exercise(
    reference=sampling.temperature,
    rows=(
        rows.numbers(1.5, sharp, warm, title="Logits are divided by temperatures below and above 1.", gradients=False),
        rows.many(0.75, any_temperature, title="Many small random batches at other temperatures are right as well."),
        also_asking(
            rows.edge(
                0.5,
                holes,
                name="edges",
                title="Excluded tokens stay excluded, the dtype is kept, three axes work, and gradients are right.",
                gradients=False,
                dtypes=(torch.float64, torch.bfloat16),
            ),
            rows.numbers(0, sharp, flat),
        ),
        joined(
            "manner",
            "Inputs are unchanged, nothing loops over rows or tokens, and a temperature out of range raises a ValueError.",
            0.25,
            manners(1, sharp, more),
            rows.errors(1, sharp, zero, negative, title=""),
        ),
    ),
)
