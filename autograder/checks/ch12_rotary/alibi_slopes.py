"""The check of ``alibi_slopes``: how fast each head forgets."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import rotary


def few(draw: Draw) -> Case:
    """Four heads in visible tests, two in hidden ones: recorded slopes start with the slopes for four heads, not for two."""
    return Case({"n_heads": 2 ** (3 - draw.unseen(1, 3))})


def many(draw: Draw) -> Case:
    """Sixteen to 2,048."""
    return Case({"n_heads": 2 ** draw.unseen(4, 12)})


def between(draw: Draw) -> Case:
    """Six or seven: more than four."""
    return Case({"n_heads": draw.unseen(6, 8)})


def dozen(draw: Draw) -> Case:
    """Ten to fourteen: more than eight."""
    return Case({"n_heads": draw.unseen(10, 15)})


def one(draw: Draw) -> Case:
    """One head, which is a power of two."""
    return Case({"n_heads": 1})


def none(draw: Draw) -> Case:
    """No head."""
    return Case({"n_heads": 0})


ALIBI_SLOPES = Exercise(
    reference=rotary.alibi_slopes,
    rows=(
        rows.numbers(2, few, many, gradients=False, title="Powers of two, few heads or many, get their slopes."),
        rows.numbers(0.75, between, name="six", gradients=False, title="Six or seven heads get their slopes, too."),
        rows.numbers(
            0.5, dozen, name="dozen", gradients=False, title="So do ten to fourteen heads, which are more than eight."
        ),
        rows.errors(0.75, few, one, none, title="No head at all is a ValueError; one head is not."),
    ),
)
