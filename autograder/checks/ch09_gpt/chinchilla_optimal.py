"""The check of ``chinchilla_optimal``: the best size for a number of operations."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch09_gpt.scaling_cases import other_constants
from tfcourse import gpt


def a_budget(draw: Draw) -> Case:
    """Operations for a model of some billion parameters, with the constants of the corrected fit."""
    return Case({"flops": 1e21 * (1 + int(draw.integers(0, 90)))})


def a_small_budget(draw: Draw) -> Case:
    """Operations for a model of some million parameters."""
    return Case({"flops": 1e15 * (1 + int(draw.integers(0, 90)))})


def other_fit(draw: Draw) -> Case:
    """Other constants."""
    return a_budget(draw).with_arguments(constants=other_constants(draw))


def nothing(draw: Draw) -> Case:
    """No operations."""
    return a_budget(draw).with_arguments(flops=0.0)


def one_operation(draw: Draw) -> Case:
    """A single operation: little, and more than nothing."""
    return a_budget(draw).with_arguments(flops=1.0)


def less_than_nothing(draw: Draw) -> Case:
    """A negative number of operations."""
    return a_budget(draw).with_arguments(flops=-1e21)


CHINCHILLA_OPTIMAL = Exercise(
    reference=gpt.chinchilla_optimal,
    rows=(
        rows.part(
            2.5,
            a_budget,
            a_small_budget,
            output="output[0]",
            name="parameters",
            title="The number of parameters is right.",
        ),
        rows.part(
            2.25, a_budget, a_small_budget, output="output[1]", name="tokens", title="The number of tokens is right."
        ),
        rows.numbers(2, other_fit, name="constants", gradients=False, title="The constants may be others."),
        rows.inputs_kept(0.5, other_fit),
        rows.errors(
            0.75, one_operation, nothing, less_than_nothing, title="A budget of nothing, or less, is a ValueError."
        ),
    ),
)
