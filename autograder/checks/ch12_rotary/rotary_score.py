"""The check of ``rotary_score``: the score of two turned rows, from their distance."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from autograder.checks.variants import changed
from tfcourse import rotary


def _case(draw: Draw, offset: torch.Tensor) -> Case:
    frequencies = torch.exp(-draw.normal(3).abs()).to(torch.float64)
    return Case({"q": draw.normal(4, 5, 6), "k": draw.normal(4, 5, 6), "offset": offset, "frequencies": frequencies})


def both_ways(draw: Draw) -> Case:
    """Keys behind and ahead."""
    return _case(draw, torch.arange(5) - 2 + int(draw.integers(0, 2)))


def real_numbers(draw: Draw) -> Case:
    """Offsets that are not integers."""
    return _case(draw, 7 * draw.normal(4, 5))


def far(draw: Draw) -> Case:
    """Offsets beyond 100,000."""
    return _case(draw, 100_000 + int(draw.integers(0, 9000)) + torch.arange(5))


def far_and_single(draw: Draw) -> Case:
    """Frequencies in float32, whose angles are still computed in float64."""
    case = far(draw)
    return case.with_arguments(frequencies=case.arguments["frequencies"].float())


def cancelling(draw: Draw) -> Case:
    """Pairs in bfloat16 that almost cancel each other: in half precision, the rounded products do not."""
    q, k = 10 * draw.normal(4, 5, 2), 10 * draw.normal(4, 5, 2)
    arguments = {"q": torch.cat([q, 3 * q, q / 9], dim=-1), "k": torch.cat([k, -k / 3, k / 9], dim=-1)}
    case = _case(draw, torch.arange(5) + int(draw.integers(0, 4)))
    frequencies = torch.tensor([0.5, 0.5, 0.25], dtype=torch.float64)
    return case.with_arguments(
        frequencies=frequencies, **{name: value.to(torch.bfloat16) for name, value in arguments.items()}
    )


def fewer(draw: Draw) -> Case:
    """One frequency for all pairs."""
    return changed(both_ways, frequencies=torch.tensor([0.5], dtype=torch.float64))(draw)


def more(draw: Draw) -> Case:
    """More frequencies than pairs."""
    return changed(both_ways, frequencies=torch.exp(-draw.normal(4).abs()).to(torch.float64))(draw)


def single_pair(draw: Draw) -> Case:
    """One row of two columns for each, and one offset."""
    arguments = {"q": draw.normal(2), "k": draw.normal(2), "offset": draw.integers(-9, 10)}
    return Case({**arguments, "frequencies": torch.exp(-draw.normal(1).abs()).to(torch.float64)})


ROTARY_SCORE = Exercise(
    reference=rotary.rotary_score,
    rows=(
        rows.numbers(2.5, both_ways, gradients=False, title="The score follows from the distance alone."),
        rows.numbers(
            0.75,
            both_ways,
            real_numbers,
            single_pair,
            without=("offset", "frequencies"),
            name="gradients",
            title="Gradients reach both rows; offsets need not be whole, and there may be a single pair.",
        ),
        rows.edge(
            0.75,
            far,
            far_and_single,
            cancelling,
            name="far offsets",
            gradients=False,
            dtypes=(torch.float64, torch.bfloat16, torch.float16),
            title="Far offsets are as exact as near ones, in every precision.",
        ),
        rows.errors(0.5, both_ways, fewer, more, title="Fewer or more frequencies than pairs are a ValueError."),
        kept_on_any_device(0.5, both_ways),
    ),
)
