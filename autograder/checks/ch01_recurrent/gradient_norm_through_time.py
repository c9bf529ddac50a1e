"""The check of ``gradient_norm_through_time``: how large the gradient still is at every step on its way back."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch01_recurrent import rnn_forward as runs
from autograder.checks.ch01_recurrent.cell_cases import EXAMPLES
from autograder.checks.ch01_recurrent.pytorch_cells import RECURRENT_LAYERS
from tfcourse import recurrent

AUTOGRAD = ("backward", "grad", "_make_dual")


def _with_gradient(draw: Draw, case: Case) -> Case:
    b, d = len(case.arguments["x"]), len(case.arguments["weight_hh"])
    return case.with_arguments(grad_last=draw.normal(b, d))


def from_zeros(draw: Draw) -> Case:
    """A run that begins with zeros, and a gradient at its end."""
    return _with_gradient(draw, runs.from_zeros(draw))


def from_state(draw: Draw) -> Case:
    """A run with an initial state, and a gradient at its end."""
    return _with_gradient(draw, runs.from_state(draw))


def growing(draw: Draw) -> Case:
    """Large weights from state to state, and inputs small enough that no tanh is saturated: the gradient grows on its way."""
    case = from_zeros(draw)
    small = {name: case.arguments[name] / 10 for name in ("x", "bias_ih", "bias_hh")}
    return case.with_arguments(**small, weight_hh=case.arguments["weight_hh"] * 4)


def one_step(draw: Draw) -> Case:
    """A sequence of one step: the only norm is that of the gradient that is given."""
    case = from_zeros(draw)
    return case.with_arguments(x=case.arguments["x"][:, :1])


def one_for_all(draw: Draw) -> Case:
    """A gradient for one example, which broadcasting would spread to all."""
    case = from_zeros(draw)
    return case.with_arguments(grad_last=case.arguments["grad_last"][:1])


def flat(draw: Draw) -> Case:
    """Inputs without an axis for the batch."""
    case = from_zeros(draw)
    return case.with_arguments(x=case.arguments["x"][0])


def many_examples(draw: Draw, size: int) -> Case:
    """More examples of the same length."""
    return _with_gradient(draw, runs.many_examples(draw, size))


GRADIENT_NORM_THROUGH_TIME = Exercise(
    reference=recurrent.gradient_norm_through_time,
    rows=(
        rows.numbers(
            2.75,
            from_zeros,
            growing,
            gradients=False,
            title="The norm of the gradient is right at every step, where it shrinks and where it grows.",
        ),
        rows.numbers(
            1.5,
            from_state,
            name="first state",
            gradients=False,
            title="A first state that is given is where the run begins.",
        ),
        rows.precision(
            0.5,
            from_zeros,
            one_step,
            half=False,
            title="What goes in as float64 comes out as such, and a sequence of one step has one norm.",
        ),
        rows.batch_independence(0.25, from_state, batched=("x", "grad_last", "h_0")),
        rows.device(0.5, from_zeros),
        rows.errors(
            0.5, from_zeros, one_for_all, flat, title="Inputs or a gradient of another shape are a ValueError."
        ),
        rows.no_loop(0.5, many_examples, over=EXAMPLES),
    ),
    forbidden=(*RECURRENT_LAYERS, *AUTOGRAD),
    rule_case=(from_zeros, from_state),
)
