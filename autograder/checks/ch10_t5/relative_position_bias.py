"""The check of ``relative_position_bias``: a number for each head, query and key."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from tfcourse import t5

H = 3


def _case(draw: Draw, **options: int | bool) -> Case:
    return Case({"table": draw.normal(16, H), "T": 7, "S": 9, "bidirectional": True, **options})


def both_ways(draw: Draw) -> Case:
    """Keys behind and ahead; more keys than queries."""
    return _case(draw)


def backwards(draw: Draw) -> Case:
    """Keys behind."""
    return _case(draw, bidirectional=False, T=9, S=9)


def behind_a_cache(draw: Draw) -> Case:
    """Two queries behind others."""
    return _case(draw, bidirectional=False, T=2, S=9, start=7)


def later(draw: Draw) -> Case:
    """Queries in the middle of the keys, both ways."""
    return _case(draw, T=3, S=12, start=4 + int(draw.integers(0, 4)))


def near_and_far(draw: Draw) -> Case:
    """The largest distance decides."""
    return _case(draw, T=30, S=30, max_distance=20)


def usual_distance(draw: Draw) -> Case:
    """The largest distance that holds unless another is given, and so many buckets that one more or less would be seen."""
    return Case({"table": draw.normal(46, H), "T": 40, "S": 2, "bidirectional": False})


def equal_sizes(draw: Draw) -> Case:
    """As many heads as queries, keys and buckets."""
    return _case(draw, T=4, S=4).with_arguments(table=draw.normal(4, 4))


def one_head(draw: Draw) -> Case:
    """A table for one head."""
    return _case(draw).with_arguments(table=draw.normal(16, 1))


RELATIVE_POSITION_BIAS = Exercise(
    reference=t5.relative_position_bias,
    rows=(
        rows.numbers(
            1.75, backwards, both_ways, gradients=False, title="Each head has the number of its bucket, for every pair."
        ),
        rows.numbers(1, behind_a_cache, later, name="start", gradients=False, title="Queries may stand behind others."),
        rows.numbers(
            0.75,
            near_and_far,
            usual_distance,
            name="distance",
            gradients=False,
            title="The largest distance is 128, or another one.",
        ),
        rows.numbers(
            0.25,
            both_ways,
            equal_sizes,
            one_head,
            name="gradients",
            title="Gradients reach the table, of any number of heads.",
        ),
        kept_on_any_device(0.25, both_ways),
    ),
)
