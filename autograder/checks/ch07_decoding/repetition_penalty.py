"""The check of ``repetition_penalty``: what was said becomes less probable, whatever the sign of its logit."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import manners, share
from autograder.checks.ch07_decoding.texts import any_text, holes_and_said, one_text_for_all, said
from autograder.checks.combined_rows import joined
from tfcourse import sampling


def penalised(draw: Draw) -> Case:
    """A penalty, for logits of both signs."""
    return Case({**said(draw), "penalty": 1.6})


def holes(draw: Draw) -> Case:
    """Logits of which some are excluded already, and 32-bit tokens."""
    return Case({**holes_and_said(draw), "penalty": 2.0})


def more(draw: Draw, size: int) -> Case:
    """More rows, a longer text."""
    return Case({"logits": draw.normal(size, 9), "tokens": draw.integers(0, 9, size, 4 * size), "penalty": 1.6})


def nothing(draw: Draw) -> Case:
    """A penalty of 0."""
    return penalised(draw).with_arguments(penalty=0.0)


def one_text(draw: Draw) -> Case:
    """One text for all rows."""
    return one_text_for_all(penalised(draw))


def any_penalty(draw: Draw) -> Case:
    """Any text, and a penalty above or below 1."""
    penalty = (share(draw, 0.2, 0.9), share(draw, 1.1, 3.0))[int(draw.integers(0, 2))]
    return Case({**any_text(draw, 1), "penalty": penalty})


REPETITION_PENALTY = Exercise(
    reference=sampling.repetition_penalty,
    rows=(
        # To gather, penalise and scatter back gives the right numbers, and the gradient of a token that comes twice is not its own then.
        rows.numbers(
            1.5,
            penalised,
            penalised,
            title="Logits of what was said are divided, and multiplied where negative.",
            gradients=False,
        ),
        rows.many(0.75, any_penalty, title="Many random texts with penalties above and below 1 are right as well."),
        rows.edge(
            0.5,
            holes,
            name="edges",
            title="Excluded tokens stay excluded, 32-bit tokens work, and the dtype is kept.",
            gradients=False,
            dtypes=(torch.float64, torch.bfloat16),
        ),
        joined(
            "manner",
            "Inputs are unchanged, nothing loops over rows or tokens, and an invalid penalty or text raises a ValueError.",
            0.25,
            manners(1, penalised, more),
            rows.errors(1, penalised, nothing, one_text, title=""),
        ),
    ),
)
