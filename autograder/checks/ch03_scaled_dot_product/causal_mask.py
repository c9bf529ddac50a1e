"""The check of ``causal_mask``: a position may attend to itself and to what came before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import attention


def length(draw: Draw) -> Case:
    """A length."""
    return Case({"T": draw.unseen(6, 40)})


def long_text(draw: Draw) -> Case:
    """A length that no ready-made mask has."""
    return Case({"T": draw.unseen(60, 80)})


def single(draw: Draw) -> Case:
    """A sequence of one position, which attends to itself."""
    return Case({"T": 1})


def few(draw: Draw) -> Case:
    """A short sequence."""
    return Case({"T": draw.unseen(2, 6)})


def elsewhere(draw: Draw) -> Case:
    """A length, and a device that is not the default: the meta device, which every machine has."""
    return length(draw).with_arguments(device="meta")


def longer_sequence(draw: Draw, size: int) -> Case:
    """A longer sequence."""
    return Case({"T": 5 * size})


def shorter(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
    """A shorter text, with the corner of the longer one's mask that must equal it."""
    T = case.arguments["T"] - 2
    return Case({"T": T}), [("narrow", 0, 0, T), ("narrow", 1, 0, T)], []


CAUSAL_MASK = Exercise(
    reference=attention.causal_mask,
    rows=(
        rows.numbers(2, length, long_text, gradients=False, title="True on and below the diagonal, False above it."),
        rows.edge(
            0.5,
            single,
            few,
            name="single",
            gradients=False,
            dtypes=(),
            title="Short sequences work too; a single position attends to itself.",
        ),
        rows.two_calls_agree(
            "shorter",
            "The mask of a shorter text is the corner of a longer one's.",
            0.5,
            length,
            shorter,
            claim="the masks of two lengths disagree where both reach",
        ),
        rows.device(0.5, elsewhere),
        rows.no_loop(0.5, longer_sequence, over="positions"),
    ),
)
