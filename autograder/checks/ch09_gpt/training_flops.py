"""The check of ``training_flops``: six operations for each parameter and token."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import gpt


def small(draw: Draw) -> Case:
    """A model that a laptop trains."""
    return Case({"parameters": 1e5 + float(draw.integers(0, 90_000)), "tokens": 2e6 + float(draw.integers(0, 90_000))})


def large(draw: Draw) -> Case:
    """A model of hundreds of billions of parameters."""
    return Case({"parameters": (1 + float(draw.integers(0, 90)) / 90) * 1e11, "tokens": 3e11})


TRAINING_FLOPS = Exercise(
    reference=gpt.training_flops,
    rows=(
        rows.numbers(2, small, gradients=False, title="The operations that training a small model takes."),
        rows.numbers(1, large, name="large", gradients=False, title="Those of a very large one."),
    ),
)
