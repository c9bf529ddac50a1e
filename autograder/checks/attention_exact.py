"""Checks of chapter 03: attention's gradients by hand, attention in tiles, and what attention costs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from autograder.checking import aspects as look
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.attention import (
    CHAPTER,
    FUSED,
    LOUDEST,
    batch,
    empty_row,
    large,
    longer,
    masked,
    negative,
    qkv,
    scores_of,
    unbatched,
    weights_of,
)
from autograder.checks.sections import HEADINGS
from tfcourse import attention

# Every way to make PyTorch differentiate passes through one of these: backwards, forwards, or the derivative of its softmax.
AUTOGRAD = (
    *("backward", "grad", "_make_dual", "_softmax_backward_data"),
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_cudnn_attention_backward",
    "_scaled_dot_product_fused_attention_overrideable_backward",
)


# ----------------------------------------------------------------------------------------------- gradients by hand


def with_gradient(draw: Draw, case: Case) -> Case:
    """The case, with a gradient that arrives at the output."""
    q, v = case.arguments["q"], case.arguments["v"]
    return case.with_arguments(grad_output=draw.normal(*q.shape[:-1], v.shape[-1]))


def backward_case(draw: Draw) -> Case:
    """No mask, one leading dimension."""
    return with_gradient(draw, batch(draw))


def backward_unbatched(draw: Draw) -> Case:
    """No mask, no leading dimension."""
    return with_gradient(draw, unbatched(draw))


def backward_heads(draw: Draw) -> Case:
    """No mask, two leading dimensions."""
    return with_gradient(draw, qkv(draw))


def backward_masked(draw: Draw) -> Case:
    """With a mask in which every query may attend to something."""
    return with_gradient(draw, masked(draw))


def backward_empty_row(draw: Draw) -> Case:
    """With a query that may attend to nothing."""
    return with_gradient(draw, empty_row(draw))


def backward_large(draw: Draw) -> Case:
    """Scores in the hundreds. Two keys are alike and the best that the first query can find: it looks at both, and
    its weights are no ones and zeros, past which nothing would flow back. Values and gradient are small, as loud
    queries and keys multiply what rounding leaves of their products.
    """
    case = with_gradient(draw, large(draw))
    q, k = case.arguments["q"], case.arguments["k"].clone()
    k[:, :2] = LOUDEST * q[:, :1].sign()
    return case.with_arguments(k=k, v=case.arguments["v"] * 0.3, grad_output=case.arguments["grad_output"] * 0.3)


def backward_longer(draw: Draw, factor: int) -> Case:
    """Inputs whose leading and length axes grow by a factor."""
    arguments = longer(draw, factor).arguments
    return with_gradient(
        draw, Case({name: value[..., :3] if name == "v" else value[..., :2] for name, value in arguments.items()})
    )


Gradients = tuple[Tensor, Tensor, Tensor]


def through(weights: Tensor, grad_scores: Tensor, q: Tensor, k: Tensor, grad_output: Tensor) -> Gradients:
    """The three gradients from the weights and the gradient of the scaled scores."""
    scale = q.shape[-1] ** -0.5
    return (
        grad_scores @ k * scale,
        grad_scores.transpose(-2, -1) @ q * scale,
        weights.transpose(-2, -1) @ grad_output,
    )


def through_softmax(weights: Tensor, grad_weights: Tensor) -> Tensor:
    """The gradient of the scores from that of the weights."""
    return weights * (grad_weights - (weights * grad_weights).sum(-1, keepdim=True))


@misconception("scale forgotten", read="backward")
def backward_unscaled(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The way back forgets the scale: the scores were divided by the square root of the width, and so are the
    gradients of queries and keys.
    """
    root = q.shape[-1] ** 0.5
    grad_q, grad_k, grad_v = attention.attention_backward(q, k, v, grad_output, mask)
    return grad_q * root, grad_k * root, grad_v


@misconception("scale forgotten for the keys", read="backward")
def backward_keys_unscaled(
    q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None
) -> Gradients:
    """The gradient of the queries is divided by the square root of the width, that of the keys is not. The scale
    stands in front of their product and belongs to both.
    """
    grad_q, grad_k, grad_v = attention.attention_backward(q, k, v, grad_output, mask)
    return grad_q, grad_k * q.shape[-1] ** 0.5, grad_v


