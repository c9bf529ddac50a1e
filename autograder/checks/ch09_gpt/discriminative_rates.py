"""The check of ``discriminative_rates``: the lower, the slower."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.combined_rows import also_asking
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


def any_groups(draw: Draw) -> Case:
    """One to twelve groups, and any rate."""
    return Case({"rate": int(draw.integers(1, 200)) / 128, "n_groups": 1 + int(draw.integers(0, 12))})


def any_factor(draw: Draw) -> Case:
    """Any factor, 1 and less than 1 among them."""
    return any_groups(draw).with_arguments(factor=int(draw.integers(1, 17)) / 4)


DISCRIMINATIVE_RATES = Exercise(
    reference=gpt.discriminative_rates,
    rows=(
        rows.numbers(1.75, groups, groups, gradients=False, title="Each group learns slower than the one above it."),
        also_asking(
            rows.numbers(1, another_factor, name="factor", gradients=False, title="The factor may be another one."),
            rows.many(0, any_factor, count=32, title=""),
        ),
        also_asking(
            rows.many(
                0.75, any_groups, title="Any number of groups is right; a single group learns at the rate itself."
            ),
            rows.numbers(0, one_group, gradients=False),
        ),
        rows.errors(0.5, groups, no_group, title="No group at all is a ValueError."),
    ),
)
