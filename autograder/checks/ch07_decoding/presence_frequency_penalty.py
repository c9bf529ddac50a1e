"""The check of ``presence_frequency_penalty``: a price for what was said, and for each time that it was said."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import manners, share
from autograder.checks.ch07_decoding.texts import any_text, holes_and_said, one_text_for_all, said
from autograder.checks.combined_rows import also_asking
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
    return Case({**holes_and_said(draw), "frequency": 0.25})


def nothing_said(draw: Draw) -> Case:
    """The text is empty."""
    return Case({"logits": draw.normal(3, 5), "tokens": torch.zeros(3, 0, dtype=torch.int64), "frequency": 0.7})


def more(draw: Draw, size: int) -> Case:
    """More rows, a larger vocabulary, a longer text."""
    return Case({"logits": draw.normal(size, 9), "tokens": draw.integers(0, 9, size, 4 * size), "frequency": 0.7})


def one_text(draw: Draw) -> Case:
    """One text for all rows."""
    return one_text_for_all(frequency(draw))


def any_prices(draw: Draw) -> Case:
    """Any text, and two prices, either of which may be 0 or a reward."""
    prices = [(0.0, share(draw, 0.1, 2.0), -share(draw, 0.1, 2.0))[int(draw.integers(0, 3))] for _ in range(2)]
    return Case({**any_text(draw), "presence": prices[0], "frequency": prices[1]})


PRESENCE_FREQUENCY_PENALTY = Exercise(
    reference=sampling.presence_frequency_penalty,
    rows=(
        rows.numbers(
            1.75,
            frequency,
            frequency,
            title="Each occurrence of a token costs its logit the frequency penalty.",
            gradients=False,
        ),
        also_asking(
            rows.numbers(
                1,
                presence,
                both,
                name="presence",
                title="The presence penalty is subtracted once; both penalties are right for many random texts.",
                gradients=False,
            ),
            rows.many(0, any_prices, title=""),
        ),
        rows.edge(
            0.5,
            holes,
            nothing_said,
            frequency,
            name="edges",
            title="Excluded tokens stay excluded, an empty text costs nothing, 32-bit tokens work, and gradients are right.",
            dtypes=(torch.float64, torch.bfloat16),
        ),
        manners(0.25, frequency, more),
        rows.device(0.25, frequency),
        rows.errors(
            0.25, frequency, one_text, title="A text that has not a row for each row of logits is a ValueError."
        ),
    ),
)
