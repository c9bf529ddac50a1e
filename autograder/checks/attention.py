"""Checks of chapter 03: scaled dot-product attention."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking import aspects as look
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from tfcourse import attention

CHAPTER = "03_scaled_dot_product"
FUSED = ("scaled_dot_product_attention", "multi_head_attention_forward", "_native_multi_head_attention")


def qkv(draw: Draw) -> Case:
    """Queries, keys and values with two leading dimensions, no mask."""
    b, h, t, s, dh, dv = draw.sizes(6)
    return Case({"q": draw.normal(b, h, t, dh), "k": draw.normal(b, h, s, dh), "v": draw.normal(b, h, s, dv)})


def unbatched(draw: Draw) -> Case:
    """Queries, keys and values without a leading dimension."""
    t, s, dh, dv = draw.sizes(4)
    return Case({"q": draw.normal(t, dh), "k": draw.normal(s, dh), "v": draw.normal(s, dv)})


def masked(draw: Draw) -> Case:
    """With a mask of its own for every head, in which every query may attend to something."""
    case = qkv(draw)
    return case.with_arguments(mask=draw.mask(*_pairs(case)))


def broadcast_mask(draw: Draw) -> Case:
    """With one mask for all leading dimensions."""
    case = qkv(draw)
    return case.with_arguments(mask=draw.mask(*_pairs(case)[-2:]))


def empty_row(draw: Draw) -> Case:
    """With a query that may attend to nothing."""
    case = masked(draw)
    mask = case.arguments["mask"].clone()
    mask[..., 1, :] = False
    return case.with_arguments(mask=mask)


def causal(draw: Draw) -> Case:
    """Self-attention lengths with a causal mask."""
    b, h, t, dh, dv = draw.sizes(5, low=3)
    case = Case({"q": draw.normal(b, h, t, dh), "k": draw.normal(b, h, t, dh), "v": draw.normal(b, h, t, dv)})
    return case.with_arguments(mask=torch.ones(t, t, dtype=torch.bool).tril())


def large(draw: Draw) -> Case:
    """Scores in the thousands: an exponential without a maximum taken off overflows."""
    case = qkv(draw)
    return case.with_arguments(q=case.arguments["q"] * 100, k=case.arguments["k"] * 100)


def longer(draw: Draw, factor: int) -> Case:
    """Inputs whose leading and length axes grow by a factor."""
    b, h, t, s = 2 * factor, 3 * factor, 4 * factor, 5 * factor
    return Case({"q": draw.normal(b, h, t, 6), "k": draw.normal(b, h, s, 6), "v": draw.normal(b, h, s, 7)})


def _pairs(case: Case) -> tuple[int, ...]:
    q, k = case.arguments["q"], case.arguments["k"]
    return (*q.shape[:-1], k.shape[-2])


# The mistakes below share one shape: weights from scores, then the weighted sum.


def _weights(q: Tensor, k: Tensor, mask: Tensor | None, *, scale: float | None = None, dim: int = -1) -> Tensor:
    scores = q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is None:
        return torch.softmax(scores, dim)
    return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim).masked_fill(~mask, 0.0)


@misconception("no scale", read="why-scale")
def no_scale(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are not divided by the square root of the key width. Their variance grows with the width, so the
    softmax saturates and its gradients vanish.
    """
    return _weights(q, k, mask, scale=1.0) @ v


