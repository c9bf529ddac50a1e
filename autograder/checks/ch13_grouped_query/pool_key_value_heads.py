"""The check of ``pool_key_value_heads``: few heads of many."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from tfcourse import llama


def _case(draw: Draw, old: int, new: int) -> Case:
    return Case({"weight": draw.normal(old * 4, 5), "n_old": old, "n_new": new})


def to_half(draw: Draw) -> Case:
    """Half as many."""
    return _case(draw, 4, 2)


def to_a_third(draw: Draw) -> Case:
    """A third as many."""
    return _case(draw, 6, 2)


def to_one(draw: Draw) -> Case:
    """A single head."""
    return _case(draw, 3, 1)


def uneven(draw: Draw) -> Case:
    """Heads that cannot be pooled evenly."""
    return _case(draw, 5, 2)


def as_many(draw: Draw) -> Case:
    """As many heads as before."""
    return _case(draw, 3, 3)


POOL_KEY_VALUE_HEADS = Exercise(
    reference=llama.pool_key_value_heads,
    rows=(
        rows.numbers(2, to_half, to_a_third, gradients=False, title="Each new head is the mean of neighbours."),
        rows.numbers(
            0.5, to_one, as_many, name="numbers", gradients=False, title="All heads may become one, and all may stay."
        ),
        rows.numbers(0.5, to_half, name="gradients", title="Gradients reach the weights."),
        rows.errors(
            0.5,
            to_half,
            uneven,
            title="Heads that cannot be pooled evenly are a ValueError.",
        ),
        kept_on_any_device(0.5, to_half),
    ),
)
