"""The check of ``RmsNorm``: normalise in float32, round, stretch."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import llama

D = 6


def _case(draw: Draw, scale: float = 1.0, **init: float) -> Case:
    return Case(
        {"x": scale * (draw.normal(3, 4, D) + 2.0)}, init={"d_model": D, **init}, state={"weight": draw.normal(D)}
    )


def rows_of_three(draw: Draw) -> Case:
    """Rows with a mean."""
    return _case(draw)


def fresh(draw: Draw) -> Case:
    """A norm as it is made, with a weight of ones."""
    return replace(rows_of_three(draw), state=None)


def tiny(draw: Draw) -> Case:
    """Rows so small that eps decides."""
    return _case(draw, scale=2e-3)


def other_eps(draw: Draw) -> Case:
    """Another eps."""
    return _case(draw, scale=0.3, eps=0.1)


def large(draw: Draw) -> Case:
    """Rows whose squares have no place in float16."""
    return _case(draw, scale=400.0)


def single_row(draw: Draw) -> Case:
    """A row without any other axis."""
    return rows_of_three(draw).with_arguments(x=draw.normal(D) + 2.0)


RMS_NORM_LAYER = Exercise(
    reference=llama.RmsNorm,
    rows=(
        rows.numbers(
            1.75,
            rows_of_three,
            fresh,
            gradients=False,
            title="Rows are divided by their root mean square and stretched.",
        ),
        rows.numbers(
            0.75,
            tiny,
            other_eps,
            name="eps",
            gradients=False,
            title="The mean square gets eps before the root is taken.",
        ),
        rows.numbers(
            0.5,
            rows_of_three,
            single_row,
            name="gradients",
            title="Gradients reach rows and weight; a single row works too.",
        ),
        rows.precision(0.5, large, title="Squares are taken in float32, so that nothing overflows."),
        rows.inputs_kept(0.5, rows_of_three),
    ),
)
