"""Share weights, single steps and padding among the checks of cells and their runs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.rows import Maker, Row
from autograder.checks.ch03_scaled_dot_product.attention_inputs import inputs_and_device

EXAMPLES = "the examples of the batch"


def weights_by_name(draw: Draw, gates: int, inputs: int, states: int) -> dict[str, Tensor]:
    """The four weights of a recurrent layer by name, with biases far from zero."""
    return {
        "weight_ih": draw.normal(gates * states, inputs, scale=0.6),
        "weight_hh": draw.normal(gates * states, states, scale=0.6),
        "bias_ih": draw.normal(gates * states, scale=0.6),
        "bias_hh": draw.normal(gates * states, scale=0.6),
    }


def four_weights(draw: Draw, inputs: int, states: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The four weights of an LSTM as a tuple."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights_by_name(draw, 4, inputs, states).values()
    return weight_ih, weight_hh, bias_ih, bias_hh


def padding_behind(draw: Draw, batch: int, length: int) -> Tensor:
    """A mask (B, T) with padding behind the tokens: one sequence is full, one is not, and none is empty."""
    lengths = draw.integers(1, length + 1, batch)
    lengths[0], lengths[1] = length, 1 + int(draw.integers(0, length - 1))
    return torch.arange(length) < lengths[draw.permutation(batch), None]


def one_step(draw: Draw, gates: int, sizes: tuple[int, ...] = (), *, other_gates: int = 0) -> Case:
    """One step of a cell with so many gates, or with the weights of a cell that has another number of them."""
    b, e, d = sizes or draw.sizes(3)
    arguments = {"x": draw.normal(b, e), "h": draw.normal(b, d), **weights_by_name(draw, other_gates or gates, e, d)}
    return Case({**arguments, "c": draw.normal(b, d)} if gates == 4 else arguments)


def single_size(gates: int) -> Maker:
    """Make one step with as many examples as inputs and states: the shapes do not show which matrix is transposed."""
    return lambda draw: one_step(draw, gates, (4, 4, 4))


def single_example(gates: int) -> Maker:
    """Make one step of a batch of one."""
    return lambda draw: one_step(draw, gates, (1, *draw.sizes(2)))


def rows_of_a_cell(
    points: tuple[float, float],
    gates: int,
    title: str,
    step: Maker,
    many_examples: Callable[[Draw, int], Case],
    *wrong: Maker,
) -> list[Row]:
    """Return the rows of a cell.

    Args:
        points: the points of the values and of the gradients.
        gates: how many blocks its weights have.
        title: what the row of values asks.
        step: the plain case.
        many_examples: makes a case with more examples.
        wrong: cases of errors.
    """
    return [
        rows.numbers(points[0], step, single_size(gates), gradients=False, title=title),
        rows.numbers(
            points[1],
            step,
            single_example(gates),
            name="gradients",
            title="The gradients with respect to all arguments are right, and so are those of a single example.",
        ),
        rows.precision(0.5, step),
        inputs_and_device(0.5, step),
        rows.no_loop(0.5, many_examples, over=EXAMPLES),
        rows.errors(0.5, step, *wrong, title="Weights that do not fit the state are a ValueError."),
    ]
