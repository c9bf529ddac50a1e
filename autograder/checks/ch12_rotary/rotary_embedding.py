"""The check of ``rotary_embedding``: turn pairs of columns by their place."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch12_rotary.manners import kept_on_any_device, merged
from autograder.checks.variants import changed
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
    """Positions of each example, which are not integers, in any order."""
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


def far_and_single(draw: Draw) -> Case:
    """Frequencies in float32, whose angles are still computed in float64."""
    case = far(draw)
    return case.with_arguments(frequencies=case.arguments["frequencies"].float())


def cancelling(draw: Draw) -> Case:
    """Pairs in bfloat16 that turn onto an axis: in half precision, the rounded products do not cancel."""
    positions, frequencies = torch.arange(5) + int(draw.integers(1, 9)), 0.5 ** torch.arange(1, 5)
    angles = positions[:, None] * frequencies
    radius = 100 + 20 * draw.normal(2, 3, 5, 4)
    x = torch.cat([radius * angles.sin(), radius * angles.cos()], dim=-1).to(torch.bfloat16)
    return Case({"x": x, "positions": positions, "frequencies": frequencies.to(torch.float64)})


def too_many(draw: Draw) -> Case:
    """More frequencies than pairs."""
    return changed(in_order, frequencies=torch.exp(-draw.normal(5).abs()).to(torch.float64))(draw)


def longer(draw: Draw, size: int) -> Case:
    """More examples, places and columns."""
    frequencies = torch.exp(-draw.normal(size).abs()).to(torch.float64)
    return Case(
        {"x": draw.normal(size, size + 1, 2 * size), "positions": torch.arange(size + 1), "frequencies": frequencies}
    )


def equal_sizes(draw: Draw) -> Case:
    """No axis of examples, and as many places as columns."""
    frequencies = torch.exp(-draw.normal(2).abs()).to(torch.float64)
    return Case({"x": draw.normal(4, 4), "positions": torch.arange(4) + 3, "frequencies": frequencies})


ROTARY_EMBEDDING = Exercise(
    reference=rotary.rotary_embedding,
    rows=(
        rows.numbers(3.75, in_order, gradients=False, title="Columns j and j + F turn by the angle of their position."),
        rows.numbers(
            1.75, neighbours, name="interleaved", gradients=False, title="Neighbouring columns turn if asked for."
        ),
        rows.numbers(
            1.25,
            partly,
            name="partly",
            gradients=False,
            title="With few frequencies, the first columns turn among themselves and the others stay.",
        ),
        merged(
            rows.edge(
                0.75,
                far,
                far_and_single,
                cancelling,
                name="edges",
                gradients=False,
                dtypes=(torch.float64, torch.bfloat16, torch.float16),
                title="Positions beyond 100,000, and those that are no whole numbers, are exact; gradients reach the rows.",
            ),
            rows.numbers(0, in_order, real_numbers, equal_sizes, without=("frequencies", "positions")),
        ),
        rows.errors(0.5, in_order, partly, too_many, title="More frequencies than pairs of columns are a ValueError."),
        kept_on_any_device(0.5, in_order),
        rows.no_loop(0.5, longer, over="examples, positions or pairs"),
    ),
)
