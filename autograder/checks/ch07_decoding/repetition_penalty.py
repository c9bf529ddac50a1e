"""The check of ``repetition_penalty``: what was said becomes less probable, whatever the sign of its logit."""

from __future__ import annotations

import math

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import manners
from autograder.checks.ch07_decoding.texts import holes_and_said, one_text_for_all, said
from tfcourse import sampling


def penalised(draw: Draw) -> Case:
    """A penalty, for logits of both signs."""
    return Case({**said(draw), "penalty": 1.6})


def rewarded(draw: Draw) -> Case:
    """A penalty below 1 makes what was said likelier."""
    return Case({**said(draw), "penalty": 0.7})


def holes(draw: Draw) -> Case:
    """Logits of which some are excluded already, and 32-bit tokens."""
    return Case({**holes_and_said(draw), "penalty": 2.0})


def more(draw: Draw, size: int) -> Case:
    """More rows, a longer text."""
    return Case({"logits": draw.normal(size, 9), "tokens": draw.integers(0, 9, size, 4 * size), "penalty": 1.6})


def nothing(draw: Draw) -> Case:
    """A penalty of 0."""
    return penalised(draw).with_arguments(penalty=0.0)


def infinite(draw: Draw) -> Case:
    """An infinite penalty would make NaN of a logit of 0."""
    return penalised(draw).with_arguments(penalty=math.inf)


def one_text(draw: Draw) -> Case:
    """One text for all rows."""
    return one_text_for_all(penalised(draw))


REPETITION_PENALTY = Exercise(
    reference=sampling.repetition_penalty,
    rows=(
        # To gather, penalise and scatter back gives the right numbers, and the gradient of a token that comes twice is not its own then.
        rows.numbers(
            2,
            penalised,
            rewarded,
            title="Logits of what was said are divided, and multiplied where negative.",
            gradients=False,
        ),
        rows.edge(
            0.25,
            holes,
            name="edges",
            title="What was excluded stays so, and 32-bit tokens are tokens.",
            gradients=False,
            dtypes=(torch.float64, torch.bfloat16),
        ),
        manners(0.5, penalised, more),
        rows.errors(
            0.25,
            penalised,
            nothing,
            infinite,
            one_text,
            title="A penalty of 0, an infinite one, and a text that does not fit the logits, are a ValueError.",
        ),
    ),
)
