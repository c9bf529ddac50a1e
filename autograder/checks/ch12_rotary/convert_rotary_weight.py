"""The check of ``convert_rotary_weight``: from one pairing to the other."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.variants import changed
from tfcourse import rotary


def _case(draw: Draw, to: str) -> Case:
    return Case({"weight": draw.normal(3 * 8, 24), "n_heads": 3, "to": to})


def to_half(draw: Draw) -> Case:
    """From neighbours to halves; as many columns as rows."""
    return _case(draw, "half")


def to_neighbours(draw: Draw) -> Case:
    """From halves to neighbours."""
    return _case(draw, "interleaved")


def bias(draw: Draw) -> Case:
    """A bias has one axis."""
    return to_half(draw).with_arguments(weight=draw.normal(24))


def unknown(draw: Draw) -> Case:
    """A pairing that does not exist."""
    return _case(draw, "quarters")


CONVERT_ROTARY_WEIGHT = Exercise(
    reference=rotary.convert_rotary_weight,
    rows=(
        rows.numbers(2, to_half, title="Rows are reordered from neighbours to halves, within each head."),
        rows.numbers(1.5, to_neighbours, name="interleaved", title="Rows are reordered from halves to neighbours."),
        rows.numbers(0.75, bias, name="bias", title="A bias is reordered as the weights are."),
        rows.errors(
            0.5,
            to_half,
            unknown,
            changed(to_half, n_heads=8),
            changed(to_half, n_heads=5),
            title="An unknown pairing is a ValueError, and so are rows that are not heads of an even width.",
        ),
        rows.device(0.25, to_half),
    ),
)
