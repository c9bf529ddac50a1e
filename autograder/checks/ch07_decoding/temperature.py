"""The check of ``temperature``: sharper or flatter."""

from __future__ import annotations

import math

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import manners
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


def infinite(draw: Draw) -> Case:
    """An infinite temperature would make all logits 0, and NaN of those that are excluded."""
    return sharp(draw).with_arguments(t=math.inf)


TEMPERATURE = Exercise(
    reference=sampling.temperature,
    rows=(
        rows.numbers(2, sharp, flat, title="Logits are divided by temperatures below and above 1."),
        rows.edge(
            0.25,
            holes,
            name="edges",
            title="What was excluded stays so; float64 and half precision stay what they are.",
            gradients=False,
            dtypes=(torch.float64, torch.bfloat16),
        ),
        manners(0.5, sharp, more),
        rows.errors(
            0.25, sharp, zero, negative, infinite, title="A temperature of 0 or below, or infinite, is a ValueError."
        ),
    ),
)
