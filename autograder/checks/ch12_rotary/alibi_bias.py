"""The check of ``alibi_bias``: the bias of the scores by distance."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from tfcourse import rotary


def _case(draw: Draw, T: int, S: int, **options: int) -> Case:
    return Case({"slopes": 2.0 ** -draw.normal(3).abs(), "T": T, "S": S, **options})


def square(draw: Draw) -> Case:
    """As many keys as queries."""
    return _case(draw, 5, 5)


def more_keys(draw: Draw) -> Case:
    """More keys than queries."""
    return _case(draw, 4, 7)


def behind_a_cache(draw: Draw) -> Case:
    """Two queries behind others."""
    return _case(draw, 2, 9, start=7)


def in_the_middle(draw: Draw) -> Case:
    """Queries in the middle of the keys."""
    return _case(draw, 3, 11, start=int(draw.integers(2, 7)))


def equal_sizes(draw: Draw) -> Case:
    """As many heads as queries and keys."""
    return _case(draw, 3, 3)


def one_head(draw: Draw) -> Case:
    """One head and one query."""
    return _case(draw, 1, 4).with_arguments(slopes=2.0 ** -draw.normal(1).abs())


ALIBI_BIAS = Exercise(
    reference=rotary.alibi_bias,
    rows=(
        rows.numbers(
            1.75, square, more_keys, gradients=False, title="Each head loses its slope with every position of distance."
        ),
        rows.numbers(
            1, behind_a_cache, in_the_middle, name="start", gradients=False, title="Queries may stand behind others."
        ),
        rows.numbers(
            0.25,
            square,
            equal_sizes,
            one_head,
            name="gradients",
            title="Gradients reach the slopes, of one head or of as many as there are keys.",
        ),
        rows.precision(0.5, square),
        kept_on_any_device(0.5, square),
    ),
)
