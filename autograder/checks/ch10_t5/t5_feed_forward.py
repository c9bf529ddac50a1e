"""The check of ``T5FeedForward``: two maps with ReLU, or three with a gate."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import t5


def _network(draw: Draw, *, gated: bool) -> Case:
    b, t, d, f = draw.sizes(4, low=3)
    init: dict[str, int | bool] = {"d_model": d, "d_ff": f, **({"gated": True} if gated else {})}
    return Case({"x": draw.normal(b, t, d)}, init=init, state=draw.weights(t5.T5FeedForward(d, f, gated=gated)))


def simple(draw: Draw) -> Case:
    """The network of the paper."""
    return _network(draw, gated=False)


def one_row(draw: Draw) -> Case:
    """A single row."""
    case = simple(draw)
    return case.with_arguments(x=case.arguments["x"][0, 0])


def gated(draw: Draw) -> Case:
    """The network of version 1.1, with rows large enough to tell the two forms of GELU apart."""
    case = _network(draw, gated=True)
    return case.with_arguments(x=2 * case.arguments["x"])


def larger(draw: Draw, size: int) -> Case:
    """More examples and positions."""
    case = simple(draw)
    return case.with_arguments(x=draw.normal(2 * size, 3 * size, case.arguments["x"].shape[-1]))


def equal_sizes(draw: Draw) -> Case:
    """As many examples as positions and columns, and no wider in between."""
    init = {"d_model": 3, "d_ff": 3}
    return Case({"x": draw.normal(3, 3, 3)}, init=init, state=draw.weights(t5.T5FeedForward(3, 3)))


T5_FEED_FORWARD = Exercise(
    reference=t5.T5FeedForward,
    rows=(
        rows.numbers(1.75, simple, gradients=False, title="Up, ReLU, and down again, without biases."),
        rows.numbers(
            1.25,
            gated,
            name="gated",
            gradients=False,
            title="Gated, what goes up is multiplied by the GELU of the gate.",
        ),
        rows.numbers(
            0.5,
            simple,
            one_row,
            equal_sizes,
            name="gradients",
            title="Gradients reach the input and all weights; a single row, and equal sizes, work too.",
        ),
        rows.inputs_kept(0.25, simple),
        rows.no_loop(0.25, larger, over="examples or positions"),
    ),
)
