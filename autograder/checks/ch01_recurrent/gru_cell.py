"""The check of ``gru_cell``: one step of a gated recurrent unit."""

from __future__ import annotations

from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch01_recurrent.cell_cases import one_step, rows_of_a_cell
from autograder.checks.ch01_recurrent.pytorch_cells import RECURRENT_LAYERS
from tfcourse import recurrent

GATES = 3


def step(draw: Draw) -> Case:
    """One step."""
    return one_step(draw, GATES)


def many_examples(draw: Draw, size: int) -> Case:
    """One step of more examples."""
    return one_step(draw, GATES, (2 * size, 4, 5))


def other_weights(draw: Draw) -> Case:
    """Weights of another kind of cell, with another number of gates."""
    return one_step(draw, GATES, (3, 5, 4), other_gates=4)


GRU_CELL = Exercise(
    reference=recurrent.gru_cell,
    rows=rows_of_a_cell(
        (3, 1.5),
        GATES,
        "The new state is right: part old state, part candidate.",
        step,
        many_examples,
        other_weights,
    ),
    forbidden=RECURRENT_LAYERS,
    rule_case=step,
)
