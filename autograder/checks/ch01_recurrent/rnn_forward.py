"""The check of ``rnn_forward``: the plain cell along a sequence."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch01_recurrent.cell_cases import EXAMPLES, weights_by_name
from autograder.checks.ch01_recurrent.pytorch_cells import RECURRENT_LAYERS
from tfcourse import recurrent


def from_zeros(draw: Draw) -> Case:
    """Sequences without a first state."""
    b, t, e, d = draw.sizes(4)
    return Case({"x": draw.normal(b, t, e), **weights_by_name(draw, 1, e, d)})


def from_state(draw: Draw) -> Case:
    """Sequences with a first state."""
    case = from_zeros(draw)
    return case.with_arguments(h_0=draw.normal(len(case.arguments["x"]), len(case.arguments["weight_hh"])))


def one_step(draw: Draw) -> Case:
    """Sequences of a single step."""
    case = from_zeros(draw)
    return case.with_arguments(x=case.arguments["x"][:, :1])


def many_examples(draw: Draw, size: int) -> Case:
    """More examples of the same length."""
    return Case({"x": draw.normal(2 * size, 4, 2), **weights_by_name(draw, 1, 2, 5)})


RNN_FORWARD = Exercise(
    reference=recurrent.rnn_forward,
    rows=(
        rows.numbers(
            3, from_zeros, one_step, title="From zeros on, the state after every step and the last are right."
        ),
        rows.numbers(1.75, from_state, name="first state", title="A first state that is given is where it begins."),
        rows.precision(0.5, from_zeros, half=False),
        rows.inputs_kept(0.5, from_state),
        rows.device(0.25, from_zeros),
        rows.no_loop(0.5, many_examples, over=EXAMPLES),
    ),
    forbidden=RECURRENT_LAYERS,
    rule_case=(from_zeros, from_state),
)
