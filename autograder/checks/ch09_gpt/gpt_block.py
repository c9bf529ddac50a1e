"""The check of ``GptBlock``: pre-norm, causal, with a cache."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.layer_cases import drop_everything, drop_nothing, hardly_drop
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from tfcourse import gpt

B, T, D, H, F = 3, 5, 6, 2, 7


def beginning(draw: Draw) -> Case:
    """A text from its beginning."""
    state = draw.weights(gpt.GptBlock(D, H, F))
    return Case({"x": 2 * draw.normal(B, T, D)}, init={"d_model": D, "n_heads": H, "d_ff": F}, state=state)


def going_on(draw: Draw) -> Case:
    """Several tokens behind others."""
    past = tuple(draw.normal(B, H, 4, D // H) for _ in range(2))
    return beginning(draw).with_arguments(past=past)


def one_more(draw: Draw) -> Case:
    """One token behind others."""
    case = going_on(draw)
    return case.with_arguments(x=case.arguments["x"][:, :1])


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of what the sublayers say."""
    return drop_everything(beginning(draw))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(beginning(draw))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(beginning(draw))


def more(draw: Draw, size: int) -> Case:
    """More and longer texts."""
    return beginning(draw).with_arguments(x=draw.normal(size, size + 1, D))


def of_a_gpu(draw: Draw) -> Case:
    """The same in float64, for the device."""
    return replace(beginning(draw).to(torch.float64), training=False)


GPT_BLOCK = Exercise(
    reference=gpt.GptBlock,
    rows=(
        rows.numbers(4.75, beginning, title="Tokens, keys and values are right from the beginning of a text."),
        rows.numbers(3, going_on, one_more, name="past", title="They are right behind a past, too."),
        rows.numbers(
            2,
            all_dropped,
            not_training,
            hardly_dropped,
            name="dropout",
            title="In training, and only then, dropout falls on what the sublayers say.",
        ),
        rows.inputs_kept(0.75, going_on),
        rows.no_loop(0.75, more, over="texts or tokens"),
        rows.device(0.75, beginning),
    ),
    forbidden=ATTENTION,
    rule_case=(beginning, going_on),
)
