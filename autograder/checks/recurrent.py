"""What checks of chapter 01 that are declared in the old style still share; the last of them to be converted takes it along."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeAlias

import torch
from torch import Tensor

from autograder.checking.draw import Case, Draw
from autograder.checks.ch01_recurrent.cell_cases import EXAMPLES as EXAMPLES
from autograder.checks.ch01_recurrent.cell_cases import padding_behind as padding_behind
from autograder.checks.ch01_recurrent.cell_cases import weights_by_name
from autograder.checks.ch01_recurrent.pytorch_cells import RECURRENT_LAYERS as READY_MADE
from autograder.checks.ch01_recurrent.rnn_forward import from_state as run_from_state
from autograder.checks.ch01_recurrent.rnn_forward import from_zeros as run_from_zeros

__all__ = ["READY_MADE", "run_from_state", "run_from_zeros"]

CHAPTER = "01_recurrent"

Four: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]


def run_of_many(draw: Draw, factor: int) -> Case:
    """More examples of the same length."""
    return Case(
        {"x": draw.normal(3 * factor, 4, 2), **weights_by_name(draw, 1, 2, 5), "h_0": draw.normal(3 * factor, 5)}
    )


def with_four_weights(wrong: Callable[..., Any]) -> Callable[..., Any]:
    """Let a mistake that takes the four weights as one argument be asked like the exercise, which takes them one by one."""

    @wraps(wrong)
    def asked(**arguments: Any) -> Any:
        weights = tuple(arguments.pop(name) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
        return wrong(**arguments, weights=weights)

    return asked


def tanh_steps(inputs: Sequence[Tensor], h: Tensor, weights: Four) -> list[Tensor]:
    """The state after every step."""
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    states = []
    for x_t in inputs:
        h = torch.tanh(x_t @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)
        states.append(h)
    return states


def first_state(x: Tensor, weight_hh: Tensor, h_0: Tensor | None) -> Tensor:
    """Return the state before the first step: the one that is given, or zero."""
    return x.new_zeros(len(x), weight_hh.shape[1]) if h_0 is None else h_0
