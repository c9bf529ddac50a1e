"""What the checks of attention, of the block and of the model share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from autograder.checking.draw import Case, Draw
from autograder.checking.rows import Probe, Row
from autograder.checks.ch05_transformer.layer_cases import with_options


def drop_almost_surely(case: Case) -> Case:
    """Return the case in training, with a dropout of practically everything.

    A dropout of exactly 1 would divide by zero in code that writes dropout out: mask times x / (1 - p).
    """
    return replace(with_options(case, dropout=1 - 1e-9), training=True)


def past_learns(points: float, maker: Callable[[Draw], Case]) -> Row:
    """A gradient reaches the keys and values of the past. In double precision, so that nothing is rounded on the way."""

    def probes(draw: Draw) -> list[Probe]:
        case = draw.case(maker).to(torch.float64)
        return [Probe((case.request(),), "shapes"), Probe((case.request("gradients", ("past",)),), "matches")]

    return Row("gradients", "Gradients reach the past, and float64 stays float64.", points, probes)
