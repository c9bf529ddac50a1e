"""The check of ``rotary_frequencies``: how fast each pair turns."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import rotary


def narrow(draw: Draw) -> Case:
    """A narrow head."""
    return Case({"d_head": 6 + 2 * draw.unseen(0, 8)})


def usual(draw: Draw) -> Case:
    """A head of 64 columns."""
    return Case({"d_head": 64})


def other_base(draw: Draw) -> Case:
    """Another base."""
    return Case({"d_head": 10, "theta": 1000.0 * draw.unseen(2, 16)})


def on_meta(draw: Draw) -> Case:
    """A device asked for by name."""
    return Case({"d_head": 8 + 2 * draw.unseen(0, 8), "device": "meta"})


def odd(draw: Draw) -> Case:
    """An odd width."""
    return Case({"d_head": 7})


ROTARY_FREQUENCIES = Exercise(
    reference=rotary.rotary_frequencies,
    rows=(
        rows.single_precision(1.75, narrow, usual, title="The frequencies are right."),
        rows.numbers(
            0.5, other_base, usual, name="theta", title="The base may be another one, and the result is in float64."
        ),
        rows.device(0.25, on_meta),
        rows.errors(0.5, narrow, odd, title="An odd width is a ValueError."),
    ),
)
