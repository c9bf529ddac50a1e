"""The check of ``matching_cost``: the cost of matching a prediction with an object."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import beyond


def _case(draw: Draw, n: int, o: int, kinds: int) -> Case:
    boxes = torch.cat([draw.normal(n, 2) * 0.2 + 0.5, 0.1 + draw.normal(n, 2).abs() * 0.3], dim=1)
    targets = torch.cat([draw.normal(o, 2) * 0.2 + 0.5, 0.1 + draw.normal(o, 2).abs() * 0.3], dim=1)
    logits = 2 * draw.normal(n, kinds + 1)
    return Case({"logits": logits, "boxes": boxes, "labels": draw.integers(0, kinds, o), "targets": targets})


def a_picture(draw: Draw) -> Case:
    """More predictions than objects."""
    n, o, kinds = draw.sizes(3, low=3)
    return _case(draw, n + 3, o, kinds)


def weighted(draw: Draw) -> Case:
    """Other weights for the three parts."""
    case = _case(draw, 6, 4, 5)
    return case.with_arguments(class_weight=3.0, l1_weight=0.5, iou_weight=7.0)


def certain(draw: Draw) -> Case:
    """A prediction that is sure that there is no object."""
    case = _case(draw, 5, 3, 4)
    logits = case.arguments["logits"].clone()
    logits[0, -1] = 200.0
    return case.with_arguments(logits=logits)


def more(draw: Draw, size: int) -> Case:
    """More predictions and objects."""
    return _case(draw, size + 1, size, 3)


def equal_sizes(draw: Draw) -> Case:
    """As many predictions as objects and numbers of a box."""
    return _case(draw, 4, 4, 3)


MATCHING_COST = Exercise(
    reference=beyond.matching_cost,
    rows=(
        rows.numbers(2.25, a_picture, gradients=False, title="Kind, distance and overlap are weighed, for every pair."),
        rows.numbers(
            1.25, weighted, name="weights", gradients=False, title="The three weights are those that are given."
        ),
        rows.numbers(
            0.75,
            a_picture,
            certain,
            equal_sizes,
            name="gradients",
            title="Gradients and all costs are finite and right, also for a probability of 0; all sizes may be equal.",
        ),
        rows.inputs_kept(0.25, a_picture),
        rows.no_loop(0.5, more, over="predictions or objects"),
    ),
)
