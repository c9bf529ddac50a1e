"""The check of ``SwiGlu``: a gated feed-forward network."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import llama

D, F = 5, 7


def a_text(draw: Draw) -> Case:
    """Rows of two texts."""
    return Case({"x": draw.normal(2, 4, D)}, init={"d_model": D, "d_ff": F}, state=draw.weights(llama.SwiGlu(D, F)))


def one_row(draw: Draw) -> Case:
    """A single row, twice as wide inside."""
    case = Case({"x": 2 * draw.normal(D)}, init={"d_model": D, "d_ff": 2 * F})
    return replace(case, state=draw.weights(llama.SwiGlu(D, 2 * F)))


def longer(draw: Draw, size: int) -> Case:
    """More rows."""
    case = Case({"x": draw.normal(size, size + 1, 3)}, init={"d_model": 3, "d_ff": size + 2})
    return replace(case, state=draw.weights(llama.SwiGlu(3, size + 2)))


SWI_GLU = Exercise(
    reference=llama.SwiGlu,
    rows=(
        rows.numbers(3.25, a_text, one_row, title="The gate decides how much passes; gradients reach all three maps."),
        rows.precision(0.5, a_text),
        rows.inputs_kept(0.5, a_text),
        rows.device(0.25, a_text),
        rows.no_loop(0.5, longer, over="examples or rows"),
    ),
)
