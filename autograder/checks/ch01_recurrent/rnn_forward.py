"""The check of ``rnn_forward``: the plain cell along a sequence."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch01_recurrent.cell_cases import EXAMPLES, weights_by_name
from autograder.checks.ch01_recurrent.pytorch_cells import RECURRENT_LAYERS
from autograder.checks.ch03_scaled_dot_product.attention_inputs import inputs_and_device
from tfcourse import recurrent


def from_zeros(draw: Draw) -> Case:
    """Sequences without an initial state."""
    b, t, e, d = draw.sizes(4)
    return Case({"x": draw.normal(b, t, e), **weights_by_name(draw, 1, e, d)})


def from_state(draw: Draw) -> Case:
    """Sequences with an initial state."""
    case = from_zeros(draw)
    return case.with_arguments(h_0=draw.normal(len(case.arguments["x"]), len(case.arguments["weight_hh"])))


def single_size(draw: Draw) -> Case:
    """As many examples as steps, inputs and states: the shapes do not show which axis is time."""
    return Case({"x": draw.normal(3, 3, 3), **weights_by_name(draw, 1, 3, 3)})


def single_example(draw: Draw) -> Case:
    """A batch of one."""
    case = from_zeros(draw)
    return case.with_arguments(x=case.arguments["x"][:1])


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
            3.25,
            from_zeros,
            single_size,
            gradients=False,
            title="From zeros on, the state after every step and the last are right.",
        ),
        rows.numbers(
            1.5,
            from_state,
            name="first state",
            title="A first state that is given is where it begins, and gradients flow back to it.",
        ),
        rows.edge(
            0.5,
            from_zeros,
            one_step,
            single_example,
            name="gradients",
            title="Gradients flow through all steps, a single step or example works, and float64 stays float64.",
        ),
        inputs_and_device(0.75, from_state, from_zeros),
        rows.no_loop(0.5, many_examples, over=EXAMPLES),
    ),
    forbidden=RECURRENT_LAYERS,
    rule_case=(from_zeros, from_state),
)
