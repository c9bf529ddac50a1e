"""The check of ``residual_pre_norm``: a residual connection with the norm before the sublayer."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import inputs_and_device
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
            2.5,
            wrapped,
            gradients=False,
            title="The sublayer is given the normalised x; its output is added to x itself.",
        ),
        rows.numbers(
            1.25,
            all_dropped,
            hardly_dropped,
            name="dropout",
            gradients=False,
            title="Dropout falls on the sublayer's output alone, and divides what it keeps by 1 - dropout.",
        ),
        rows.numbers(0.75, large_eps, name="eps", gradients=False, title="The norm uses the eps that it is given."),
        rows.numbers(
            0.5, wrapped, one_row, name="gradients", title="Gradients reach every input, and a single row works."
        ),
        inputs_and_device(0.5, wrapped),
    ),
)
