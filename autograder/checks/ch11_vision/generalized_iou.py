"""The check of ``generalized_iou``: how well boxes agree, even where they do not touch."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import beyond


def _boxes(draw: Draw, count: int) -> torch.Tensor:
    return torch.cat([draw.normal(count, 2) * 0.4 + 0.5, 0.2 + draw.normal(count, 2).abs() * 0.4], dim=1)


def some(draw: Draw) -> Case:
    """Boxes anywhere: some touch, some do not."""
    n, o = draw.sizes(2, low=5)
    return Case({"a": _boxes(draw, n), "b": _boxes(draw, o)})


def _overlapping(draw: Draw) -> Case:
    a = _boxes(draw, 4)
    return Case({"a": a, "b": a[:3] + 0.02 * draw.normal(3, 4)})


def far_apart(draw: Draw) -> Case:
    """Small boxes, none of which touches another."""
    places = torch.cartesian_prod(torch.arange(3.0), torch.arange(3.0))[draw.permutation(9)]
    sizes = 0.2 + 0.3 * draw.normal(9, 2).abs().clamp(max=1.5)
    boxes = torch.cat([places + 0.1 * draw.normal(9, 2).clamp(-1, 1), sizes], dim=1)
    return Case({"a": boxes[:5], "b": boxes[5:]})


def inside(draw: Draw) -> Case:
    """Boxes within boxes, and nearly equal ones."""
    case = _overlapping(draw)
    outer = case.arguments["a"]
    smaller = torch.cat([outer[:, :2], 0.5 * outer[:, 2:]], dim=1)
    return case.with_arguments(a=torch.cat([outer, smaller]))


def points(draw: Draw) -> Case:
    """Boxes without width or height, two of which are the same point."""
    a, b = _boxes(draw, 3), _boxes(draw, 2)
    a[0, 2:] = 0
    b[1] = a[0]
    b[0, :2] += 5
    a[2, 3] = 0
    return Case({"a": a, "b": b})


def more(draw: Draw, size: int) -> Case:
    """More boxes."""
    return Case({"a": _boxes(draw, size), "b": _boxes(draw, size + 1)})


def corners_only(draw: Draw) -> Case:
    """Boxes of three numbers."""
    return Case({"a": draw.normal(2, 3), "b": _boxes(draw, 2)})


GENERALIZED_IOU = Exercise(
    reference=beyond.generalized_iou,
    rows=(
        rows.numbers(2.5, some, title="Every pair of boxes gets its number; gradients reach both."),
        rows.numbers(1.5, far_apart, name="apart", title="Boxes that do not touch get the less, the farther they are."),
        rows.numbers(0.5, inside, name="inside", title="A box within another, and boxes that nearly agree."),
        rows.edge(
            0.5, points, name="points", gradients=False, title="A box without area makes no NaN: 0 / 0 counts as 0."
        ),
        rows.no_loop(0.5, more, over="boxes"),
        rows.errors(0.5, some, corners_only, title="Boxes without four numbers are a ValueError."),
    ),
)
