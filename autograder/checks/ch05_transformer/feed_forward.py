"""The check of ``FeedForward``: up, through an activation, and down again, each position by itself."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import manners
from tfcourse import layers


def network(draw: Draw) -> Case:
    """A network with random weights and biases, and sequences for it."""
    b, t, d, f = draw.sizes(4, low=3)
    return Case(
        {"x": draw.normal(b, t, d)}, init={"d_model": d, "d_ff": f}, state=draw.weights(layers.FeedForward(d, f))
    )


def one_row(draw: Draw) -> Case:
    """A single row."""
    case = network(draw)
    return case.with_arguments(x=case.arguments["x"][0, 0])


def single_size(draw: Draw) -> Case:
    """As many examples as positions and columns: the shapes do not show which axis is which."""
    state = draw.weights(layers.FeedForward(4, 4))
    return Case({"x": draw.normal(4, 4, 4)}, init={"d_model": 4, "d_ff": 4}, state=state)


def with_gelu(draw: Draw) -> Case:
    """The same with GELU."""
    case = network(draw)
    return replace(case, init={**(case.init or {}), "activation": "gelu"})


def gentle(draw: Draw) -> Case:
    """Small weights, so that half precision stays near the right numbers in any order of additions."""
    case = network(draw)
    return replace(case, state={name: value / 2 for name, value in (case.state or {}).items()})


def larger(draw: Draw, size: int) -> Case:
    """More examples and positions."""
    case = network(draw)
    return case.with_arguments(x=draw.normal(2 * size, 3 * size, case.arguments["x"].shape[-1]))


def unknown_activation(draw: Draw) -> Case:
    """An unknown activation."""
    case = network(draw)
    return replace(case, init={**(case.init or {}), "activation": "tanh"})


FEED_FORWARD = Exercise(
    reference=layers.FeedForward,
    rows=(
        rows.numbers(2.75, network, gradients=False, title="Up, an activation, and down again, with both biases."),
        rows.numbers(
            1.5, with_gelu, name="gelu", gradients=False, title='With activation="gelu" it is the exact GELU.'
        ),
        rows.numbers(
            0.5,
            network,
            one_row,
            single_size,
            name="gradients",
            title="Gradients reach every weight, and a single row and equal widths work.",
        ),
        rows.precision(0.5, gentle),
        manners(0.75, (network,), larger, over="examples or positions"),
        rows.errors(0.5, network, unknown_activation, title="An activation that is not known is a ValueError."),
    ),
)
