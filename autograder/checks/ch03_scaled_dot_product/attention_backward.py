"""The check of ``attention_backward``: the gradients of attention by hand."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product import attention_inputs as inputs
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from tfcourse import attention

# Every way to make PyTorch differentiate passes through one of these: backwards, forwards, or the derivative of its
# softmax.
AUTOGRAD = (
    *("backward", "grad", "_make_dual", "_softmax_backward_data"),
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_cudnn_attention_backward",
    "_scaled_dot_product_fused_attention_overrideable_backward",
)


def batch(draw: Draw) -> Case:
    """No mask, one leading dimension."""
    return _with_gradient(draw, inputs.batch(draw))


def unbatched(draw: Draw) -> Case:
    """No mask, no leading dimension."""
    return _with_gradient(draw, inputs.unbatched(draw))


def masked(draw: Draw) -> Case:
    """With a mask in which every query may attend to something."""
    return _with_gradient(draw, inputs.masked(draw))


def empty_row(draw: Draw) -> Case:
    """With a query that may attend to nothing."""
    return _with_gradient(draw, inputs.empty_row(draw))


def large(draw: Draw) -> Case:
    """Scores in the hundreds. Two equal keys fit the first query best: it attends to both, so its weights are not just ones and zeros,
    which would let no gradient through. Values and gradient are small, because large queries and keys multiply the rounding errors of their
    products.
    """
    case = _with_gradient(draw, inputs.large(draw))
    q, k = case.arguments["q"], case.arguments["k"].clone()
    k[:, :2] = inputs.LOUDEST * q[:, :1].sign()
    return case.with_arguments(k=k, v=case.arguments["v"] * 0.3, grad_output=case.arguments["grad_output"] * 0.3)


def float16_range(draw: Draw) -> Case:
    """Values and a gradient, one of a kind, whose dot products are too large for float16; the results are not."""
    t, dh = draw.sizes(2, low=3)
    v = 30 * draw.normal(t + 2, 128).sign()
    q, k = draw.normal(t, dh, scale=0.1), draw.normal(t + 2, dh, scale=0.1)
    return Case({"q": q, "k": k, "v": v, "grad_output": v[:t]})


def longer(draw: Draw, size: int) -> Case:
    """Inputs whose leading and length axes grow with a size."""
    return _with_gradient(draw, inputs.longer(draw, size))


def _with_gradient(draw: Draw, case: Case) -> Case:
    """The case, with a gradient that arrives at the output."""
    q, v = case.arguments["q"], case.arguments["v"]
    return case.with_arguments(grad_output=draw.normal(*q.shape[:-1], v.shape[-1]))


def _some_of_three(points: float, *places: int, name: str, title: str) -> rows.Row:
    """A row about the gradients at some places of the result, all asked with the same cases."""
    options = {"outputs": [f"output[{index}]" for index in places]}

    def probes(draw: Draw) -> Sequence[rows.Probe]:
        return [rows.Probe((draw.case(batch).request(),), "matches_part", options)]

    return rows.Row(name, title, points, probes)


ATTENTION_BACKWARD = Exercise(
    reference=attention.attention_backward,
    rows=(
        _some_of_three(
            4.75, 0, 1, name="other gradients", title="The gradients of the queries and of the keys are right."
        ),
        _some_of_three(1.25, 2, name="values' gradient", title="The gradient of the values is right."),
        rows.numbers(2.75, masked, name="mask", title="Nothing flows back through a forbidden pair.", gradients=False),
        rows.edge(
            1,
            empty_row,
            large,
            unbatched,
            name="edges",
            title="A query that may attend to nothing has zero gradients; large scores and no leading dimension give right ones.",
            gradients=False,
            dtypes=(),
        ),
        rows.precision(0.75, batch, float16_range),
        inputs.inputs_and_device(0.75, batch, masked),
        rows.no_loop(0.75, longer, over="examples, heads, queries or keys"),
    ),
    forbidden=(*ATTENTION, *AUTOGRAD),
    rule_case=(batch, masked),
)
