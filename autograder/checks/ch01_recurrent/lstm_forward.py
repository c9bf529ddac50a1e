"""The check of ``lstm_forward``: the LSTM along a sequence, past the padding."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch01_recurrent.cell_cases import EXAMPLES, padding_behind, weights_by_name
from autograder.checks.ch01_recurrent.pytorch_cells import RECURRENT_LAYERS
from tfcourse import recurrent


def from_zeros(draw: Draw) -> Case:
    """Sequences without an initial state."""
    b, t, e, d = draw.sizes(4)
    return Case({"x": draw.normal(b, t, e), **weights_by_name(draw, 4, e, d)})


def single_size(draw: Draw) -> Case:
    """As many examples as steps, inputs and states: the shapes do not show which axis is time."""
    return Case({"x": draw.normal(3, 3, 3), **weights_by_name(draw, 4, 3, 3)})


def single_example(draw: Draw) -> Case:
    """A batch of one."""
    t, e, d = draw.sizes(3)
    return Case({"x": draw.normal(1, t, e), **weights_by_name(draw, 4, e, d)})


def from_state(draw: Draw) -> Case:
    """Sequences with an initial hidden state and cell state."""
    case = from_zeros(draw)
    b, d = len(case.arguments["x"]), case.arguments["weight_hh"].shape[1]
    return case.with_arguments(state=(draw.normal(b, d), draw.normal(b, d)))


def padded(draw: Draw) -> Case:
    """Padding behind the tokens."""
    case = from_zeros(draw)
    return case.with_arguments(mask=padding_behind(draw, *case.arguments["x"].shape[:2]))


def padded_in_front(draw: Draw) -> Case:
    """Padding in front of the tokens."""
    case = padded(draw)
    return case.with_arguments(mask=case.arguments["mask"].flip(1))


def many_examples(draw: Draw, size: int) -> Case:
    """More examples of the same length."""
    return Case({"x": draw.normal(2 * size, 4, 2), **weights_by_name(draw, 4, 2, 3)})


LSTM_FORWARD = Exercise(
    reference=recurrent.lstm_forward,
    rows=(
        rows.numbers(
            3.25,
            from_zeros,
            single_size,
            gradients=False,
            title="From zeros on, the state after every step and both last ones are right.",
        ),
        rows.numbers(
            1.25,
            from_state,
            name="first state",
            gradients=False,
            title="A first state and cell are where it begins.",
        ),
        rows.numbers(
            2,
            padded,
            name="mask",
            gradients=False,
            title="Padding changes neither state nor cell, and its states are zeros.",
        ),
        rows.edge(
            0.75,
            from_zeros,
            single_example,
            padded_in_front,
            name="gradients",
            title="Gradients flow through all steps, padding in front is skipped too, and float64 stays float64.",
        ),
        rows.device(0.25, padded, from_zeros),
        rows.no_loop(0.5, many_examples, over=EXAMPLES),
    ),
    forbidden=RECURRENT_LAYERS,
    rule_case=(from_zeros, padded),
)
