"""The check of ``rotary_embedding``: turn pairs of columns by their place."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import rotary


def _case(draw: Draw, positions: torch.Tensor, **options: bool) -> Case:
    frequencies = torch.exp(-2 * draw.normal(4).abs()).to(torch.float64)
    return Case(
        {"x": draw.normal(2, 3, positions.shape[-1], 8), "positions": positions, "frequencies": frequencies, **options}
    )


def in_order(draw: Draw) -> Case:
    """Places from some number on."""
    return _case(draw, torch.arange(5) + int(draw.integers(0, 9)))


def real_numbers(draw: Draw) -> Case:
    """Places of each example that are no whole numbers, in any order."""
    return _case(draw, 9 * draw.normal(2, 1, 5).abs())


def neighbours(draw: Draw) -> Case:
    """Neighbouring columns make a pair."""
    return _case(draw, torch.arange(5) + int(draw.integers(1, 9)), interleaved=True)


def partly(draw: Draw) -> Case:
    """Fewer frequencies than pairs."""
    case = in_order(draw)
    return case.with_arguments(frequencies=case.arguments["frequencies"][:3])


def far(draw: Draw) -> Case:
    """Places beyond 100,000."""
    return _case(draw, 100_000 + torch.arange(5) + int(draw.integers(0, 9000)))


def longer(draw: Draw, size: int) -> Case:
    """More examples, places and columns."""
    frequencies = torch.exp(-draw.normal(size).abs()).to(torch.float64)
    return Case(
        {"x": draw.normal(size, size + 1, 2 * size), "positions": torch.arange(size + 1), "frequencies": frequencies}
    )


ROTARY_EMBEDDING = Exercise(
    reference=rotary.rotary_embedding,
    rows=(
        rows.numbers(
            3.25,
            in_order,
            real_numbers,
            without=("frequencies", "positions"),
            title="Columns j and j + F turn by the angle of their place.",
        ),
        rows.numbers(
            2.25,
            neighbours,
            without=("frequencies",),
            name="interleaved",
            title="Neighbouring columns turn if asked for.",
        ),
        rows.numbers(1.25, partly, without=("frequencies",), name="partly", title="Columns behind stay as they are."),
        rows.edge(
            0.75,
            far,
            name="far places",
            gradients=False,
            dtypes=(torch.bfloat16, torch.float16),
            title="Places beyond 100,000 are as exact as near ones, in every precision.",
        ),
        rows.inputs_kept(0.5, in_order),
        rows.device(0.5, in_order),
        rows.no_loop(0.5, longer, over="examples, places or pairs"),
    ),
)
