"""The check of ``generalized_iou``: how well boxes agree, even where they do not touch."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Probe
from autograder.checks.ch12_rotary.manners import merged
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


def small(draw: Draw) -> Case:
    """Boxes of a hundredth of the picture, some of which touch: their areas are small numbers, and no reason to add to them."""
    case = some(draw)
    return case.with_arguments(**{name: 0.01 * boxes for name, boxes in case.arguments.items()})


def tiny(draw: Draw) -> Case:
    """Boxes of less than a pixel, whose areas are near 1e-8."""
    case = some(draw)
    return case.with_arguments(**{name: 1e-4 * boxes for name, boxes in case.arguments.items()})


def in_double(draw: Draw) -> Case:
    """Boxes in double precision, with digits that single precision does not have."""
    case = some(draw)
    return Case({name: boxes.double() + 1e-9 * draw.normal(*boxes.shape) for name, boxes in case.arguments.items()})


def more(draw: Draw, size: int) -> Case:
    """More boxes."""
    return Case({"a": _boxes(draw, size), "b": _boxes(draw, size + 1)})


def _numbers(a: int, b: int) -> rows.Maker:
    def make(draw: Draw) -> Case:
        wide = {"a": torch.cat([_boxes(draw, 2)] * 2, dim=1), "b": torch.cat([_boxes(draw, 3)] * 2, dim=1)}
        return Case({"a": wide["a"][:, :a], "b": wide["b"][:, :b]})

    return make


_POINTS = rows.edge(
    0.5, points, name="points", gradients=False, dtypes=(), title="A box without area makes no NaN: 0 / 0 counts as 0."
)


def _about_points(draw: Draw) -> list[Probe]:
    """Ask for numbers, and for gradients that are finite, whatever they are."""
    return [*_POINTS.probes(draw), Probe((draw.case(points).request("gradients", ("a", "b")),), "finite")]


def anywhere(draw: Draw) -> Case:
    """One to three boxes on each side, on a grid that makes borders coincide, of any sides."""
    counts = draw.integers(1, 4, 2).tolist()
    a, b = (torch.cat([draw.integers(0, 5, n, 2) / 2, draw.integers(1, 6, n, 2) / 2], dim=1) for n in counts)
    return Case({"a": a, "b": b})


GENERALIZED_IOU = Exercise(
    reference=beyond.generalized_iou,
    rows=(
        rows.numbers(2.5, some, gradients=False, title="Every pair of boxes gets its number."),
        rows.numbers(
            1,
            far_apart,
            name="apart",
            gradients=False,
            title="Boxes that do not touch get the less, the farther they are.",
        ),
        rows.many(
            0.5,
            anywhere,
            count=40,
            title="Many pairs of boxes, within one another, across or apart, get their numbers.",
        ),
        rows.numbers(
            0.5, some, inside, name="gradients", title="Gradients reach both boxes, also where one is within another."
        ),
        merged(
            rows.edge(
                0.5,
                small,
                tiny,
                in_double,
                name="edges",
                dtypes=(),
                gradients=False,
                title="Boxes may be as small as you like, in float64, or without area: 0 / 0 counts as 0, and nothing is NaN.",
            ),
            replace(_POINTS, probes=_about_points),
        ),
        rows.no_loop(0.5, more, over="boxes"),
        rows.errors(
            0.5,
            some,
            _numbers(3, 4),
            _numbers(5, 4),
            _numbers(4, 3),
            _numbers(4, 5),
            title="Boxes without four numbers, in either list, are a ValueError.",
        ),
    ),
)
