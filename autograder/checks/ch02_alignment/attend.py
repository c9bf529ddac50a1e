"""The check of ``attend``: weights and context of soft attention."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.exercise import Exercise
from autograder.checks.ch02_alignment.blend_cases import (
    as_many_queries,
    blend,
    blend_square,
    empty_row,
    masked_blend,
    more_blend,
    padded_blend,
)
from autograder.checks.ch03_scaled_dot_product.cases import FUSED
from tfcourse import alignment

ATTEND = Exercise(
    reference=alignment.attend,
    rows=(
        rows.numbers(
            2.75,
            blend,
            blend_square,
            title="Each query has the weights of its scores; its context is the sum of the values, each times its weight.",
        ),
        rows.numbers(
            1.5,
            padded_blend,
            as_many_queries,
            masked_blend,
            name="mask",
            title="A mask (B, S) holds for all queries of its example, a mask (B, T, S) for each query.",
        ),
        rows.edge(0.5, empty_row, name="empty row", dtypes=(), title="A query that may attend to nothing gets zeros."),
        rows.precision(0.5, blend),
        rows.inputs_kept(0.5, masked_blend),
        rows.no_loop(0.5, more_blend, over="examples, queries or values"),
    ),
    forbidden=FUSED,
    rule_case=(blend, padded_blend),
)
