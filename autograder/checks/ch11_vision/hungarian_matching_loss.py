"""The check of ``hungarian_matching_loss``: the loss of a detector that says a set."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from tfcourse import beyond


def _case(draw: Draw, n: int, objects: tuple[int, ...], kinds: int = 4) -> Case:
    """Every object is a slightly moved prediction, far from all others, and their indices differ."""
    labels = [draw.integers(0, kinds, o) for o in objects]
    places = 0.4 * torch.cartesian_prod(torch.arange(3.0), torch.arange(3.0))
    sizes = 0.2 + 0.1 * draw.normal(len(objects), n, 2).abs().clamp(max=1.5)
    boxes = torch.cat([torch.stack([places[draw.permutation(9)[:n]] for _ in objects]), sizes], dim=2)
    targets = [boxes[i, draw.permutation(n)[:o]] + 0.02 * draw.normal(o, 4) for i, o in enumerate(objects)]
    return Case(
        {"logits": draw.normal(len(objects), n, kinds + 1), "boxes": boxes, "labels": labels, "targets": targets}
    )


def _greedy(cost: Tensor) -> list[int]:
    """Each object takes the cheapest prediction that is left."""
    remaining, chosen = cost.clone(), []
    for column in range(cost.shape[1]):
        chosen.append(int(remaining[:, column].argmin()))
        remaining[chosen[-1]] = torch.inf
    return chosen


def _is_telling(picture: tuple[Tensor, Tensor, Tensor, Tensor], weights: dict[str, float]) -> bool:
    """Return whether each part of the cost, and the weights, change the matching, and greedy matching gives the same one."""
    cost_with = partial(beyond.matching_cost, *picture)
    cost = cost_with(**weights)
    best = beyond.assign(cost).tolist()
    parts: list[dict[str, float]] = [{**weights, name: 0.0} for name in ("class_weight", "l1_weight", "iou_weight")]
    others = [*parts, {}] if weights else parts
    matchings = [beyond.assign(cost_with(**other)).tolist() for other in others]
    # What is decided by less than rounding errors is not asked.
    clear = all(
        float(cost[other, range(len(best))].sum() - cost[best, range(len(best))].sum()) > 0.02 for other in matchings
    )
    return clear and best not in matchings and _greedy(cost) == best


def _telling(draw: Draw, n: int, objects: tuple[int, ...], kinds: int = 4, **weights: float) -> Case:
    """Several predictions are near to every object: which of them is its own depends on kind, distance and overlap."""
    pictures: list[tuple[Tensor, Tensor, Tensor, Tensor]] = []
    while len(pictures) < len(objects):
        o = objects[len(pictures)]
        targets = torch.cat([0.3 + 0.4 * draw.normal(o, 2).sigmoid(), 0.1 + 0.3 * draw.normal(o, 2).sigmoid()], dim=1)
        near = targets[draw.integers(0, o, n)] + 0.08 * draw.normal(n, 4)
        boxes = torch.cat([near[:, :2], near[:, 2:].clamp(min=0.05)], dim=1)
        picture = (2 * draw.normal(n, kinds + 1), boxes, draw.integers(0, kinds, o), targets)
        if _is_telling(picture, weights):
            pictures.append(picture)
    logits, boxes_of_all, labels, targets_of_all = zip(*pictures, strict=True)
    arguments = {"logits": torch.stack(logits), "boxes": torch.stack(boxes_of_all)}
    return Case({**arguments, "labels": list(labels), "targets": list(targets_of_all), **weights})


def two_pictures(draw: Draw) -> Case:
    """Two pictures with different numbers of objects."""
    return _telling(draw, 7, (3, 4))


def another_batch(draw: Draw) -> Case:
    """Three pictures, and more predictions."""
    return _telling(draw, 9, (2, 5, 3), kinds=3)


def weighted(draw: Draw) -> Case:
    """Other weights."""
    case = _telling(draw, 6, (3, 2), l1_weight=1.5, iou_weight=4.0)
    return case.with_arguments(no_object_weight=0.35)


def contested(draw: Draw) -> Case:
    """Both objects are nearest to the same prediction: the cheapest match for the first is not the cheapest for both."""
    case = _case(draw, 3, (2,), kinds=2)
    nudge = 0.004 * draw.normal(3, 4)
    boxes = torch.tensor([[0.5, 0.5, 0.2, 0.2], [0.62, 0.5, 0.2, 0.2], [0.2, 0.9, 0.3, 0.1]]) + nudge
    targets = torch.tensor([[0.54, 0.5, 0.2, 0.2], [0.4, 0.5, 0.2, 0.2]])
    # “No object” is equally unlikely for all, so that the boxes decide, and what is unmatched still counts in the loss.
    logits = 0.02 * draw.normal(1, 3, 3) - torch.tensor([0.0, 0.0, 1.5])
    return case.with_arguments(logits=logits, boxes=boxes[None], targets=[targets])


def one_empty(draw: Draw) -> Case:
    """A picture without an object beside one with three."""
    return _case(draw, 5, (3, 0))


def one_object(draw: Draw) -> Case:
    """A single object on two pictures."""
    return _case(draw, 5, (0, 1))


def all_empty(draw: Draw) -> Case:
    """Nothing is on any picture."""
    return _case(draw, 5, (0, 0))


HUNGARIAN_MATCHING_LOSS = Exercise(
    reference=beyond.hungarian_matching_loss,
    rows=(
        rows.numbers(
            4.5, two_pictures, another_batch, gradients=False, title="Matched at the least cost, then compared."
        ),
        rows.numbers(2.75, weighted, name="weights", gradients=False, title="The weights are those that are given."),
        rows.numbers(
            1.75,
            contested,
            name="contested",
            gradients=False,
            title="The cheapest assignment is that of all objects together.",
        ),
        rows.numbers(
            0.75,
            one_empty,
            one_object,
            all_empty,
            name="empty",
            gradients=False,
            title="Images without objects teach “no object”.",
        ),
        rows.numbers(0.5, two_pictures, name="gradients", title="Gradients reach logits and boxes."),
        kept_on_any_device(0.75, two_pictures),
    ),
)
