"""Share cases among the checks of attention, of the block and of the model."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking.draw import Case
from autograder.checking.rows import Probe
from autograder.checks.ch05_transformer.layer_cases import with_options


def drop_almost_surely(case: Case) -> Case:
    """Return the case in training, with a dropout of practically everything.

    A dropout of exactly 1 would divide by zero in code that writes dropout out: mask times x / (1 - p).
    """
    return replace(with_options(case, dropout=1 - 1e-9), training=True)


def gradients_of_the_past(case: Case) -> list[Probe]:
    """Ask for the gradient of the keys and values of the past. In double precision, so that nothing is rounded on the way."""
    case = case.to(torch.float64)
    return [Probe((case.request(),), "shapes"), Probe((case.request("gradients", ("past",)),), "matches")]
