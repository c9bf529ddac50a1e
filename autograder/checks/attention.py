"""What the old declarations of chapter 03 share: queries, keys, values and masks, and attention with a mistake at hand."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking.aspects import Maker
from autograder.checking.draw import Case, Draw
from autograder.checks.ch03_scaled_dot_product.cases import FUSED as FUSED

CHAPTER = "03_scaled_dot_product"


def sizes(draw: Draw) -> tuple[int, ...]:
    """Six pairwise distinct sizes: two small ones to lead (they multiply the work and teach nothing more), then
    four larger.
    """
    first = int(draw.integers(2, 4))
    return (first, 5 - first, *draw.sizes(4, low=4))


def qkv(draw: Draw) -> Case:
    """Queries, keys and values with two leading dimensions, no mask."""
    b, h, t, s, dh, dv = sizes(draw)
    return Case({"q": draw.normal(b, h, t, dh), "k": draw.normal(b, h, s, dh), "v": draw.normal(b, h, s, dv)})


def batch(draw: Draw) -> Case:
    """Queries, keys and values with one leading dimension, no mask."""
    b, _, t, s, dh, dv = sizes(draw)
    return Case({"q": draw.normal(b, t, dh), "k": draw.normal(b, s, dh), "v": draw.normal(b, s, dv)})


def unbatched(draw: Draw) -> Case:
    """Queries, keys and values without a leading dimension."""
    t, s, dh, dv = draw.sizes(4, low=3)
    return Case({"q": draw.normal(t, dh), "k": draw.normal(s, dh), "v": draw.normal(s, dv)})


def masked(draw: Draw) -> Case:
    """With a mask of its own for every example, in which every query may attend to something."""
    case = batch(draw)
    return case.with_arguments(mask=draw.mask(*pairs(case)))


def broadcast_mask(draw: Draw) -> Case:
    """With one mask for all examples."""
    case = batch(draw)
    return case.with_arguments(mask=draw.mask(*pairs(case)[-2:]))


def key_mask(draw: Draw) -> Case:
    """With one mask for all heads and queries of an example, as padding makes it."""
    case = qkv(draw)
    b, _, _, s = pairs(case)
    return case.with_arguments(mask=draw.mask(b, 1, 1, s))


def empty_row(draw: Draw) -> Case:
    """With a query that may attend to nothing."""
    case = masked(draw)
    mask = case.arguments["mask"].clone()
    mask[..., 1, :] = False
    return case.with_arguments(mask=mask)


def causal(draw: Draw) -> Case:
    """Self-attention lengths with a causal mask."""
    b, _, t, _, dh, dv = sizes(draw)
    case = Case({"q": draw.normal(b, t, dh), "k": draw.normal(b, t, dh), "v": draw.normal(b, t, dv)})
    return case.with_arguments(mask=torch.ones(t, t, dtype=torch.bool).tril())


# The largest of the numbers in loud inputs.
LOUDEST = 19


def loud(draw: Draw, *shape: int) -> Tensor:
    """Whole numbers of 10 to 19, of either sign: sums of their products are exact, so that the order of operations
    cannot matter.
    """
    return (draw.integers(10, LOUDEST + 1, *shape) * (2 * draw.integers(0, 2, *shape) - 1)).float()


def large(draw: Draw) -> Case:
    """Scores in the hundreds, one at the least: an exponential without a maximum taken off overflows. The root of
    the width is 2.
    """
    b, (t, s, dv) = sizes(draw)[0], draw.sizes(3, low=5)
    q, k = loud(draw, b, t, 4), loud(draw, b, s, 4)
    k[:, int(draw.integers(0, s))] = q[:, 0]
    return Case({"q": q, "k": k, "v": draw.normal(b, s, dv)})


def negative(draw: Draw) -> Case:
    """Scores of minus several hundred: all exponentials vanish unless the maximum is taken off."""
    case = large(draw)
    return case.with_arguments(q=case.arguments["q"].abs(), k=-case.arguments["k"].abs())


def far_below(draw: Draw) -> Case:
    """The same with a mask: a number that is put in the place of forbidden scores must be lower."""
    case = negative(draw)
    return case.with_arguments(mask=draw.mask(*pairs(case)))


def longer(draw: Draw, factor: int) -> Case:
    """Inputs whose leading and length axes grow by a factor."""
    b, h, t, s = factor, factor, factor + 1, 2 * factor + 1
    return Case({"q": draw.normal(b, h, t, 4), "k": draw.normal(b, h, s, 4), "v": draw.normal(b, h, s, 5)})


def pairs(case: Case) -> tuple[int, ...]:
    """The shape (..., T, S) of a case's scores."""
    return pairs_of(case.arguments["q"], case.arguments["k"])


def pairs_of(q: Tensor, k: Tensor) -> tuple[int, ...]:
    """The shape (..., T, S) of the scores."""
    return (*q.shape[:-1], k.shape[-2])


def scores_of(q: Tensor, k: Tensor, scale: float | None = None) -> Tensor:
    """Scores (..., T, S), divided by the square root of the width if no other scale is given."""
    return q @ k.transpose(-2, -1) * (q.shape[-1] ** -0.5 if scale is None else scale)


def weights_of(q: Tensor, k: Tensor, mask: Tensor | None, *, scale: float | None = None, dim: int = -1) -> Tensor:
    """Weights (..., T, S) that are right but for what the mistake at hand asks."""
    scores = scores_of(q, k, scale)
    if mask is None:
        return torch.softmax(scores, dim)
    return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim).masked_fill(~mask, 0.0)


def barely_masked(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """Weights (..., T, S) that are right while all scores are above -100."""
    scores = scores_of(q, k)
    if mask is None:
        return torch.softmax(scores, -1)
    return torch.softmax(scores.masked_fill(~mask, -100.0), -1).masked_fill(~mask, 0.0)


def without_values(maker: Maker) -> Maker:
    """The same case for a function that takes no values."""

    def make(draw: Draw) -> Case:
        case = maker(draw)
        return Case({name: value for name, value in case.arguments.items() if name != "v"})

    return make


def longer_pairs(draw: Draw, factor: int) -> Case:
    """Queries and keys whose leading and length axes grow by a factor."""
    case = longer(draw, factor)
    return Case({"q": case.arguments["q"], "k": case.arguments["k"]})
