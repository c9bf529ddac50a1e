"""The check of ``scale_frequencies_llama3``: stretch the slow pairs, leave the fast ones."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from tfcourse import rotary


def _frequencies(draw: Draw, theta: float) -> torch.Tensor:
    """Frequencies from fast to slow, slightly different from any model's."""
    return rotary.rotary_frequencies(64, theta * (1 + 0.1 * int(draw.integers(0, 9))))


def usual(draw: Draw) -> Case:
    """Approximately the frequencies of Llama 3.1."""
    return Case({"frequencies": _frequencies(draw, 400_000.0)})


def factor(draw: Draw) -> Case:
    """Another factor."""
    return usual(draw).with_arguments(factor=32.0)


def bounds(draw: Draw) -> Case:
    """Other bounds of the ramp."""
    return usual(draw).with_arguments(low=2.0, high=16.0)


def length(draw: Draw) -> Case:
    """Another trained length."""
    return usual(draw).with_arguments(original_length=512)


def anything(draw: Draw) -> Case:
    """A few frequencies in any order, most of which turn between once and a hundred times in the trained length."""
    return Case({"frequencies": 10.0 ** (-2 - draw.normal(4, dtype=torch.float64).abs() * 1.2)})


SCALE_FREQUENCIES_LLAMA3 = Exercise(
    reference=rotary.scale_frequencies_llama3,
    rows=(
        rows.numbers(
            2.75,
            usual,
            gradients=False,
            title="Fast pairs stay, slow ones are divided, those between are blended.",
        ),
        rows.numbers(
            1.75,
            factor,
            bounds,
            length,
            name="options",
            gradients=False,
            title="Factor, bounds and trained length may be others.",
        ),
        rows.many(
            0.75,
            anything,
            count=40,
            title="Frequencies of many bases and widths, in any order, are scaled as they should be.",
        ),
        kept_on_any_device(0.75, usual),
    ),
)
