"""The check of ``scale_frequencies_llama3``: stretch the slow pairs, leave the fast ones."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import rotary


def _frequencies(draw: Draw, theta: float) -> torch.Tensor:
    """Frequencies from fast to slow, not quite those of any model."""
    return rotary.rotary_frequencies(64, theta * (1 + 0.1 * int(draw.integers(0, 9))))


def usual(draw: Draw) -> Case:
    """Those of Llama 3.1, or nearly."""
    return Case({"frequencies": _frequencies(draw, 400_000.0)})


def others(draw: Draw) -> Case:
    """Another base."""
    return Case({"frequencies": _frequencies(draw, 30_000.0)})


def factor(draw: Draw) -> Case:
    """Another factor."""
    return usual(draw).with_arguments(factor=32.0)


def bounds(draw: Draw) -> Case:
    """Other bounds of the ramp."""
    return usual(draw).with_arguments(low=2.0, high=16.0)


def length(draw: Draw) -> Case:
    """Another trained length."""
    return usual(draw).with_arguments(original_length=512)


SCALE_FREQUENCIES_LLAMA3 = Exercise(
    reference=rotary.scale_frequencies_llama3,
    rows=(
        rows.numbers(
            3,
            usual,
            others,
            gradients=False,
            title="Fast pairs stay, slow ones are divided, those between are blended.",
        ),
        rows.numbers(
            2,
            factor,
            bounds,
            length,
            name="options",
            gradients=False,
            title="Factor, bounds and trained length may be others.",
        ),
        rows.inputs_kept(0.5, usual),
        rows.device(0.5, usual),
    ),
)
