"""The check of ``masked_softmax``: scores become weights, at the permitted positions alone."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.cases import FUSED
from tfcourse import alignment


def scores_alone(draw: Draw) -> Case:
    """Scores without a mask."""
    return Case({"scores": draw.normal(*draw.sizes(3, low=3))})


def one_row_of_scores(draw: Draw) -> Case:
    """A single row of scores with its mask."""
    (s,) = draw.sizes(1, low=4)
    return Case({"scores": draw.normal(s), "mask": draw.mask(1, s)[0]})


def masked_scores(draw: Draw) -> Case:
    """Scores with a mask of the same shape."""
    b, t, s = draw.sizes(3, low=3)
    return Case({"scores": draw.normal(b, t, s), "mask": draw.mask(b, t, s)})


def padded_scores(draw: Draw) -> Case:
    """Scores with one mask for all queries of an example."""
    b, t, s = draw.sizes(3, low=3)
    return Case({"scores": draw.normal(b, t, s), "mask": draw.mask(b, 1, s)})


def empty_scores(draw: Draw) -> Case:
    """Scores of which one row permits nothing."""
    case = masked_scores(draw)
    mask = case.arguments["mask"].clone()
    mask[:, 1] = False
    return case.with_arguments(mask=mask)


def large_scores(draw: Draw) -> Case:
    """Rows whose exponentials overflow, rows whose exponentials are all zero, and rows in which a forbidden score is far the highest.

    In the last the exponential of the forbidden score is finite, and the softmax of all others is exactly zero. So each way to go wrong
    gives the same numbers however it is written.
    """
    b, t, s = draw.sizes(3, low=3)
    scores, mask = draw.normal(b, t, s), draw.mask(b, t, s)
    mask[:, 0], mask[:, 1:, 0], mask[:, 1:, 1] = True, False, True
    scores[:, 0] += 200
    scores[:, 1] -= 200
    scores[:, 2:] = torch.where(mask[:, 2:], scores[:, 2:] - 60, 80.0)
    return Case({"scores": scores, "mask": mask})


def number_mask(draw: Draw) -> Case:
    """A mask of zeros and ones that are not truth values."""
    case = masked_scores(draw)
    return case.with_arguments(mask=case.arguments["mask"].to(torch.int64))


def whole_scores(draw: Draw) -> Case:
    """Scores that are no floating-point numbers."""
    return Case({"scores": draw.integers(-3, 4, *draw.sizes(3, low=3))})


def one_place_more(draw: Draw) -> Case:
    """A mask with a place more than the scores."""
    case = masked_scores(draw)
    b, t, s = case.arguments["scores"].shape
    return case.with_arguments(mask=draw.mask(b, t, s + 1))


def one_axis_more(draw: Draw) -> Case:
    """A mask of one more axis than the scores."""
    case = masked_scores(draw)
    return case.with_arguments(mask=case.arguments["mask"][None])


def one_example_less(draw: Draw) -> Case:
    """A mask of fewer examples than the scores, all other axes of which fit."""
    case = masked_scores(draw)
    return case.with_arguments(mask=case.arguments["mask"][1:])


MASKED_SOFTMAX = Exercise(
    reference=alignment.masked_softmax,
    rows=(
        rows.numbers(3.75, scores_alone, gradients=False, title="Without a mask it is a softmax over the last axis."),
        rows.numbers(
            1.75,
            one_row_of_scores,
            masked_scores,
            padded_scores,
            name="mask",
            gradients=False,
            title="Forbidden positions get weight 0, and the others sum to one.",
        ),
        rows.edge(
            0.5,
            empty_scores,
            name="empty row",
            dtypes=(torch.float16,),
            title="A row in which nothing is permitted gets zeros, and its gradients are zeros.",
        ),
        rows.edge(
            0.5,
            large_scores,
            name="large scores",
            dtypes=(),
            title="Scores in the hundreds give finite, right weights.",
        ),
        rows.edge(
            0.5,
            scores_alone,
            name="gradients",
            dtypes=(torch.float64, torch.bfloat16, torch.float16),
            title="Gradients and every precision are right.",
        ),
        rows.inputs_kept(0.5, masked_scores),
        rows.errors(
            0.5,
            masked_scores,
            number_mask,
            whole_scores,
            one_place_more,
            one_axis_more,
            one_example_less,
            title="Scores that are no floating-point numbers, and a mask that is not boolean or does not fit, are a ValueError.",
        ),
    ),
    forbidden=FUSED,
    rule_case=(scores_alone, masked_scores),
)
