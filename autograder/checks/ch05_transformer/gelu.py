"""The check of ``gelu``: the Gaussian error linear unit, exact and approximated."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import inputs_and_device
from tfcourse import layers


def exact(draw: Draw) -> Case:
    """Numbers on both sides of zero, some of them large."""
    a, b = draw.sizes(2, low=5)
    return Case({"x": 2 * draw.normal(a, b)})


def one_axis(draw: Draw) -> Case:
    """A single row of numbers."""
    (a,) = draw.sizes(1, low=20)
    return Case({"x": 2 * draw.normal(a)})


def approximated(draw: Draw) -> Case:
    """The form with tanh."""
    return exact(draw).with_arguments(approximate=True)


def more_numbers(draw: Draw, size: int) -> Case:
    """More of everything."""
    return Case({"x": draw.normal(4 * size, 3 * size)})


GELU = Exercise(
    reference=layers.gelu,
    rows=(
        rows.numbers(
            2.5, exact, gradients=False, title="The exact form: x times the normal distribution's probability."
        ),
        rows.numbers(1.25, approximated, name="approximation", gradients=False, title="The approximation with tanh."),
        rows.numbers(
            0.5,
            exact,
            approximated,
            one_axis,
            name="gradients",
            title="Gradients of both forms are right, and a single row of numbers works.",
        ),
        rows.precision(0.5, exact),
        inputs_and_device(0.5, exact),
        rows.no_loop(0.5, more_numbers, over="numbers or rows"),
    ),
    forbidden=(
        "gelu",
        "gelu_",
        "gelu_backward",
        "_linear_pointwise",
        "log_ndtr",
        "ndtr",
        "special_log_ndtr",
        "special_ndtr",
        "Normal",
    ),
    rule_case=(exact, approximated),
)
