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


def one_head(draw: Draw) -> Case:
    """A single head."""
    return Case({"weight": draw.normal(6, 6), "n_heads": 1, "to": "half"})


def two_columns(draw: Draw) -> Case:
    """Heads of a single pair, in which nothing moves."""
    return Case({"weight": draw.normal(6, 4), "n_heads": 3, "to": "interleaved"})


CONVERT_ROTARY_WEIGHT = Exercise(
    reference=rotary.convert_rotary_weight,
    rows=(
        rows.numbers(
            2, to_half, gradients=False, title="Rows are reordered from neighbours to halves, within each head."
        ),
        rows.numbers(
            1.25,
            to_neighbours,
            name="interleaved",
            gradients=False,
            title="Rows are reordered from halves to neighbours.",
        ),
        rows.numbers(0.75, bias, name="bias", gradients=False, title="A bias is reordered as the weights are."),
        rows.numbers(
            0.25,
            to_half,
            one_head,
            two_columns,
            name="gradients",
            title="Gradients reach the weights, of one head or of heads of a single pair.",
        ),
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
