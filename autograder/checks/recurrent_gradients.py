"""Checks of chapter 01: the gradient on its way back through time, and its leash."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from autograder.checking import aspects as look
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.recurrent import (
    CHAPTER,
    EXAMPLES,
    READY_MADE,
    Four,
    first_state,
    run_from_state,
    run_from_zeros,
    run_of_many,
    tanh_steps,
    with_four_weights,
)
from autograder.checks.sections import HEADINGS
from tfcourse import recurrent

AUTOGRAD = ("backward", "grad", "_make_dual")


# ------------------------------------------------------------------------------------------- gradients through time


def _with_gradient(draw: Draw, case: Case) -> Case:
    b, d = len(case.arguments["x"]), len(case.arguments["weight_hh"])
    return case.with_arguments(grad_last=draw.normal(b, d))


def back_from_zeros(draw: Draw) -> Case:
    """A run that begins with zeros, and a gradient at its end."""
    return _with_gradient(draw, run_from_zeros(draw))


def back_from_state(draw: Draw) -> Case:
    """A run with a first state, and a gradient at its end."""
    return _with_gradient(draw, run_from_state(draw))


def back_from_strong(draw: Draw) -> Case:
    """Large weights from state to state, and inputs small enough that no tanh is saturated: the gradient grows on its way."""
    case = back_from_zeros(draw)
    small = {name: case.arguments[name] / 10 for name in ("x", "bias_ih", "bias_hh")}
    return case.with_arguments(**small, weight_hh=case.arguments["weight_hh"] * 4)


def back_one_step(draw: Draw) -> Case:
    """A sequence of one step: the only norm is that of the gradient given."""
    case = back_from_zeros(draw)
    return case.with_arguments(x=case.arguments["x"][:, :1])


def back_of_many(draw: Draw, factor: int) -> Case:
    """More examples of the same length."""
    case = run_of_many(draw, factor)
    return case.with_arguments(grad_last=draw.normal(3 * factor, 5))


def _back(
    x: Tensor,
    weights: Four,
    grad_last: Tensor,
    h_0: Tensor | None,
    step: Callable[[Tensor, Tensor, Tensor, Tensor], Tensor],
) -> list[Tensor]:
    """The gradients from the first step to the last; `step` turns one into the one before (gradient, h_t, h_{t-1}, W_hh)."""
    states = tanh_steps(x.unbind(1), first_state(x, weights[1], h_0), weights)
    gradients = [grad_last]
    for t in range(len(states) - 1, 0, -1):
        gradients.insert(0, step(gradients[0], states[t], states[t - 1], weights[1]))
    return gradients


def _right_step(gradient: Tensor, after: Tensor, before: Tensor, weight: Tensor) -> Tensor:
    return (gradient * (1 - after**2)) @ weight


def _norms(gradients: Sequence[Tensor]) -> Tensor:
    return torch.stack([gradient.norm(dim=-1) for gradient in gradients], dim=1)


@misconception("matrix transposed", read="gradient-through-time")
@with_four_weights
def back_transposed(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The gradient is multiplied with the matrix that the state is multiplied with on the way there. The way back takes its transpose;
    the matrix is square, so no shape tells.
    """
    return _norms(_back(x, weights, grad_last, h_0, lambda g, after, before, w: (g * (1 - after**2)) @ w.T))