@misconception("scaled by the width", read="why-scale")
def scale_by_width(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are divided by the key width itself, not by its square root: their variance falls below one and
    the weights turn flat.
    """
    return _weights(q, k, mask, scale=1 / q.shape[-1]) @ v


@misconception("scaled by the length", read="why-scale")
def scale_by_length(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are divided by the square root of the number of keys. The scale belongs to the width of queries
    and keys (the last axis), which is what a dot product adds up.
    """
    return _weights(q, k, mask, scale=k.shape[-2] ** -0.5) @ v


@misconception("scale multiplied", read="why-scale")
def scale_multiplied(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are multiplied by the square root of the width where they should be divided by it."""
    return _weights(q, k, mask, scale=q.shape[-1] ** 0.5) @ v


@misconception("softmax over queries", read="scores-and-weights")
def softmax_over_queries(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax runs over the queries, so it is each key's column that sums to one. Each query's row must: the
    softmax goes over the keys, the last axis of the scores.
    """
    return _weights(q, k, mask, dim=-2) @ v


@misconception("mask inverted", read="masks")
def mask_inverted(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is read the wrong way round: here True means that a query may attend, as in
    F.scaled_dot_product_attention and opposite to nn.MultiheadAttention.
    """
    return _weights(q, k, None if mask is None else ~mask) @ v


@misconception("mask ignored", read="masks")
def mask_ignored(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is not used at all."""
    return _weights(q, k, None) @ v


@misconception("mask after softmax", read="masks")
def mask_after_softmax(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is applied after the softmax. The forbidden keys have taken their share by then, and the rest no
    longer sums to one.
    """
    weights = _weights(q, k, None)
    return (weights if mask is None else weights * mask) @ v


@misconception("masked scores set to zero", read="masks")
def mask_with_zero(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The forbidden scores become zero before the softmax. A score of zero still gets weight exp(0) = 1: only minus
    infinity gets none.
    """
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    return torch.softmax(scores if mask is None else scores * mask, -1) @ v


@misconception("mask added as 0 and 1", read="masks")
def mask_added(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The boolean mask is added to the scores, so a permitted key gains 1 and a forbidden one loses nothing. An
    additive mask holds 0 and minus infinity.
    """
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    return torch.softmax(scores if mask is None else scores + mask, -1) @ v


@misconception("NaN in an empty row", read="fully-masked-row")
def empty_row_is_nan(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """A row of scores that are all minus infinity makes the softmax divide zero by zero. Such a row must give
    zeros, and NaN would spread through everything after it.
    """
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, float("-inf")), -1) @ v


@misconception("empty row averages", read="fully-masked-row")
def empty_row_is_mean(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """A query that may attend to nothing receives the mean of the values: with the same large negative score
    everywhere the softmax is uniform. It must receive zeros.
    """
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, -1e9), -1) @ v


@misconception("exponential overflows", read="scores-and-weights")
def exponential_overflows(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax is computed as exp(x) / sum(exp(x)) without taking off the maximum first: large scores overflow
    to infinity and give NaN.
    """
    grown = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).exp()
    grown = grown if mask is None else grown * mask
    total = grown.sum(-1, keepdim=True)
    return grown / torch.where(total == 0, 1.0, total) @ v


@misconception("changes its input", read="what-goes-wrong-03")
def scales_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """An in-place operation (such as q *= …) changes the caller's tensor: the next call gets other queries."""
    q *= q.shape[-1] ** -0.5
    return _weights(q, k, mask, scale=1.0) @ v


@misconception("always float32", read="device-and-dtype")
def always_float32(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Everything is converted to float32: a half- or double-precision model gets a result of another dtype and
    fails at the next layer.
    """
    return _weights(q.float(), k.float(), mask) @ v.float()


@misconception("made on the CPU", read="device-and-dtype")
def made_on_the_cpu(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """A tensor is made on the CPU inside the function. It works until the inputs live on a GPU: take device and
    dtype from the inputs.
    """
    scale = torch.tensor([q.shape[-1]], dtype=q.dtype, device="cpu") ** -0.5
    return _weights(q * scale, k, mask, scale=1.0) @ v


SCALED_DOT_PRODUCT_ATTENTION = Exercise(
    reference=attention.scaled_dot_product_attention,
    chapter=CHAPTER,
    aspects=(
        look.shape(1, qkv, unbatched),
        look.values(3, qkv, unbatched),
        look.values(
            2,
            masked,
            broadcast_mask,
            name="mask",
            title="A mask lets a query attend where it is True, and nowhere else.",
        ),
        look.values(1, empty_row, name="empty row", title="A query that may attend to nothing gets zeros."),
        look.values(1, large, name="large scores", title="Scores in the thousands give finite, right numbers."),
        look.gradients(1, masked, empty_row, wrt=("q", "k", "v")),
        look.batch_independence(0.5, qkv, batched=("q", "k", "v")),
        look.causality(0.5, causal, future=("k", "v")),
        look.permutation(0.5, qkv, keys=("k", "v")),
        look.unmutated(0.5, masked),
        look.half_precision(0.5, masked),
        look.double_precision(0.5, masked),
        look.device(0.5, masked),
        look.vectorised(0.5, longer, axis="examples, heads, queries or keys"),
    ),
    forbidden=FUSED,
    rule_case=qkv,
    misconceptions=(
        no_scale,
        scale_by_width,
        scale_by_length,
        scale_multiplied,
        softmax_over_queries,
        mask_inverted,
        mask_ignored,
        mask_after_softmax,
        mask_with_zero,
        mask_added,
        empty_row_is_nan,
        empty_row_is_mean,
        exponential_overflows,
        scales_in_place,
        always_float32,
        made_on_the_cpu,
    ),
)
