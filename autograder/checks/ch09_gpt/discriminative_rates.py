"""The check of ``discriminative_rates``: the lower, the slower."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import gpt


def groups(draw: Draw) -> Case:
    """Several groups."""
    return Case({"rate": 0.01 * int(draw.integers(1, 9)), "n_groups": 3 + int(draw.integers(0, 4))})


def another_factor(draw: Draw) -> Case:
    """Another factor."""
    return groups(draw).with_arguments(factor=1.5 + float(draw.integers(0, 9)) / 10)


def one_group(draw: Draw) -> Case:
    """A single group learns at the rate."""
    return groups(draw).with_arguments(n_groups=1)


def no_group(draw: Draw) -> Case:
    """No group."""
    return groups(draw).with_arguments(n_groups=0)


DISCRIMINATIVE_RATES = Exercise(
    reference=gpt.discriminative_rates,
    rows=(
        rows.numbers(2.25, groups, groups, gradients=False, title="Each group learns slower than the one above it."),
        rows.numbers(1, another_factor, name="factor", gradients=False, title="The factor may be another one."),
        rows.numbers(0.25, one_group, name="one", gradients=False, title="A single group learns at the rate itself."),
        rows.errors(0.5, groups, no_group, title="No group at all is a ValueError."),
    ),
)