@misconception("scale applied twice", read="backward")
def backward_scaled_twice(
    q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None
) -> Gradients:
    """The gradients of queries and keys are divided by the square root of the width twice, say in the scores'
    gradient and again at the end.
    """
    scale = q.shape[-1] ** -0.5
    grad_q, grad_k, grad_v = attention.attention_backward(q, k, v, grad_output, mask)
    return grad_q * scale, grad_k * scale, grad_v


@misconception("forward without the scale", read="backward")
def backward_of_unscaled(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The weights are computed from scores that were not divided by the square root of the width, so these are the
    gradients of another function, its values' gradient included.
    """
    weights = weights_of(q, k, mask, scale=1.0)
    return through(weights, through_softmax(weights, grad_output @ v.transpose(-2, -1)), q, k, grad_output)


@misconception("softmax skipped", read="backward")
def softmax_skipped(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The gradient of the weights is passed on as if it were that of the scores. Between the two lies the softmax,
    and the chain rule has to pass through it.
    """
    weights = weights_of(q, k, mask)
    return through(weights, grad_output @ v.transpose(-2, -1), q, k, grad_output)


@misconception("average of the row forgotten", read="backward")
def average_forgotten(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The gradient of a score is taken to be weight times gradient of the weight. But a larger score takes weight
    away from all the others in its row: what counts is how much better than the row's average it is.
    """
    weights = weights_of(q, k, mask)
    return through(weights, weights * (grad_output @ v.transpose(-2, -1)), q, k, grad_output)


@misconception("only the diagonal of the softmax", read="backward")
def only_the_diagonal(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The softmax is differentiated like a sigmoid, a·(1 - a), entry by entry. That is only the diagonal of its
    Jacobian: every score also changes all the other weights of its row.
    """
    weights = weights_of(q, k, mask)
    grad_scores = weights * (1 - weights) * (grad_output @ v.transpose(-2, -1))
    return through(weights, grad_scores, q, k, grad_output)


@misconception("plain average in place of the weighted one", read="backward")
def plain_average(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The average that is taken off counts all keys alike. It is the average under the attention weights."""
    weights = weights_of(q, k, mask)
    grad_weights = grad_output @ v.transpose(-2, -1)
    return through(weights, weights * (grad_weights - grad_weights.mean(-1, keepdim=True)), q, k, grad_output)


@misconception("average not weighted on its way out", read="backward")
def average_unweighted(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The row's average is taken off after the multiplication by the weight, not before: a parenthesis is in the
    wrong place. The scores' gradients of a row must sum to zero.
    """
    weights = weights_of(q, k, mask)
    weighted = weights * (grad_output @ v.transpose(-2, -1))
    return through(weights, weighted - weighted.sum(-1, keepdim=True), q, k, grad_output)


@misconception("average added", read="backward")
def average_added(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The row's average is added where it should be taken off: a sign is wrong. The scores' gradients of a row must
    sum to zero.
    """
    weights = weights_of(q, k, mask)
    weighted = weights * (grad_output @ v.transpose(-2, -1))
    return through(weights, weighted + weights * weighted.sum(-1, keepdim=True), q, k, grad_output)


@misconception("average over the queries", read="backward")
def average_over_queries(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The average is taken over the queries. The softmax went along each query's row, over the keys, and so does
    the way back.
    """
    weights = weights_of(q, k, mask)
    weighted = weights * (grad_output @ v.transpose(-2, -1))
    return through(weights, weighted - weights * weighted.sum(-2, keepdim=True), q, k, grad_output)


@misconception("another order", read="backward")
def values_first(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The three gradients come back in the order in which they were found. They are asked for in the order of the
    arguments: queries, keys, values.
    """
    grad_q, grad_k, grad_v = attention.attention_backward(q, k, v, grad_output, mask)
    return grad_v, grad_q, grad_k


@misconception("mask ignored", read="masks")
def backward_mask_ignored(
    q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None
) -> Gradients:
    """The mask is not used: forbidden pairs receive gradients, and take weight from the permitted ones."""
    return attention.attention_backward(q, k, v, grad_output)


@misconception("mask on the way back only", read="masks")
def backward_mask_late(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The mask only silences the scores' gradients. The weights were computed without it, so what the forbidden
    keys took is missing from the others.
    """
    weights = weights_of(q, k, None)
    grad_scores = through_softmax(weights, grad_output @ v.transpose(-2, -1))
    return through(weights, grad_scores if mask is None else grad_scores * mask, q, k, grad_output)


@misconception("NaN in an empty row", read="fully-masked-row")
def backward_nan(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """A row of scores that are all minus infinity makes the softmax divide zero by zero. The NaN of one query then
    reaches the gradients of all keys and values.
    """
    scores = scores_of(q, k)
    weights = torch.softmax(scores if mask is None else scores.masked_fill(~mask, float("-inf")), -1)
    return through(weights, through_softmax(weights, grad_output @ v.transpose(-2, -1)), q, k, grad_output)


@misconception("exponential overflows", read="scores-and-weights")
def backward_overflows(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The softmax is computed as exp(x) / sum(exp(x)) without taking off the maximum first: large scores overflow
    to infinity and give NaN.
    """
    grown = scores_of(q, k).exp()
    grown = grown if mask is None else grown * mask
    total = grown.sum(-1, keepdim=True)
    weights = grown / torch.where(total == 0, 1.0, total)
    return through(weights, through_softmax(weights, grad_output @ v.transpose(-2, -1)), q, k, grad_output)


@misconception("changes its input", read="what-goes-wrong-03")
def backward_in_place(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """An in-place operation (such as q *= …) changes the caller's tensor: whoever goes on with it has other queries."""
    scale = q.shape[-1] ** -0.5
    q *= scale
    weights = weights_of(q, k, mask, scale=1.0)
    grad_scores = through_softmax(weights, grad_output @ v.transpose(-2, -1))
    return grad_scores @ k * scale, grad_scores.transpose(-2, -1) @ q, weights.transpose(-2, -1) @ grad_output


@misconception("one query after another", read="backward")
def backward_by_rows(q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None) -> Gradients:
    """The numbers are right, but a Python loop goes from query to query, perhaps with the whole Jacobian of each
    softmax. The row's average takes its place, for all rows at once.
    """
    weights, scale = weights_of(q, k, mask), q.shape[-1] ** -0.5
    rows, grad_k = [], torch.zeros_like(k)
    for i in range(q.shape[-2]):
        a = weights[..., i, :]
        jacobian = torch.diag_embed(a) - a[..., :, None] * a[..., None, :]
        grad_scores = (jacobian @ v @ grad_output[..., i, :, None]).transpose(-2, -1) * scale
        rows.append(grad_scores @ k)
        grad_k = grad_k + grad_scores.transpose(-2, -1) @ q[..., i : i + 1, :]
    return torch.cat(rows, dim=-2), grad_k, weights.transpose(-2, -1) @ grad_output


ATTENTION_BACKWARD = Exercise(
    reference=attention.attention_backward,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, backward_heads),
        look.part(
            2,
            backward_unbatched,
            output="output[2]",
            name="values' gradient",
            title="The gradient of the values is right.",
        ),
        look.part(
            2.5,
            backward_case,
            output="output[0]",
            name="queries' gradient",
            title="The gradient of the queries is right.",
        ),
        look.part(
            2,
            backward_case,
            output="output[1]",
            name="keys' gradient",
            title="The gradient of the keys is right.",
        ),
        look.values(1, backward_masked, name="mask", title="Nothing flows back through a forbidden pair."),
        look.values(
            1, backward_empty_row, name="empty row", title="A query that may attend to nothing has zero gradients."
        ),
        look.values(
            0.5, backward_large, name="large scores", title="Scores in the hundreds give finite, right gradients."
        ),
        look.unmutated(0.5, backward_masked),
        look.half_precision(0.5, backward_masked),
        look.double_precision(0.5, backward_unbatched),
        look.device(0.5, backward_masked),
        look.vectorised(0.5, backward_longer, axis="examples, heads, queries or keys"),
    ),
    forbidden=(*FUSED, *AUTOGRAD),
    rule_case=(backward_case, backward_masked),
    misconceptions=(
        backward_unscaled,
        backward_keys_unscaled,
        backward_scaled_twice,
        backward_of_unscaled,
        softmax_skipped,
        average_forgotten,
        only_the_diagonal,
        plain_average,
        average_unweighted,
        average_added,
        average_over_queries,
        values_first,
        backward_mask_ignored,
        backward_mask_late,
        backward_nan,
        backward_overflows,
        backward_in_place,
        backward_by_rows,
    ),
)


# -------------------------------------------------------------------------------------------------- attention in tiles


def uneven_tiles(draw: Draw) -> Case:
    """Three tiles, the last of which is not full."""
    b, s, (t, dh, dv) = 2, 7 + int(draw.integers(0, 2)), draw.sizes(3, low=3)
    return Case({"q": draw.normal(b, t, dh), "k": draw.normal(b, s, dh), "v": draw.normal(b, s, dv), "tile_size": 3})


def even_tiles(draw: Draw) -> Case:
    """Tiles that fit exactly."""
    t, dh, dv = draw.sizes(3, low=3)
    s = 12
    return Case({"q": draw.normal(t, dh), "k": draw.normal(s, dh), "v": draw.normal(s, dv), "tile_size": 4})


def tiles_of_one(draw: Draw) -> Case:
    """One key at a time."""
    return unbatched(draw).with_arguments(tile_size=1)


def one_tile(draw: Draw) -> Case:
    """A tile that is larger than everything."""
    return unbatched(draw).with_arguments(tile_size=100)


def usual_tile(draw: Draw) -> Case:
    """The default tile size, with more than one tile."""
    t, dh, dv = draw.sizes(3)
    s = 70 + int(draw.integers(0, 9))
    return Case({"q": draw.normal(t, dh), "k": draw.normal(s, dh), "v": draw.normal(s, dv)})


def large_tiles(draw: Draw) -> Case:
    """Scores in the hundreds, in tiles."""
    return large(draw).with_arguments(tile_size=3)


def far_below_zero(draw: Draw) -> Case:
    """Scores of minus several hundred, in tiles."""
    return negative(draw).with_arguments(tile_size=2)


def many_keys(draw: Draw) -> Case:
    """Many queries and keys, small tiles: all weights together are several times what one tile needs."""
    t, s = 90 + int(draw.integers(0, 9)), 100 + int(draw.integers(0, 9))
    q, k, v = draw.normal(t, 4), draw.normal(s, 4), draw.normal(s, 5)
    return Case({"q": q, "k": k, "v": v, "tile_size": 16})


def linear_memory(case: Case) -> int:
    """Twice the elements of one tile of weights, or of the largest input or output if that is more."""
    q, k, v = (case.arguments[name] for name in ("q", "k", "v"))
    tile, output = len(q) * case.arguments["tile_size"], len(q) * v.shape[-1]
    return 2 * int(max(tile, output, q.numel(), k.numel(), v.numel()))


def wider_batch(draw: Draw, factor: int) -> Case:
    """More examples, heads and queries, and as many tiles as before."""
    b, h, t = factor, factor, 2 * factor
    q, k, v = draw.normal(b, h, t, 4), draw.normal(b, h, 7, 4), draw.normal(b, h, 7, 5)
    return Case({"q": q, "k": k, "v": v, "tile_size": 3})


def tiles_of_nothing(draw: Draw) -> Case:
    """A tile without keys."""
    return unbatched(draw).with_arguments(tile_size=-1)


def another_tile_size(draw: Draw, case: Case) -> tuple[Case, list[object], list[object]]:
    """The same inputs in larger tiles."""
    return case.with_arguments(tile_size=case.arguments["tile_size"] + 2), [], []


def online(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    tile_size: int,
    *,
    correct_total: bool = True,
    correct_output: bool = True,
    first: float = -math.inf,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The two sums of the online softmax: values times exponentials, and exponentials."""
    if tile_size < 1:
        raise ValueError("a tile needs at least one key")
    best = torch.full_like(q[..., :1], first)
    total = torch.zeros_like(best)
    output = torch.zeros_like(best)
    for start in range(0, k.shape[-2], tile_size):
        scores = scores_of(q, k[..., start : start + tile_size, :], scale)
        new_best = torch.maximum(best, scores.amax(-1, keepdim=True))
        correction, weights = torch.exp(best - new_best), torch.exp(scores - new_best)
        total = total * (correction if correct_total else 1.0) + weights.sum(-1, keepdim=True)
        output = output * (correction if correct_output else 1.0) + weights @ v[..., start : start + tile_size, :]
        best = new_best
    return output, total


def one_by_one(q: Tensor, k: Tensor, v: Tensor, tile_size: int) -> Tensor:
    """What each tile answers by itself, (tiles, ..., T, Dv)."""
    if tile_size < 1:
        raise ValueError("a tile needs at least one key")
    starts = range(0, k.shape[-2], tile_size)
    tiles = [[x[..., start : start + tile_size, :] for x in (k, v)] for start in starts]
    return torch.stack([weights_of(q, keys, None) @ values for keys, values in tiles])


@misconception("old sums not corrected", read="tiled")
def sums_not_corrected(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """When a later tile brings a larger score, the sums so far stay as they were. They were measured against the
    old maximum: both have to be multiplied by exp(old maximum - new maximum).
    """
    output, total = online(q, k, v, tile_size, correct_total=False, correct_output=False)
    return output / total


@misconception("only the denominator corrected", read="tiled")
def only_total_corrected(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """When a later tile brings a larger score, the sum of the exponentials is corrected and the sum of the values
    is not. Both were measured against the old maximum.
    """
    output, total = online(q, k, v, tile_size, correct_output=False)
    return output / total


@misconception("only the numerator corrected", read="tiled")
def only_output_corrected(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """When a later tile brings a larger score, the sum of the values is corrected and the sum of the exponentials
    is not. Both were measured against the old maximum.
    """
    output, total = online(q, k, v, tile_size, correct_total=False)
    return output / total


@misconception("never divided", read="tiled")
def never_divided(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """The sum of the values is returned without being divided by the sum of the exponentials: the weights do not
    add up to one.
    """
    return online(q, k, v, tile_size)[0]


@misconception("no scale", read="why-scale")
def tiled_unscaled(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """The scores are not divided by the square root of the key width. The output must be that of scaled dot-product
    attention.
    """
    output, total = online(q, k, v, tile_size, scale=1.0)
    return output / total


@misconception("maximum starts at zero", read="tiled")
def maximum_from_zero(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """The running maximum starts at 0. If all scores lie far below zero, every exponential vanishes and the end
    divides zero by zero: start at minus infinity.
    """
    output, total = online(q, k, v, tile_size, first=0.0)
    return output / total


@misconception("no maximum", read="tiled")
def no_maximum(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """The exponentials are added up without taking off the running maximum. That is simple, needs no correction,
    and overflows as soon as a score exceeds 88.
    """
    if tile_size < 1:
        raise ValueError("a tile needs at least one key")
    output, total = torch.zeros_like(q[..., :1]), torch.zeros_like(q[..., :1])
    for start in range(0, k.shape[-2], tile_size):
        weights = scores_of(q, k[..., start : start + tile_size, :]).exp()
        total = total + weights.sum(-1, keepdim=True)
        output = output + weights @ v[..., start : start + tile_size, :]
    return output / total


@misconception("tiles averaged", read="tiled")
def tiles_averaged(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """Each tile gets a softmax of its own, and the results are averaged. A tile full of bad keys then counts as
    much as a tile of good ones: the weights of all tiles together must sum to one.
    """
    return one_by_one(q, k, v, tile_size).mean(0)


@misconception("tiles added up", read="tiled")
def tiles_added(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """Each tile gets a softmax of its own, and the results are added up, so the weights of a query sum to the
    number of tiles. They must sum to one over all tiles together.
    """
    return one_by_one(q, k, v, tile_size).sum(0)


@misconception("last tile dropped", read="tiled")
def last_tile_dropped(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """Keys that do not fill a whole tile are never visited. The number of keys need not be a multiple of the tile
    size: the last tile is just smaller.
    """
    if tile_size < 1:
        raise ValueError("a tile needs at least one key")
    whole = k.shape[-2] // tile_size * tile_size
    output, total = online(q, k[..., :whole, :], v[..., :whole, :], tile_size)
    return output / total


@misconception("all weights at once", read="tiled")
def all_at_once(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """All T·S scores exist at once, whether or not they are visited in tiles afterwards. The numbers are right and
    the point is missed: compute the scores of one tile, use them, and forget them.
    """
    if tile_size < 1:
        raise ValueError("a tile needs at least one key")
    return weights_of(q, k, None) @ v


@misconception("always float32", read="device-and-dtype")
def tiled_in_float32(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """Everything is converted to float32 and stays there: a half- or double-precision model gets a result of
    another dtype and fails at the next layer.
    """
    output, total = online(q.float(), k.float(), v.float(), tile_size)
    return output / total


@misconception("any tile size", read="tiled")
def any_tile_size(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """A tile size below one is accepted: no tile is visited, and the result is zero divided by zero. A ValueError
    tells the caller what is wrong.
    """
    output, total = online(q, k, v, tile_size) if tile_size > 0 else (torch.zeros_like(v[..., :1, :]), 0.0)
    return output / total


@misconception("one sum for all queries", read="tiled")
def one_total(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """The exponentials of all queries, of all examples, are added up in one number. Each query has a sum (and a
    maximum) of its own: keep an axis for them.
    """
    output, total = online(q, k, v, tile_size)
    return output / total.sum()


@misconception("changes its input", read="what-goes-wrong-03")
def tiled_in_place(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """An in-place operation (such as q *= …) changes the caller's tensor: the next call gets other queries."""
    q *= q.shape[-1] ** -0.5
    output, total = online(q, k, v, tile_size, scale=1.0)
    return output / total


@misconception("sums made on the CPU", read="device-and-dtype")
def sums_on_the_cpu(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """The sums start as tensors on the CPU. It works until the inputs live on a GPU: take device and dtype from the
    inputs (new_zeros, zeros_like).
    """
    output, total = online(q, k, v, tile_size)
    return (torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype) + output) / total


@misconception("one query after another", read="tiled")
def tiled_by_rows(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """The numbers are right, but besides the loop over tiles there is one over queries (or examples). All queries
    can go through a tile together: give each of the running quantities an axis for them.
    """
    rows = [attention.tiled_attention(q[..., i : i + 1, :], k, v, tile_size) for i in range(q.shape[-2])]
    return torch.cat(rows, dim=-2)


TILED_ATTENTION = Exercise(
    reference=attention.tiled_attention,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, uneven_tiles, one_tile),
        look.values(
            3,
            uneven_tiles,
            even_tiles,
            tiles_of_one,
            one_tile,
            usual_tile,
            title="The numbers are those of plain attention, whether or not the tiles fit.",
        ),
        look.memory(
            2,
            many_keys,
            limit=linear_memory,
            title="No tensor on the way is larger than a tile of weights needs to be.",
        ),
        look.values(
            1,
            large_tiles,
            far_below_zero,
            name="large scores",
            title="Scores in the hundreds, above and below zero, give finite, right numbers.",
        ),
        look.relation(
            "tile size",
            "The tile size changes nothing about the result.",
            0.5,
            uneven_tiles,
            another_tile_size,
            claim="another tile size gives another result",
        ),
        look.gradients(0.5, uneven_tiles, wrt=("q", "k", "v")),
        look.batch_independence(0.5, uneven_tiles, batched=("q", "k", "v")),
        look.unmutated(0.5, uneven_tiles),
        look.half_precision(0.5, uneven_tiles),
        look.double_precision(0.5, uneven_tiles),
        look.device(0.5, uneven_tiles),
        look.vectorised(0.5, wider_batch, axis="examples, heads or queries"),
        look.refuses(0.5, one_tile, tiles_of_nothing, title="A tile size below one is a ValueError."),
    ),
    forbidden=FUSED,
    rule_case=uneven_tiles,
    misconceptions=(
        sums_not_corrected,
        only_total_corrected,
        only_output_corrected,
        never_divided,
        tiled_unscaled,
        maximum_from_zero,
        no_maximum,
        tiles_averaged,
        tiles_added,
        last_tile_dropped,
        all_at_once,
        tiled_in_float32,
        any_tile_size,
        one_total,
        tiled_in_place,
        sums_on_the_cpu,
        tiled_by_rows,
    ),
)
