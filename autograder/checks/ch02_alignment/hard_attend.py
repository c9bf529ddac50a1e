"""The check of ``hard_attend``: each query takes one value whole."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch02_alignment.blend_cases import (
    as_many_queries,
    blend,
    blend_square,
    empty_row,
    masked_blend,
    more_blend,
    one_example,
    padded_blend,
)
from autograder.checks.ch03_scaled_dot_product.cases import FUSED, joined
from tfcourse import alignment


def ties(draw: Draw) -> Case:
    """Scores that are small integers, so that many are equal."""
    b, t, s, d = draw.sizes(4, low=3)
    return Case({"scores": draw.integers(0, 2, b, t, s).float(), "values": draw.normal(b, s, d)})


def below_zero(draw: Draw) -> Case:
    """Scores that are all negative, with a mask (B, S)."""
    case = padded_blend(draw)
    return case.with_arguments(scores=-1 - case.arguments["scores"].abs())


def device_and_loops(points: float) -> rows.Row:
    """Return the row of two manners."""
    over = "examples, queries or values"
    row = joined(rows.no_loop(points, more_blend, over=over), rows.device(points, blend))
    title = f"It runs on the device of its inputs, and there is no Python loop over {over}."
    return replace(row, name="device and loops", title=title)


HARD_ATTEND = Exercise(
    reference=alignment.hard_attend,
    rows=(
        rows.numbers(3, blend, gradients=False, title="Each query takes the value of its highest score, whole."),
        rows.edge(
            0.5, ties, name="ties", gradients=False, dtypes=(), title="Among equal scores the first position is taken."
        ),
        rows.numbers(
            1.75,
            below_zero,
            as_many_queries,
            masked_blend,
            name="mask",
            gradients=False,
            title="A mask (B, S) holds for all queries of its example, a mask (B, T, S) for each; all scores may be negative.",
        ),
        rows.edge(
            0.5,
            empty_row,
            name="empty row",
            gradients=False,
            dtypes=(),
            title="A query that may attend to nothing has weights and context 0.",
        ),
        rows.edge(
            0.5,
            blend,
            blend_square,
            one_example,
            name="gradients",
            title="Gradients reach the values, equal sizes and a single example work, and float64 stays float64.",
        ),
        device_and_loops(0.75),
    ),
    forbidden=FUSED,
    rule_case=(blend, padded_blend),
)
