"""Share weights, single steps and padding among the checks of cells and their runs."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.rows import Maker, Row

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


def rows_beside_the_numbers(
    step: Maker, many_examples: Callable[[Draw, int], Case], other_weights: Maker, *others: Maker
) -> list[Row]:
    """Return the rows of every cell besides its numbers; ``others`` are further cases of errors."""
    return [
        rows.precision(0.5, step),
        rows.inputs_kept(0.5, step),
        rows.device(0.5, step),
        rows.no_loop(0.5, many_examples, over=EXAMPLES),
        rows.errors(0.5, step, other_weights, *others, title="Weights that do not fit the state are a ValueError."),
    ]
