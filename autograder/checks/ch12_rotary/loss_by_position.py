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


def half(draw: Draw) -> Case:
    """Logits in half precision."""
    case = four(draw)
    return case.with_arguments(logits=case.arguments["logits"].to(torch.bfloat16))


def uneven(draw: Draw) -> Case:
    """Places that cannot be divided evenly."""
    return _case(draw, 4, 10)


LOSS_BY_POSITION = Exercise(
    reference=rotary.loss_by_position,
    rows=(
        rows.numbers(2, four, two, title="The mean surprise of each stretch is right."),
        rows.precision(0.5, four, title="Logits of every precision give a surprise in theirs."),
        rows.errors(0.5, four, uneven, title="Places that cannot be divided evenly are a ValueError."),
    ),
)
