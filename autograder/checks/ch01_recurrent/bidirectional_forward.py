"""The check of ``bidirectional_forward``: a sequence read from both ends."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch01_recurrent.cell_cases import EXAMPLES, four_weights, padding_behind
from autograder.checks.ch01_recurrent.pytorch_cells import RECURRENT_LAYERS
from tfcourse import recurrent


def _both_ways(draw: Draw, b: int, t: int, e: int, d: int) -> Case:
    weights = {name: four_weights(draw, e, d) for name in ("forward_weights", "backward_weights")}
    return Case({"x": draw.normal(b, t, e), **weights})


def plain(draw: Draw) -> Case:
    """Sequences to read from both sides."""
    b, t, e, d = draw.sizes(4)
    return _both_ways(draw, b, t, e, d)


def single_size(draw: Draw) -> Case:
    """As many examples as steps, inputs and states: the shapes do not show which axis is reversed."""
    return _both_ways(draw, 3, 3, 3, 3)


def single_example(draw: Draw) -> Case:
    """A batch of one."""
    return _both_ways(draw, 1, *draw.sizes(3))


def padded(draw: Draw) -> Case:
    """Sequences of different lengths, with padding behind them."""
    case = plain(draw)
    return case.with_arguments(mask=padding_behind(draw, *case.arguments["x"].shape[:2]))


def many_examples(draw: Draw, size: int) -> Case:
    """More examples of the same length."""
    return _both_ways(draw, 2 * size, 4, 2, 3)


BIDIRECTIONAL_FORWARD = Exercise(
    reference=recurrent.bidirectional_forward,
    rows=(
        rows.numbers(
            3,
            plain,
            single_size,
            gradients=False,
            title="Both states of every token stand side by side, and the last ones are right.",
        ),
        rows.numbers(
            2,
            padded,
            name="mask",
            gradients=False,
            title="Padding changes nothing, whichever end is read first.",
        ),
        rows.edge(
            0.5,
            plain,
            single_example,
            name="gradients",
            title="Gradients reach the weights of both directions, a single example works, and float64 stays float64.",
        ),
        rows.device(0.5, padded),
        rows.no_loop(0.5, many_examples, over=EXAMPLES),
    ),
    forbidden=RECURRENT_LAYERS,
    rule_case=(plain, padded),
)
