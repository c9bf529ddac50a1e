"""The check of ``stacked_forward``: LSTMs on top of each other."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch01_recurrent.cell_cases import EXAMPLES, four_weights, padding_behind
from autograder.checks.ch01_recurrent.pytorch_cells import RECURRENT_LAYERS
from tfcourse import recurrent


def _stack(draw: Draw, n_layers: int, *, same_width: bool = False) -> Case:
    t, e, d = draw.sizes(3)
    b = 6 + int(draw.integers(0, 2))  # never the number of layers, nor another size
    e = d if same_width else e
    layers = [four_weights(draw, e if layer == 0 else d, d) for layer in range(n_layers)]
    return Case({"x": draw.normal(b, t, e), "layers": layers})


def one_layer(draw: Draw) -> Case:
    """One layer."""
    return _stack(draw, 1)


def two_layers(draw: Draw) -> Case:
    """Two layers, and inputs of another width than the states."""
    return _stack(draw, 2)


def three_layers(draw: Draw) -> Case:
    """Three layers, and inputs as wide as the states: shapes do not show which layer reads what."""
    return _stack(draw, 3, same_width=True)


def single_example(draw: Draw) -> Case:
    """Two layers and a batch of one."""
    case = two_layers(draw)
    return case.with_arguments(x=case.arguments["x"][:1])


def padded(draw: Draw) -> Case:
    """Two layers, and padding behind the tokens."""
    case = _stack(draw, 2)
    return case.with_arguments(mask=padding_behind(draw, *case.arguments["x"].shape[:2]))


def many_examples(draw: Draw, size: int) -> Case:
    """More examples of the same length."""
    return Case({"x": draw.normal(2 * size, 4, 2), "layers": [four_weights(draw, 2, 3), four_weights(draw, 3, 3)]})


def no_layer(draw: Draw) -> Case:
    """No layer at all."""
    return Case({"x": draw.normal(2, 3, 4), "layers": []})


STACKED_FORWARD = Exercise(
    reference=recurrent.stacked_forward,
    rows=(
        rows.numbers(
            2.75,
            two_layers,
            gradients=False,
            title="Each layer reads the states of the one below; the top layer's states and all last ones are right.",
        ),
        rows.numbers(1.75, padded, name="mask", gradients=False, title="Padding changes nothing in any layer."),
        rows.edge(
            0.75,
            three_layers,
            one_layer,
            single_example,
            name="gradients",
            title="One layer and three work, gradients reach all of them, and float64 stays float64.",
        ),
        rows.device(0.25, padded),
        rows.no_loop(0.5, many_examples, over=EXAMPLES),
        rows.errors(0.5, one_layer, no_layer, title="No layer at all is a ValueError."),
    ),
    forbidden=RECURRENT_LAYERS,
    rule_case=(two_layers, padded),
)