@misconception("slope of tanh forgotten", read="gradient-through-time")
@with_four_weights
def back_without_slope(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The slope of tanh, 1 - h², is missing. It is at most one, and a second reason why gradients vanish."""
    return _norms(_back(x, weights, grad_last, h_0, lambda g, after, before, w: g @ w))


@misconception("slope at the step before", read="gradient-through-time")
@with_four_weights
def back_slope_before(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The slope is taken at the state that the gradient arrives at. The tanh that it passes is the one that made the state where it
    comes from.
    """
    return _norms(_back(x, weights, grad_last, h_0, lambda g, after, before, w: (g * (1 - before**2)) @ w))


@misconception("matrix before slope", read="gradient-through-time")
@with_four_weights
def back_matrix_first(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The matrix comes before the slope. On the way there the matrix is applied first and the tanh last, so on the way back the tanh
    comes first.
    """
    return _norms(_back(x, weights, grad_last, h_0, lambda g, after, before, w: (g @ w) * (1 - after**2)))


@misconception("slope of the logistic function", read="gradient-through-time")
@with_four_weights
def back_logistic(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The slope is h (1 - h), which belongs to the logistic function. That of tanh is 1 - h²."""
    return _norms(_back(x, weights, grad_last, h_0, lambda g, after, before, w: (g * after * (1 - after)) @ w))


@misconception("the same at every step", read="gradient-through-time")
@with_four_weights
def back_unchanged(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The norm of the gradient that is given stands at every step. On its way back the gradient is multiplied at each step, with the slope
    of tanh and with the matrix, and that makes it shorter or longer.
    """
    return _norms([grad_last] * x.shape[1])


@misconception("from the end to the beginning", read="gradient-through-time")
@with_four_weights
def back_in_reverse(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The norms stand in the order in which they were computed, the last step first. Column t belongs to step t."""
    return _norms(_back(x, weights, grad_last, h_0, _right_step)).flip(1)


@misconception("squared norms", read="gradient-through-time")
@with_four_weights
def back_squared(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The root is missing: these are the squares of the norms."""
    return _norms(_back(x, weights, grad_last, h_0, _right_step)).square()


@misconception("one norm for the batch", read="gradient-through-time")
@with_four_weights
def back_over_batch(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """There is one norm for the whole batch at every step. Every example has a gradient of its own, and its norm: (B, T)."""
    return torch.stack([gradient.norm() for gradient in _back(x, weights, grad_last, h_0, _right_step)])


@misconception("relative to the last", read="gradient-through-time")
@with_four_weights
def back_relative(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The norms are divided by that of the last gradient. That makes a good figure; the norms themselves are asked for."""
    norms = _norms(_back(x, weights, grad_last, h_0, _right_step))
    return norms / norms[:, -1:]


@misconception("one step too far", read="gradient-through-time")
@with_four_weights
def back_too_far(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The gradient is followed to the state before the first step: T + 1 norms. There is one for each of the T steps."""
    _, weight_hh, _, _ = weights
    gradients = _back(x, weights, grad_last, h_0, _right_step)
    first = tanh_steps(x[:, :1].unbind(1), first_state(x, weight_hh, h_0), weights)[0]
    return _norms([_right_step(gradients[0], first, first, weight_hh), *gradients])


@misconception("first state ignored", read="gradient-through-time")
@with_four_weights
def back_ignores_first_state(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The first state is not used. It shapes all the states after it, and with them the slopes on the way back."""
    return _norms(_back(x, weights, grad_last, None, _right_step))


@misconception("one example after another", read="unrolled")
@with_four_weights
def back_by_examples(x: Tensor, weights: Four, grad_last: Tensor, h_0: Tensor | None = None) -> Tensor:
    """The numbers are right, but a Python loop goes from example to example. At every step all examples go back together."""
    _, weight_hh, _, _ = weights
    h = first_state(x, weight_hh, h_0)
    rows = [
        _norms(_back(x[b : b + 1], weights, grad_last[b : b + 1], h[b : b + 1], _right_step)) for b in range(len(x))
    ]
    return torch.cat(rows)


GRADIENT_NORM_THROUGH_TIME = Exercise(
    reference=recurrent.gradient_norm_through_time,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, back_from_zeros, back_from_state),
        look.values(1.5, back_from_zeros, title="The norm of the gradient is right at every step."),
        look.values(1, back_from_strong, name="growing", title="They are right where the gradient grows."),
        look.values(
            1, back_from_state, name="first state", title="A first state that is given is where the run begins."
        ),
        look.values(
            0.5, back_one_step, name="one step", title="The last norm is that of the gradient that is given.", easy=True
        ),
        look.batch_independence(0.5, back_from_state, batched=("x", "grad_last", "h_0")),
        look.double_precision(0.5, back_from_state),
        look.device(0.5, back_from_state),
        look.vectorised(0.5, back_of_many, axis=EXAMPLES),
    ),
    forbidden=(*READY_MADE, *AUTOGRAD),
    rule_case=(back_from_zeros, back_from_state),
    misconceptions=(
        back_transposed,
        back_without_slope,
        back_slope_before,
        back_matrix_first,
        back_logistic,
        back_unchanged,
        back_in_reverse,
        back_squared,
        back_over_batch,
        back_relative,
        back_too_far,
        back_ignores_first_state,
        back_by_examples,
    ),
)


# -------------------------------------------------------------------------------------------------------- clipping


def _gradients(draw: Draw, scale: float) -> list[Tensor]:
    """Gradients of several shapes: the first is much longer than the others, so that clipping each by itself shows."""
    a, b, c = draw.sizes(3)
    return [draw.normal(a, b, scale=3 * scale), draw.normal(c, scale=scale), draw.normal(b, 1, c, scale=scale / 2)]


def long_gradients(draw: Draw) -> Case:
    """Together longer than allowed."""
    return Case({"gradients": _gradients(draw, 1.0), "max_norm": 1.5})


def short_gradients(draw: Draw) -> Case:
    """Together shorter than allowed."""
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


def _allowed(max_norm: float) -> None:
    if max_norm <= 0:
        raise ValueError(f"max_norm={max_norm}")


def _length(gradients: Sequence[Tensor]) -> Tensor:
    return torch.cat([gradient.flatten().float() for gradient in gradients]).square().sum().sqrt()


def _scaled(gradients: Sequence[Tensor], scale: Tensor) -> list[Tensor]:
    return [(gradient.float() * scale).to(gradient.dtype) for gradient in gradients]


@misconception("each tensor by itself", read="clipping")
def clip_each(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """Each tensor is clipped by its own norm. Long ones are shortened and short ones are not, so the step goes into another direction.
    There is one norm, that of all of them together.
    """
    _allowed(max_norm)
    return [_scaled([gradient], (max_norm / _length([gradient])).clamp(max=1.0))[0] for gradient in gradients], _length(
        gradients
    )


@misconception("number by number", read="clipping")
def clip_by_value(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """Every number is cut off at max_norm. That turns the gradient, towards the diagonal; here it is only to become shorter."""
    _allowed(max_norm)
    return [gradient.clamp(-max_norm, max_norm) for gradient in gradients], _length(gradients)


@misconception("short ones made longer", read="clipping")
def clip_always(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """Every gradient is brought to the length max_norm, also one that was shorter. Near a minimum gradients are short, and must stay so."""
    _allowed(max_norm)
    norm = _length(gradients)
    scale = torch.where(norm > 0, max_norm / norm, torch.ones_like(norm))
    return _scaled(gradients, scale), norm


@misconception("never clipped", read="clipping")
def clip_never(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """Long gradients come back as long as they were. A step as long as that is what clipping is there to prevent: multiply all of them
    with max_norm over their norm.
    """
    _allowed(max_norm)
    return [gradient.clone() for gradient in gradients], _length(gradients)


@misconception("larger factor taken", read="clipping")
def clip_upside_down(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """Of the two factors, 1 and max_norm over the norm, the larger is taken, so that long gradients stay long and short ones are made
    longer. It is the smaller: clipping only shortens.
    """
    _allowed(max_norm)
    norm = _length(gradients)
    return _scaled(gradients, (max_norm / norm).clamp(min=1.0)), norm


@misconception("sum of the norms", read="clipping")
def clip_by_sum_of_norms(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """The norms of the tensors are added up. The norm of all is the root of the sum of all squares, which is less."""
    _allowed(max_norm)
    norm = torch.stack([_length([gradient]) for gradient in gradients]).sum()
    return _scaled(gradients, (max_norm / norm).clamp(max=1.0)), norm


@misconception("root forgotten", read="clipping")
def clip_by_square(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """The sum of the squares is taken for the norm: its root is missing."""
    _allowed(max_norm)
    norm = _length(gradients).square()
    return _scaled(gradients, (max_norm / norm).clamp(max=1.0)), norm


@misconception("largest number for norm", read="clipping")
def clip_by_largest(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """The largest number is taken for the norm. The Euclidean norm is the root of the sum of all squares."""
    _allowed(max_norm)
    norm = torch.stack([gradient.float().abs().max() for gradient in gradients]).max()
    return _scaled(gradients, (max_norm / norm).clamp(max=1.0)), norm


@misconception("norm after clipping", read="clipping")
def clip_norm_after(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """The norm that is returned is that of the clipped gradients, which is never more than max_norm. How long they were before is what
    one watches while a network learns.
    """
    _allowed(max_norm)
    clipped = _scaled(gradients, (max_norm / _length(gradients)).clamp(max=1.0))
    return clipped, _length(clipped)


@misconception("norm as a Python number", read="clipping")
def clip_norm_as_number(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], float]:
    """The norm is returned as a Python number. A tensor without dimensions is asked for: item() makes a GPU wait at every step."""
    _allowed(max_norm)
    norm = _length(gradients)
    return _scaled(gradients, (max_norm / norm).clamp(max=1.0)), norm.item()


@misconception("zero divided by zero", read="clipping")
def clip_zero_by_zero(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """The gradients are divided by their norm first, and multiplied again. If they are all zero, that is 0 / 0, and NaN spreads to all
    weights at the next step.
    """
    _allowed(max_norm)
    norm = _length(gradients)
    unit = [gradient.float() / norm for gradient in gradients]
    return [
        (u * norm.clamp(max=max_norm)).to(gradient.dtype) for u, gradient in zip(unit, gradients, strict=True)
    ], norm


@misconception("squares overflow", read="clipping")
def clip_overflows(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """The squares are summed in half precision. Beyond 65 504 a float16 is infinite, and every gradient becomes zero: sum in float32."""
    _allowed(max_norm)
    norm = torch.stack([gradient.square().sum() for gradient in gradients]).sum().sqrt()
    scale = (max_norm / norm).clamp(max=1.0)
    return [gradient * scale for gradient in gradients], norm.float()


@misconception("changes its input", read="what-goes-wrong-01")
def clip_in_place(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """The gradients of whoever called are changed in place. PyTorch's own function does that, and its name ends in an underscore to
    say so; here new tensors are asked for.
    """
    _allowed(max_norm)
    norm = _length(gradients)
    for gradient in gradients:
        gradient.mul_((max_norm / norm).clamp(max=1.0))
    return list(gradients), norm


@misconception("norm not checked", read="what-goes-wrong-01")
def clip_unchecked(gradients: Sequence[Tensor], max_norm: float) -> tuple[list[Tensor], Tensor]:
    """A max_norm of zero turns every gradient into zeros, and nothing is learned without a word. Raise a ValueError."""
    norm = _length(gradients)
    return _scaled(gradients, (max_norm / norm).clamp(max=1.0)), norm


CLIP_GRADIENT_NORM = Exercise(
    reference=recurrent.clip_gradient_norm,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, long_gradients),
        look.values(1.5, long_gradients, title="Long gradients get the norm max_norm, all by the same factor."),
        look.values(1, short_gradients, name="short", title="Short gradients stay as they are.", easy=True),
        look.values(0.5, no_gradients_at_all, name="zeros", title="Gradients that are all zero stay zero.", easy=True),
        look.part(
            0.5, long_gradients, output="output[1]", name="norm", title="The norm before clipping is returned too."
        ),
        look.unmutated(0.5, long_gradients),
        look.half_precision(0.5, huge_gradients),
        look.device(0.5, long_gradients),
        look.refuses(0.5, long_gradients, nothing_allowed, title="A max_norm that is not positive is a ValueError."),
    ),
    # The last is what the others, written in Python, are seen to call.
    forbidden=("clip_grad_norm_", "clip_grad_norm", "clip_grads_with_norm_", "get_total_norm", "_foreach_norm"),
    rule_case=long_gradients,
    misconceptions=(
        clip_each,
        clip_by_value,
        clip_always,
        clip_never,
        clip_upside_down,
        clip_by_sum_of_norms,
        clip_by_square,
        clip_by_largest,
        clip_norm_after,
        clip_norm_as_number,
        clip_zero_by_zero,
        clip_overflows,
        clip_in_place,
        clip_unchecked,
    ),
)
