"""Share sizes, and cases with other options, among the checks of the two layers and of the Transformer."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking.draw import Case, Draw

# The root of D is no whole number, so that no factor can be taken for another one.
D, H, F = 6, 2, 8


def lengths(draw: Draw) -> tuple[int, int, int]:
    """Batch, target length and source length: pairwise distinct, and none is a width or the number of heads."""
    t, s = (5, 7) if bool(draw.integers(0, 2)) else (7, 5)
    return 3, t, s


def with_options(case: Case, **options: object) -> Case:
    """Return the case with other arguments of the constructor."""
    return replace(case, init={**(case.init or {}), **options})


def drop_everything(case: Case) -> Case:
    """Return the case in training mode with a dropout of 1: the remaining values show where it was applied."""
    return replace(with_options(case, dropout=1.0), training=True)


def drop_nothing(case: Case) -> Case:
    """Return the case with the same dropout, and no training: nothing may be dropped."""
    return with_options(case, dropout=1.0)


def hardly_drop(case: Case) -> Case:
    """Return the case in training, in float64, with a dropout that drops practically nothing: its divisor still shows."""
    return replace(with_options(case.to(torch.float64), dropout=1e-7), training=True)
