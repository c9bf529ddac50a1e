"""The check of ``lstm_cell``: one step of a long short-term memory."""

from __future__ import annotations

from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch01_recurrent.cell_cases import one_step, rows_of_a_cell
from autograder.checks.ch01_recurrent.pytorch_cells import RECURRENT_LAYERS
from tfcourse import recurrent

GATES = 4


def step(draw: Draw) -> Case:
    """One step."""
    return one_step(draw, GATES)


def many_examples(draw: Draw, size: int) -> Case:
    """One step of more examples."""
    return one_step(draw, GATES, (2 * size, 4, 5))


def other_weights(draw: Draw) -> Case:
    """Weights of another kind of cell, with another number of gates."""
    return one_step(draw, GATES, (3, 5, 4), other_gates=3)


def one_cell_for_all(draw: Draw) -> Case:
    """The cell of one example, which broadcasting would spread to all."""
    case = step(draw)
    return case.with_arguments(c=case.arguments["c"][:1])


LSTM_CELL = Exercise(
    reference=recurrent.lstm_cell,
    rows=rows_of_a_cell(
        (3.25, 1.75),
        GATES,
        "The new state and the new cell are right.",
        step,
        many_examples,
        other_weights,
        one_cell_for_all,
    ),
    forbidden=RECURRENT_LAYERS,
    rule_case=step,
)
