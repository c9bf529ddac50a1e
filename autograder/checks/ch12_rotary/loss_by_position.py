"""The check of ``loss_by_position``: where in a text a model is surprised."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import rotary


def _case(draw: Draw, stretches: int, length: int) -> Case:
    return Case({"logits": 2 * draw.normal(3, length, 5), "targets": draw.integers(0, 5, 3, length), "bins": stretches})


def four(draw: Draw) -> Case:
    """Four stretches of three places."""
    return _case(draw, 4, 12)


def two(draw: Draw) -> Case:
    """Two stretches of five places."""
    return _case(draw, 2, 10)


def one(draw: Draw) -> Case:
    """The whole text is one stretch."""
    return _case(draw, 1, 6)


def enormous(draw: Draw) -> Case:
    """One surprise in each stretch is too large for float16, and their mean is not."""
    targets = draw.integers(0, 5, 1, 6)
    favourites = torch.where(torch.arange(6) % 3 == 1, (targets + 1) % 5, targets)
    logits = 35_000.0 * (2 * torch.nn.functional.one_hot(favourites, 5) - 1)
    return Case({"logits": logits, "targets": targets, "bins": 2})


def uneven(draw: Draw) -> Case:
    """Places that cannot be divided evenly."""
    return _case(draw, 4, 10)


def one_text(draw: Draw) -> Case:
    """A single text, in one stretch."""
    return Case({"logits": draw.normal(1, 4, 3), "targets": draw.integers(0, 3, 1, 4), "bins": 1})


def equal_sizes(draw: Draw) -> Case:
    """As many texts as places, stretches and tokens."""
    return Case({"logits": 2 * draw.normal(4, 4, 4), "targets": draw.integers(0, 4, 4, 4), "bins": 4})


LOSS_BY_POSITION = Exercise(
    reference=rotary.loss_by_position,
    rows=(
        rows.numbers(1.5, four, two, gradients=False, title="The mean loss of each segment is right."),
        rows.numbers(
            0.5,
            four,
            one_text,
            equal_sizes,
            name="gradients",
            title="Gradients reach the logits; one text may be one segment, and all sizes may be equal.",
        ),
        rows.precision(0.5, four, enormous, title="Logits of every precision give a loss in theirs."),
        rows.errors(0.5, four, one, uneven, title="Positions that cannot be divided evenly are a ValueError."),
    ),
)
