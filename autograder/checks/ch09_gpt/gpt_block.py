"""The check of ``GptBlock``: pre-norm, causal, with a cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Probe
from autograder.checks.ch05_transformer.layer_cases import drop_nothing, hardly_drop
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch09_gpt.block_cases import drop_almost_surely, gradients_of_the_past
from autograder.checks.combined_rows import also_asking
from tfcourse import gpt

B, T, D, F, P = 8, 5, 6, 7, 4


def beginning(draw: Draw, n_heads: int = 3) -> Case:
    """A text from its beginning."""
    init: dict[str, Any] = {"d_model": D, "n_heads": n_heads, "d_ff": F}
    return Case({"x": 20 * draw.normal(B, T, D)}, init=init, state=draw.weights(gpt.GptBlock(**init)))


def going_on(draw: Draw) -> Case:
    """Several tokens behind others."""
    past = tuple(draw.normal(B, 3, P, D // 3) for _ in range(2))
    return beginning(draw).with_arguments(past=past)


def one_more(draw: Draw) -> Case:
    """One token after others, in training mode: dropout is 0 by default."""
    past = tuple(draw.normal(B, 2, P, D // 2) for _ in range(2))
    return replace(beginning(draw, 2).with_arguments(x=20 * draw.normal(B, 1, D), past=past), training=True)


def of_small_numbers(draw: Draw) -> Case:
    """Numbers so small that what the norms add to the variance shows."""
    return beginning(draw).with_arguments(x=0.003 * draw.normal(B, T, D))


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of what the sublayers say."""
    return drop_almost_surely(beginning(draw))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(beginning(draw))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone, and numbers so large that the eps of the norms does not show beside it."""
    return hardly_drop(beginning(draw).with_arguments(x=3000 * draw.normal(B, T, D)))


def of_large_numbers(draw: Draw) -> Case:
    """Several tokens behind others, with numbers so large that the eps of the norms does not show in double precision."""
    return going_on(draw).with_arguments(x=3000 * draw.normal(B, T, D))


def more(draw: Draw, size: int) -> Case:
    """More and longer texts."""
    return beginning(draw).with_arguments(x=20 * draw.normal(size, size + 1, D))


def _edges(draw: Draw) -> list[Probe]:
    small = draw.case(of_small_numbers)
    return [Probe((small.request(),), "matches"), *gradients_of_the_past(draw.case(of_large_numbers))]


def equal_sizes(draw: Draw) -> Case:
    """As many texts as tokens, as numbers in a vector, and one head."""
    init: dict[str, Any] = {"d_model": 4, "n_heads": 1, "d_ff": 4}
    return Case({"x": 20 * draw.normal(4, 4, 4)}, init=init, state=draw.weights(gpt.GptBlock(**init)))


def as_many_heads_as_numbers(draw: Draw) -> Case:
    """Heads of width 1, and a batch of one text of a single token."""
    return beginning(draw, D).with_arguments(x=20 * draw.normal(1, 1, D))


GPT_BLOCK = Exercise(
    reference=gpt.GptBlock,
    rows=(
        rows.numbers(
            5, beginning, title="Tokens, keys and values are right from the beginning of a text.", gradients=False
        ),
        rows.numbers(
            2.75, going_on, one_more, name="past", title="They are right behind a past, too.", gradients=False
        ),
        rows.numbers(
            1.75,
            all_dropped,
            not_training,
            hardly_dropped,
            name="dropout",
            title="In training, and only then, dropout falls on what the sublayers say.",
        ),
        also_asking(
            rows.Row(
                "edges",
                "The norms have an eps of 1e-5, equal sizes and one head work, and gradients are right and reach the past.",
                0.75,
                _edges,
            ),
            rows.numbers(0, beginning, going_on, equal_sizes, as_many_heads_as_numbers),
        ),
        rows.inputs_kept(0.75, going_on),
        rows.no_loop(0.5, more, over="texts or tokens"),
        rows.device(0.5, beginning),
    ),
    forbidden=ATTENTION,
    rule_case=(beginning, going_on),
)
