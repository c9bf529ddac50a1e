"""The check of ``masked_softmax``: scores become weights, among the permitted places only."""

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
    """Scores with a mask of their own shape."""
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
    """Scores in the hundreds, of either sign; the largest of all is forbidden."""
    b, t, s = draw.sizes(3, low=3)
    scores, mask = 300 * draw.normal(b, t, s), draw.mask(b, t, s)
    scores[:, 0], mask[:, 0] = scores[:, 0].abs() + 200, True
    scores[:, 1] = -scores[:, 1].abs() - 200
    return Case({"scores": scores, "mask": mask})


def more_scores(draw: Draw, size: int) -> Case:
    """More of everything."""
    return Case({"scores": draw.normal(size, size + 1, 2 * size)})


def number_mask(draw: Draw) -> Case:
    """A mask of zeros and ones that are not truth values."""
    case = masked_scores(draw)
    return case.with_arguments(mask=case.arguments["mask"].to(torch.int64))


MASKED_SOFTMAX = Exercise(
    reference=alignment.masked_softmax,
    rows=(
        rows.numbers(4, scores_alone, title="Without a mask it is a softmax over the last axis."),
        rows.numbers(
            1.5,
            one_row_of_scores,
            masked_scores,
            padded_scores,
            name="mask",
            title="Forbidden places get weight 0, and the others sum to one.",
        ),
        rows.edge(
            0.5,
            empty_scores,
            name="empty row",
            dtypes=(),
            title="A row in which nothing is permitted gets zeros, and its gradients are zeros.",
        ),
        rows.edge(
            0.5,
            large_scores,
            name="large scores",
            dtypes=(),
            title="Scores in the hundreds give finite, right weights.",
        ),
        rows.precision(0.5, scores_alone),
        rows.no_loop(0.5, more_scores, over="rows"),
        rows.errors(0.5, masked_scores, number_mask, title="A mask that is not boolean is a ValueError."),
    ),
    forbidden=FUSED,
    rule_case=(scores_alone, masked_scores),
)
