"""The check of ``residual_pre_norm``: a residual connection with the norm before the sublayer."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.residual_cases import (
    all_dropped,
    hardly_dropped,
    large_eps,
    one_row,
    wrapped,
)
from tfcourse import layers

RESIDUAL_PRE_NORM = Exercise(
    reference=layers.residual_pre_norm,
    rows=(
        rows.numbers(
            2.25, wrapped, one_row, title="The sublayer is given the normalised x; its output is added to x itself."
        ),
        rows.numbers(
            1.25,
            all_dropped,
            hardly_dropped,
            name="dropout",
            title="Dropout falls on the sublayer's output alone, and divides what it keeps by 1 - dropout.",
        ),
        rows.numbers(1, large_eps, name="eps", title="The norm uses the eps that it is given."),
        rows.inputs_kept(0.5, wrapped),
        rows.device(0.5, wrapped),
    ),
)
