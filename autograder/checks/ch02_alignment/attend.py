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
    one_example,
    padded_blend,
)
from autograder.checks.ch03_scaled_dot_product.attention_inputs import manners
from autograder.checks.ch03_scaled_dot_product.cases import FUSED
from tfcourse import alignment

ATTEND = Exercise(
    reference=alignment.attend,
    rows=(
        rows.numbers(
            2.75,
            blend,
            gradients=False,
            title="Each query has the weights of its scores; its context is the sum of the values, each times its weight.",
        ),
        rows.numbers(
            1.5,
            padded_blend,
            as_many_queries,
            masked_blend,
            name="mask",
            gradients=False,
            title="A mask (B, S) holds for all queries of its example, a mask (B, T, S) for each query.",
        ),
        rows.edge(0.5, empty_row, name="empty row", dtypes=(), title="A query that may attend to nothing gets zeros."),
        rows.numbers(
            0.5,
            blend,
            blend_square,
            one_example,
            name="gradients",
            title="Gradients are right, and so are as many queries as values and a single example.",
        ),
        rows.precision(0.5, blend),
        manners(0.5, (masked_blend,), more_blend, over="examples, queries or values"),
    ),
    forbidden=FUSED,
    rule_case=(blend, padded_blend),
)
