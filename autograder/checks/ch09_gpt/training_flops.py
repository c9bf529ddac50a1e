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


def any_model(draw: Draw) -> Case:
    """Any numbers of parameters and tokens, as integers or not: one among them."""
    parameters, tokens = (10 ** int(draw.integers(0, 12)) * int(draw.integers(1, 10)) for _ in range(2))
    return Case({"parameters": float(parameters) if int(draw.integers(0, 2)) else parameters, "tokens": float(tokens)})


TRAINING_FLOPS = Exercise(
    reference=gpt.training_flops,
    rows=(
        rows.numbers(1.5, small, small, gradients=False, title="The operations that training a small model takes."),
        rows.many(1, any_model, title="Models of any size and any number of tokens are right as well."),
        rows.numbers(0.5, large, name="large", gradients=False, title="Those of a very large one."),
    ),
)
