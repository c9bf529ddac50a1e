"""The check of ``presence_frequency_penalty``: a price for what was said, and for each time that it was said."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import manners
from autograder.checks.ch07_decoding.texts import holes_and_said, one_text_for_all, said
from tfcourse import sampling


def frequency(draw: Draw) -> Case:
    """A price for each occurrence."""
    return Case({**said(draw), "frequency": 0.7})


def presence(draw: Draw) -> Case:
    """A price for being there."""
    return Case({**said(draw), "presence": 1.3})


def both(draw: Draw) -> Case:
    """Both prices, one of them a reward."""
    return Case({**said(draw), "presence": 0.9, "frequency": -0.4})


def holes(draw: Draw) -> Case:
    """Logits of which some are excluded already, and 32-bit tokens."""
    return Case({**holes_and_said(draw), "presence": 0.5, "frequency": 0.25})


def nothing_said(draw: Draw) -> Case:
    """The text is empty."""
    return Case({"logits": draw.normal(3, 5), "tokens": torch.zeros(3, 0, dtype=torch.int64), "frequency": 0.7})


def more(draw: Draw, size: int) -> Case:
    """More rows, a larger vocabulary, a longer text."""
    return Case({"logits": draw.normal(size, 9), "tokens": draw.integers(0, 9, size, 4 * size), "frequency": 0.7})


def one_text(draw: Draw) -> Case:
    """One text for all rows."""
    return one_text_for_all(frequency(draw))


PRESENCE_FREQUENCY_PENALTY = Exercise(
    reference=sampling.presence_frequency_penalty,
    rows=(
        rows.numbers(
            2,
            frequency,
            frequency,
            title="Each occurrence of a token costs its logit the frequency penalty.",
            gradients=False,
        ),
        rows.numbers(
            0.75, presence, both, name="presence", title="The presence penalty is paid once.", gradients=False
        ),
        rows.edge(
            0.25,
            holes,
            nothing_said,
            name="edges",
            title="What was excluded stays so, an empty text costs nothing, and 32-bit tokens are tokens.",
            dtypes=(torch.float64, torch.bfloat16),
        ),
        manners(0.5, frequency, more),
        rows.device(0.25, frequency),
        rows.errors(
            0.25, frequency, one_text, title="A text that has not a row for each row of logits is a ValueError."
        ),
    ),
)
