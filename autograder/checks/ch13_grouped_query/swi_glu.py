"""The check of ``SwiGlu``: a gated feed-forward network."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch12_rotary.manners import kept_on_any_device
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


def equal_sizes(draw: Draw) -> Case:
    """As many texts as tokens and columns, and no wider inside."""
    init = {"d_model": 3, "d_ff": 3}
    return Case({"x": draw.normal(3, 3, 3)}, init=init, state=draw.weights(llama.SwiGlu(3, 3)))


SWI_GLU = Exercise(
    reference=llama.SwiGlu,
    rows=(
        rows.numbers(2.5, a_text, gradients=False, title="The gate decides how much passes."),
        rows.numbers(
            0.75,
            a_text,
            one_row,
            equal_sizes,
            name="gradients",
            title="Gradients reach the input and all three maps; a single row, and equal sizes, work too.",
        ),
        rows.precision(0.5, a_text),
        kept_on_any_device(0.75, a_text),
        rows.no_loop(0.5, longer, over="examples or rows"),
    ),
)
