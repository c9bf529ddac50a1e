"""The check of ``SelfAttention2d``: attention on a map of features, between convolutions."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from tfcourse import beyond


def _case(draw: Draw, channels: int, grid: tuple[int, int], **options: int) -> Case:
    init = {"channels": channels, **options}
    state = draw.weights(beyond.SelfAttention2d(**init))
    return Case({"x": 0.4 * draw.normal(2, channels, *grid)}, init=init, state=state)


def named_width(draw: Draw) -> Case:
    """Three numbers for queries, keys and values; a map that is not square."""
    return _case(draw, 5, (2, 4), inner=3)


def another_map(draw: Draw) -> Case:
    """Another map, as high as wide."""
    return _case(draw, 4, (3, 3), inner=2)


def own_width(draw: Draw) -> Case:
    """The width that follows from the channels, of which it is an eighth, rounded down."""
    return _case(draw, 23 + 8 * int(draw.integers(0, 2)), (3, 2))


def exact_width(draw: Draw) -> Case:
    """Channels that eight divides."""
    return _case(draw, 16 + 8 * int(draw.integers(0, 2)), (2, 3))


def few_channels(draw: Draw) -> Case:
    """Fewer than eight channels."""
    return _case(draw, 5, (3, 2))


def fresh(draw: Draw) -> Case:
    """As it is built, and on different maps."""
    return replace(_case(draw, 6, (3, 4), inner=2), state=None)


def more(draw: Draw, size: int) -> Case:
    """More examples and places."""
    case = _case(draw, 4, (size, size + 1), inner=2)
    return case.with_arguments(x=draw.normal(size, 4, size, size + 1))


def equal_sizes(draw: Draw) -> Case:
    """As many channels as rows and columns, and queries and keys as wide as the map."""
    return _case(draw, 3, (3, 3), inner=3)


SELF_ATTENTION_2D = Exercise(
    reference=beyond.SelfAttention2d,
    rows=(
        rows.numbers(
            3,
            named_width,
            another_map,
            gradients=False,
            title="Every position attends to all positions, and gamma times that is added.",
        ),
        rows.numbers(
            1.75,
            own_width,
            exact_width,
            few_channels,
            name="width",
            gradients=False,
            title="Without a width it is an eighth, rounded down, and at least 1.",
        ),
        rows.numbers(
            0.5,
            fresh,
            name="start",
            gradients=False,
            title="At the start nothing is added: the input comes out as it was.",
        ),
        rows.numbers(
            0.5,
            named_width,
            equal_sizes,
            name="gradients",
            title="Gradients reach all weights, gamma too; all sizes may be equal.",
        ),
        rows.precision(0.25, named_width, half=False),
        kept_on_any_device(0.5, named_width),
        rows.no_loop(0.5, more, over="examples or positions"),
    ),
    forbidden=ATTENTION,
    rule_case=(named_width,),
)
