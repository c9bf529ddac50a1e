"""Share sizes, tokens, segments and padding among the checks of BERT's parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.rows import Maker, Probe, Row

# Pairwise distinct, and the root of no width is a whole number. A text of five tokens is shorter than the longest one.
V, D, E, H, F, N = 11, 6, 5, 2, 8, 7
B, T = 3, 5
MODEL = {"vocab_size": V, "d_model": D, "n_heads": H, "n_layers": 2, "d_ff": F, "max_length": N}


def two_texts(draw: Draw) -> Tensor:
    """Which of two texts each token belongs to, (B, T): the second one begins at another place in each row."""
    begins = 1 + draw.permutation(T - 1)[:B]
    return (torch.arange(T) >= begins[:, None]).long()


def padding(draw: Draw) -> Tensor:
    """Boolean (B, T), True at real tokens: a full row and two that end earlier."""
    ends = torch.tensor([T, 2 + int(draw.integers(0, 2)), T - 1])
    return torch.arange(T) < ends[draw.permutation(B), None]


def encoder(draw: Draw, kind: Any, init: dict[str, Any]) -> Case:
    """A model with random weights and a batch of whole texts. No token has the number 0."""
    arguments = {"tokens": draw.integers(1, V, B, T)}
    return Case(arguments, init=init, state=draw.weights(kind(**init)))


def with_zeros(draw: Draw, case: Case) -> Case:
    """The same with the token 0 among the real ones: which tokens are padding, the mask says alone."""
    tokens = case.arguments["tokens"].clone()
    tokens[:, 1] = 0
    tokens[:, 0] = draw.integers(0, 2, B)
    return case.with_arguments(tokens=tokens)


def three_texts(draw: Draw, kind: Any, init: dict[str, Any]) -> Case:
    """A model that can tell three texts apart, and tokens of each."""
    return encoder(draw, kind, {**init, "segments": 3}).with_arguments(segments=draw.integers(0, 3, B, T))


def nobody_looks_at_padding(points: float, padded: Maker, *zeros: Maker) -> Row:
    """All numbers and gradients with a mask; values alone where the token 0 is real, whose row of the table may have no gradient."""
    title = "Nobody looks at padding: hidden and pooled states are right, and so are the gradients."
    row = rows.numbers(points, padded, name="mask", title=title)

    def probes(draw: Draw) -> Sequence[Probe]:
        return [*row.probes(draw), *(Probe((draw.case(maker).request(),), "matches") for maker in zeros)]

    return replace(row, probes=probes)


def no_loop_on_any_device(points: float, at_size: Callable[[Draw, int], Case], maker: Maker, *, over: str) -> Row:
    """Count operations and lines at two sizes, and run a case on another device."""
    loops, device = rows.no_loop(points, at_size, over=over), rows.device(points, maker)
    title = f"There is no Python loop over {over}, and it runs on the device of its inputs."
    return replace(loops, title=title, probes=lambda draw: [*loops.probes(draw), *device.probes(draw)])


def without_dropout(case: Case) -> Case:
    """The same in training, with a dropout of 0: nothing is dropped."""
    return replace(case, init={**(case.init or {}), "dropout": 0.0}, training=True)


def all_dropped(case: Case) -> Case:
    """The same in training mode with a dropout of 1: the remaining values show where it was applied."""
    return replace(case, init={**(case.init or {}), "dropout": 1.0}, training=True)


def hardly_dropped(case: Case) -> Case:
    """The same in training, in float64, with a dropout that drops practically nothing: its divisor still shows."""
    double = case.to(torch.float64)
    return replace(double, init={**(double.init or {}), "dropout": 1e-7}, training=True)


def longer(draw: Draw, case: Case) -> Case:
    """The same with a text of N + 1 tokens."""
    return case.with_arguments(tokens=draw.integers(1, V, B, N + 1))
