"""The check of ``rotary_score``: the score of two turned rows, from their distance."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import rotary


def _case(draw: Draw, offset: torch.Tensor) -> Case:
    frequencies = torch.exp(-draw.normal(3).abs()).to(torch.float64)
    return Case({"q": draw.normal(4, 5, 6), "k": draw.normal(4, 5, 6), "offset": offset, "frequencies": frequencies})


def both_ways(draw: Draw) -> Case:
    """Keys behind and ahead."""
    return _case(draw, torch.arange(5) - 2 + int(draw.integers(0, 2)))


def real_numbers(draw: Draw) -> Case:
    """Offsets that are no whole numbers."""
    return _case(draw, 7 * draw.normal(4, 5))


def far(draw: Draw) -> Case:
    """Offsets beyond 100,000."""
    return _case(draw, 100_000 + int(draw.integers(0, 9000)) + torch.arange(5))


ROTARY_SCORE = Exercise(
    reference=rotary.rotary_score,
    rows=(
        rows.numbers(
            3.5,
            both_ways,
            real_numbers,
            without=("offset", "frequencies"),
            title="The score follows from the distance alone.",
        ),
        rows.edge(
            0.5,
            far,
            name="far offsets",
            gradients=False,
            dtypes=(torch.bfloat16, torch.float16),
            title="Far offsets are as exact as near ones, in every precision.",
        ),
        rows.inputs_kept(0.5, both_ways),
        rows.device(0.5, both_ways),
    ),
)
