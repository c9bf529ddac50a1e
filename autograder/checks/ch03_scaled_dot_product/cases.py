"""Share queries, keys, values and masks, and the names of ready-made attention functions, among the checks of chapter 03."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from autograder.checking.draw import Case, Draw
from autograder.checking.rows import Maker, Row

# Whatever computes attention in one call, under all the names that PyTorch has for it.
FUSED = (
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
    "_flash_attention_forward",
    "_efficient_attention_forward",
    "flex_attention",
    "math_attention",
    "_math_attention_inner",
    "sdpa_dense",
    "sdpa_dense_backward",
    "multi_head_attention_forward",
    "_native_multi_head_attention",
    "_transformer_encoder_layer_fwd",
    "MultiheadAttention",
    # These record a ready-made layer as the plain operations that it consists of, which is all that could be seen of it afterwards.
    "trace",
    "trace_module",
    "symbolic_trace",
    "make_fx",
    "export",
)


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


def heads(draw: Draw) -> Case:
    """Queries, keys and values with a batch and heads, all of one width, no mask: what a layer passes on."""
    b, h, t, s, dh, _ = sizes(draw)
    return Case({"q": draw.normal(b, h, t, dh), "k": draw.normal(b, h, s, dh), "v": draw.normal(b, h, s, dh)})


def heads_masked(draw: Draw) -> Case:
    """With a separate mask for every example and head."""
    case = heads(draw)
    return case.with_arguments(mask=draw.mask(*pairs(case)))


def heads_one_mask(draw: Draw) -> Case:
    """With one mask for all examples and heads."""
    case = heads(draw)
    return case.with_arguments(mask=draw.mask(*pairs(case)[-2:]))


def heads_key_mask(draw: Draw) -> Case:
    """With one mask for all heads and queries of an example, as padding makes it."""
    case = heads(draw)
    b, _, _, s = pairs(case)
    return case.with_arguments(mask=draw.mask(b, 1, 1, s))


def heads_empty_row(draw: Draw) -> Case:
    """With a query that may attend to nothing."""
    case = heads_masked(draw)
    mask = case.arguments["mask"].clone()
    mask[..., 1, :] = False
    return case.with_arguments(mask=mask)


def one_head(maker: Maker) -> Maker:
    """The same case with an axis of a single head behind the batch."""

    def make(draw: Draw) -> Case:
        case = maker(draw)
        return case.with_arguments(**{name: value.unsqueeze(1) for name, value in case.arguments.items()})

    return make


def single_size(draw: Draw) -> Case:
    """As many queries as keys, and as wide as long: the shapes do not show which axis is which. A batch of one."""
    return Case({name: draw.normal(1, 4, 4) for name in ("q", "k", "v")})


def unbatched(draw: Draw) -> Case:
    """Queries, keys and values without a leading dimension."""
    t, s, dh, dv = draw.sizes(4, low=3)
    return Case({"q": draw.normal(t, dh), "k": draw.normal(s, dh), "v": draw.normal(s, dv)})


def masked(draw: Draw) -> Case:
    """With a separate mask for every example, in which every query may attend to some key."""
    case = batch(draw)
    return case.with_arguments(mask=draw.mask(*pairs(case)))


def broadcast_mask(draw: Draw) -> Case:
    """With one mask for all examples."""
    case = batch(draw)
    return case.with_arguments(mask=draw.mask(*pairs(case)[-2:]))


def key_mask(draw: Draw) -> Case:
    """With one mask for all queries of an example, as padding makes it."""
    case = batch(draw)
    b, _, s = pairs(case)
    return case.with_arguments(mask=draw.mask(b, 1, s))


def empty_row(draw: Draw) -> Case:
    """With a query that may attend to nothing."""
    case = masked(draw)
    mask = case.arguments["mask"].clone()
    mask[..., 1, :] = False
    return case.with_arguments(mask=mask)


def loud(draw: Draw, *shape: int) -> Tensor:
    """Integers from 10 to 19, of either sign: sums of their products are exact, so that the order of operations
    cannot matter.
    """
    return (draw.integers(10, 20, *shape) * (2 * draw.integers(0, 2, *shape) - 1)).float()


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
    """The same with a mask, which forbids the last key, whose scores are plus several hundred. A number that is put in
    the place of forbidden scores must be lower than all, and nothing is left of weights that are masked afterwards.
    """
    case = negative(draw)
    k, mask = case.arguments["k"].clone(), draw.mask(*pairs(case))
    k[:, -1], mask[..., -1] = k[:, -1].abs(), False
    mask[..., 0] |= ~mask.any(dim=-1)
    return case.with_arguments(k=k, mask=mask)


def longer(draw: Draw, size: int) -> Case:
    """Inputs whose leading and length axes grow with a size."""
    b, h, t, s = size, size, size + 1, 2 * size + 1
    return Case({"q": draw.normal(b, h, t, 4), "k": draw.normal(b, h, s, 4), "v": draw.normal(b, h, s, 5)})


def pairs(case: Case) -> tuple[int, ...]:
    """The shape (..., T, S) of a case's scores."""
    q, k = case.arguments["q"], case.arguments["k"]
    return (*q.shape[:-1], k.shape[-2])


def without_values(maker: Maker) -> Maker:
    """The same case for a function that takes no values."""

    def make(draw: Draw) -> Case:
        case = maker(draw)
        return Case({name: value for name, value in case.arguments.items() if name != "v"})

    make.__qualname__ = maker.__qualname__  # a draw names its stream after it, so that rows share a case
    return make


def joined(row: Row, other: Row) -> Row:
    """One row that combines the tests of two: for example, gradients in one row's cases, but not in the other's."""
    return replace(row, probes=lambda draw: [*row.probes(draw), *other.probes(draw)])
