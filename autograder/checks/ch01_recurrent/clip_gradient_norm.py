"""The check of ``clip_gradient_norm``: a gradient that is too long is shortened, without turning it."""

from __future__ import annotations

from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import inputs_and_device
from autograder.checks.variants import changed
from tfcourse import recurrent


def _gradients(draw: Draw, scale: float) -> list[Tensor]:
    """Gradients of several shapes: the first is much longer than the others, so that clipping each by itself shows."""
    a, b, c = draw.sizes(3)
    return [draw.normal(a, b, scale=3 * scale), draw.normal(c, scale=scale), draw.normal(b, 1, c, scale=scale / 2)]


def long_gradients(draw: Draw) -> Case:
    """Together longer than allowed."""
    return Case({"gradients": _gradients(draw, 1.0), "max_norm": 1.5})


def short_gradients(draw: Draw) -> Case:
    """Together shorter than allowed; the norm takes computing all the same."""
    return Case({"gradients": _gradients(draw, 0.01), "max_norm": 2.0})


def no_gradients_at_all(draw: Draw) -> Case:
    """All zero."""
    return Case({"gradients": [gradient * 0 for gradient in _gradients(draw, 1.0)], "max_norm": 0.5})


def huge_gradients(draw: Draw) -> Case:
    """So long that the sum of their squares is more than float16 can hold."""
    return Case({"gradients": [draw.normal(5, 6, scale=100.0), draw.normal(7, scale=100.0)], "max_norm": 30.0})


def nothing_allowed(draw: Draw) -> Case:
    """A norm of zero allowed: every gradient would be lost."""
    return Case({"gradients": _gradients(draw, 1.0), "max_norm": 0.0})


CLIP_GRADIENT_NORM = Exercise(
    reference=recurrent.clip_gradient_norm,
    rows=(
        rows.numbers(
            2.75,
            long_gradients,
            gradients=False,
            title="Long gradients get the norm max_norm, all by the same factor; the norm before is returned too.",
        ),
        rows.numbers(1.5, short_gradients, name="short", gradients=False, title="Short gradients stay as they are."),
        rows.edge(
            0.5,
            no_gradients_at_all,
            name="zeros",
            gradients=False,
            dtypes=(),
            title="Gradients that are all zero stay zero, and their norm is zero.",
        ),
        rows.precision(0.5, huge_gradients, double=False, title="In half precision the squares are summed in float32."),
        inputs_and_device(0.75, long_gradients),
        rows.errors(
            0.5,
            long_gradients,
            nothing_allowed,
            changed(long_gradients, gradients=[]),
            title="A max_norm that is not positive is a ValueError, and so are no gradients.",
        ),
    ),
    # The last is what the others, written in Python, are seen to call.
    forbidden=("clip_grad_norm_", "clip_grad_norm", "clip_grads_with_norm_", "get_total_norm", "_foreach_norm"),
    rule_case=long_gradients,
)
