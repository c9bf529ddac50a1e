"""Checks of chapter 03: the soft lookup, attention and its masks."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking import aspects as look
from autograder.checking.aspects import Maker
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.sections import HEADINGS
from tfcourse import attention

CHAPTER = "03_scaled_dot_product"
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


# ------------------------------------------------------------------------------------------------------- soft lookup


def entries(draw: Draw) -> Case:
    """A query, and entries to look it up in."""
    s, dh, dv = draw.sizes(3, low=3)
    return Case({"query": draw.normal(dh), "keys": draw.normal(s, dh), "values": draw.normal(s, dv)})


def one_entry(draw: Draw) -> Case:
    """A dictionary with a single entry: it answers whatever is asked."""
    dh, dv = draw.sizes(2)
    return Case({"query": draw.normal(dh), "keys": draw.normal(1, dh), "values": draw.normal(1, dv)})


def large_entries(draw: Draw) -> Case:
    """Scores in the hundreds, one at the least."""
    s, dv = draw.sizes(2, low=5)
    query, keys = loud(draw, 4), loud(draw, s, 4)
    keys[int(draw.integers(0, s))] = query
    return Case({"query": query, "keys": keys, "values": draw.normal(s, dv)})


def more_entries(draw: Draw, factor: int) -> Case:
    """More of everything."""
    s, dh, dv = 4 * factor, 3 * factor, 2 * factor
    return Case({"query": draw.normal(dh), "keys": draw.normal(s, dh), "values": draw.normal(s, dv)})


@misconception("scaled", read="soft-lookup")
def scaled_lookup(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """The scores are divided by the square root of the key width. That is the next step of the story; this lookup
    takes the dot products as they are.
    """
    return torch.softmax(keys @ query / query.shape[0] ** 0.5, 0) @ values


@misconception("the best entry takes all", read="soft-lookup")
def hard_lookup(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Only the entry with the largest score answers. A soft lookup blends all of them, and only a blend lets a
    gradient reach the query and the keys.
    """
    return values[(keys @ query).argmax()]


@misconception("no softmax", read="soft-lookup")
def raw_scores(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """The scores themselves serve as weights. Weights must be positive and sum to one, which is what the softmax is
    for.
    """
    return keys @ query @ values


@misconception("not normalised", read="soft-lookup")
def unnormalised(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """The exponentials of the scores are not divided by their sum, so the weights do not add up to one and the
    answer is no average.
    """
    return (keys @ query).exp() @ values


@misconception("scores divided by their sum", read="soft-lookup")
def divided_by_sum(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """The scores are divided by their sum, without an exponential. Scores may be negative: such weights can be
    negative too, and explode where the sum is near zero.
    """
    scores = keys @ query
    return scores / scores.sum() @ values


@misconception("the weights are returned", read="soft-lookup")
def weights_returned(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """What comes back are the weights of the entries. One step is missing: the sum of the values, each times its
    weight.
    """
    return torch.softmax(keys @ query, 0)


@misconception("keys blended in place of values", read="soft-lookup")
def keys_blended(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """The keys are blended, not the values. A key says how an entry is found; its value is what it answers."""
    return torch.softmax(keys @ query, 0) @ keys


@misconception("cosine", read="cosine")
def cosine_lookup(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """The scores are cosines: query and keys are divided by their lengths first. Here the score is the dot product
    as it is.
    """
    return torch.softmax(torch.cosine_similarity(keys, query, dim=-1), 0) @ values


@misconception("exponential overflows", read="soft-lookup")
def lookup_overflows(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """The softmax is computed as exp(x) / sum(exp(x)) without taking off the maximum first: large scores overflow
    to infinity and give NaN.
    """
    grown = (keys @ query).exp()
    return grown / grown.sum() @ values


@misconception("changes its input", read="what-goes-wrong-03")
def lookup_in_place(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """An in-place operation (such as values *= …) changes the caller's tensor: the dictionary is damaged by looking
    something up.
    """
    values *= torch.softmax(keys @ query, 0)[:, None]
    return values.sum(0)


@misconception("one entry after another", read="soft-lookup")
def entry_by_entry(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """The numbers are right, but a Python loop goes from entry to entry. One product of the keys with the query
    gives all the scores at once, however many entries there are.
    """
    weights = torch.softmax(torch.stack([key @ query for key in keys]), 0)
    answer = weights[0] * values[0]
    for i in range(1, len(values)):
        answer = answer + weights[i] * values[i]
    return answer


@misconception("always float32", read="device-and-dtype")
def lookup_in_float32(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Everything is converted to float32 and stays there: a half- or double-precision model gets a result of
    another dtype and fails at the next layer.
    """
    return torch.softmax(keys.float() @ query.float(), 0) @ values.float()


SOFT_LOOKUP = Exercise(
    reference=attention.soft_lookup,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, entries, one_entry),
        look.values(1.5, entries, entries, one_entry),
        look.values(
            0.5, large_entries, name="large scores", title="Scores in the hundreds give finite, right numbers."
        ),
        look.gradients(0.5, entries, wrt=("query", "keys", "values")),
        look.permutation(0.5, entries, keys=("keys", "values")),
        look.unmutated(0.5, entries),
        look.half_precision(0.5, entries),
        look.double_precision(0.5, entries),
        look.device(0.5, entries),
        look.vectorised(0.5, more_entries, axis="entries or components"),
    ),
    forbidden=FUSED,
    rule_case=entries,
    misconceptions=(
        scaled_lookup,
        hard_lookup,
        raw_scores,
        unnormalised,
        divided_by_sum,
        weights_returned,
        keys_blended,
        cosine_lookup,
        lookup_overflows,
        lookup_in_place,
        entry_by_entry,
        lookup_in_float32,
    ),
)


# ------------------------------------------------------------------------------------------ the weights, and the mask


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


def float16_range(draw: Draw) -> Case:
    """Queries and keys of float16, one of a kind, whose dot products are too large for float16 before they are
    scaled.
    """
    t, width = draw.sizes(1)[0], 128
    k = torch.sign(draw.normal(t + 2, width)) * 30
    return Case({"q": k[:t].half(), "k": k.half()})


def numbers_as_mask(draw: Draw) -> Case:
    """A mask of zeros and ones that are not truth values."""
    case = without_values(masked)(draw)
    return case.with_arguments(mask=case.arguments["mask"].to(torch.int64))


@misconception("no scale", read="why-scale")
def weights_unscaled(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are not divided by the square root of the key width. Their variance grows with the width, so the
    softmax saturates and its gradients vanish.
    """
    return weights_of(q, k, mask, scale=1.0)


@misconception("scaled by the width", read="why-scale")
def weights_scaled_by_width(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are divided by the key width itself, not by its square root: their variance falls below one and
    the weights turn flat.
    """
    return weights_of(q, k, mask, scale=1 / q.shape[-1])


@misconception("softmax over queries", read="scores-and-weights")
def weights_over_queries(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax runs over the queries, so it is each key's column that sums to one. Each query's row must: the
    softmax goes over the keys, the last axis of the scores.
    """
    return weights_of(q, k, mask, dim=-2)


@misconception("scores in place of weights", read="scores-and-weights")
def scores_returned(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """What comes back are the scores, before the softmax. Weights are positive, and each row of them sums to one."""
    scores = scores_of(q, k)
    return scores if mask is None else scores.masked_fill(~mask, float("-inf"))


@misconception("mask inverted", read="masks")
def weights_mask_inverted(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is read the wrong way round: here True means that a query may attend, as in
    F.scaled_dot_product_attention and opposite to nn.MultiheadAttention.
    """
    return weights_of(q, k, None if mask is None else ~mask)


@misconception("mask ignored", read="masks")
def weights_mask_ignored(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is not used at all."""
    return weights_of(q, k, None)


@misconception("mask after softmax", read="masks")
def weights_mask_after_softmax(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is applied after the softmax. The forbidden keys have taken their share by then, and the rest no
    longer sums to one.
    """
    weights = weights_of(q, k, None)
    return weights if mask is None else weights * mask


@misconception("masked scores set to zero", read="masks")
def weights_mask_with_zero(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The forbidden scores become zero before the softmax. A score of zero still gets weight exp(0) = 1: only minus
    infinity gets none.
    """
    scores = scores_of(q, k)
    return torch.softmax(scores if mask is None else scores * mask, -1)


@misconception("forbidden scores not low enough", read="masks")
def weights_mask_with_too_little(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """Forbidden scores are replaced by a number such as -100, which true scores can reach. Where all permitted ones are
    lower still, the forbidden pairs take the weight. Below every score lies minus infinity, or the dtype's lowest
    number.
    """
    return barely_masked(q, k, mask)


@misconception("mask added as 0 and 1", read="masks")
def weights_mask_added(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The boolean mask is added to the scores, so a permitted key gains 1 and a forbidden one loses nothing. An
    additive mask holds 0 and minus infinity.
    """
    scores = scores_of(q, k)
    return torch.softmax(scores if mask is None else scores + mask, -1)


@misconception("NaN in an empty row", read="fully-masked-row")
def weights_empty_row_is_nan(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """A row of scores that are all minus infinity makes the softmax divide zero by zero. Such a row must give
    zeros, and NaN would spread through everything after it.
    """
    scores = scores_of(q, k)
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, float("-inf")), -1)


@misconception("empty row is uniform", read="fully-masked-row")
def weights_empty_row_is_uniform(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """A query that may attend to nothing attends to everything equally: with the same large negative score
    everywhere the softmax is uniform. All its weights must be zero.
    """
    scores = scores_of(q, k)
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, torch.finfo(scores.dtype).min), -1)


@misconception("NaN overwritten afterwards", read="fully-masked-row")
def weights_nan_overwritten(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The NaN of an empty row is overwritten with zeros after the softmax. The weights look right, but on the way
    back the gradient passes through the softmax of that row and is NaN all the same: do not let the NaN arise.
    """
    scores = scores_of(q, k)
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~mask, float("-inf"))
    return torch.nan_to_num(torch.softmax(scores, -1))


@misconception("exponential overflows", read="scores-and-weights")
def weights_overflow(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax is computed as exp(x) / sum(exp(x)) without taking off the maximum first: large scores overflow
    to infinity and give NaN.
    """
    grown = scores_of(q, k).exp()
    grown = grown if mask is None else grown * mask
    total = grown.sum(-1, keepdim=True)
    return grown / torch.where(total == 0, 1.0, total)


@misconception("float16 overflows", read="device-and-dtype")
def weights_overflow_float16(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The dot products are taken in float16, which ends at 65504: wide and loud vectors give infinity before the
    scale can shrink it, and NaN after the softmax. Score in float32 and round the weights back.
    """
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError("the mask must be boolean")
    return weights_of(q, k, mask)


@misconception("any mask will do", read="masks")
def weights_any_mask(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """A mask of numbers is taken as well. Nobody can tell whether its zeros forbid (as False does) or permit (as in
    an additive mask), so anything but a boolean mask is a ValueError.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    return weights_of(q.to(wide), k.to(wide), None if mask is None else mask.bool()).to(q.dtype)


@misconception("made on the CPU", read="device-and-dtype")
def weights_made_on_the_cpu(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """A tensor is made on the CPU inside the function. It works until the inputs live on a GPU: take device and
    dtype from the inputs.
    """
    everything = torch.ones(*q.shape[:-1], k.shape[-2], dtype=torch.bool)
    return attention.masked_attention_weights(q, k, everything if mask is None else everything & mask)


@misconception("keys by queries", read="shapes-03")
def weights_transposed(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The weights come back as (..., S, T), keys by queries. A row belongs to a query: (..., T, S)."""
    return weights_of(q, k, mask).transpose(-2, -1)


@misconception("one softmax for everything", read="scores-and-weights")
def one_softmax(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """One softmax runs over all the scores together, so that all weights of all examples sum to one. Each query has
    a softmax of its own.
    """
    scores = scores_of(q, k)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores.flatten(), 0).view_as(scores)


@misconception("changes its input", read="what-goes-wrong-03")
def weights_in_place(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """An in-place operation (such as q *= …) changes the caller's tensor: the next call gets other queries."""
    q *= q.shape[-1] ** -0.5
    return weights_of(q, k, mask, scale=1.0)


@misconception("one query after another", read="scores-and-weights")
def weights_by_rows(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """The numbers are right, but a Python loop goes from query to query. One matrix product gives the scores of all
    queries at once, however many there are.
    """
    T, S = q.shape[-2], k.shape[-2]
    masks = [None if mask is None else mask.expand(*mask.shape[:-2], T, S)[..., i : i + 1, :] for i in range(T)]
    rows = [attention.masked_attention_weights(q[..., i : i + 1, :], k, masks[i]) for i in range(T)]
    return torch.cat(rows, dim=-2)


MASKED_ATTENTION_WEIGHTS = Exercise(
    reference=attention.masked_attention_weights,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, without_values(batch), without_values(unbatched)),
        look.values(2, without_values(qkv), without_values(unbatched)),
        look.values(
            1,
            without_values(masked),
            without_values(broadcast_mask),
            without_values(key_mask),
            name="mask",
            title="A mask lets a query attend where it is True, and nowhere else.",
        ),
        look.empty_row(1, without_values(empty_row), title="A query that may attend to nothing has zero weights."),
        look.values(
            0.5,
            without_values(large),
            without_values(far_below),
            name="large scores",
            title="Scores in the hundreds, above and below zero, give finite, right numbers.",
        ),
        look.values(
            0.5, float16_range, name="float16 range", title="Dot products beyond 65504 do no harm to float16 inputs."
        ),
        look.gradients(1, without_values(masked), wrt=("q", "k")),
        look.batch_independence(0.5, without_values(batch), batched=("q", "k")),
        look.unmutated(0.5, without_values(masked)),
        look.half_precision(0.5, without_values(masked)),
        look.double_precision(0.5, without_values(masked)),
        look.device(0.5, without_values(masked)),
        look.vectorised(0.5, longer_pairs, axis="examples, heads, queries or keys"),
        look.refuses(0.5, without_values(masked), numbers_as_mask, title="A mask that is not boolean is a ValueError."),
    ),
    forbidden=FUSED,
    rule_case=(without_values(qkv), without_values(masked)),
    misconceptions=(
        weights_unscaled,
        weights_scaled_by_width,
        weights_over_queries,
        scores_returned,
        weights_mask_inverted,
        weights_mask_ignored,
        weights_mask_after_softmax,
        weights_mask_with_zero,
        weights_mask_with_too_little,
        weights_mask_added,
        weights_empty_row_is_nan,
        weights_empty_row_is_uniform,
        weights_nan_overwritten,
        weights_overflow,
        weights_overflow_float16,
        weights_any_mask,
        weights_made_on_the_cpu,
        weights_transposed,
        one_softmax,
        weights_in_place,
        weights_by_rows,
    ),
)


# ------------------------------------------------------------------------------------- scaled dot-product attention


@misconception("no scale", read="why-scale")
def no_scale(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are not divided by the square root of the key width. Their variance grows with the width, so the
    softmax saturates and its gradients vanish.
    """
    return weights_of(q, k, mask, scale=1.0) @ v


@misconception("scaled by the width", read="why-scale")
def scale_by_width(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are divided by the key width itself, not by its square root: their variance falls below one and
    the weights turn flat.
    """
    return weights_of(q, k, mask, scale=1 / q.shape[-1]) @ v


@misconception("scaled by the length", read="why-scale")
def scale_by_length(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are divided by the square root of the number of keys. The scale belongs to the width of queries
    and keys (the last axis), which is what a dot product adds up.
    """
    return weights_of(q, k, mask, scale=k.shape[-2] ** -0.5) @ v


@misconception("scale multiplied", read="why-scale")
def scale_multiplied(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are multiplied by the square root of the width where they should be divided by it."""
    return weights_of(q, k, mask, scale=q.shape[-1] ** 0.5) @ v


@misconception("softmax over queries", read="scores-and-weights")
def softmax_over_queries(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax runs over the queries, so it is each key's column that sums to one. Each query's row must: the
    softmax goes over the keys, the last axis of the scores.
    """
    return weights_of(q, k, mask, dim=-2) @ v


@misconception("mask inverted", read="masks")
def mask_inverted(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is read the wrong way round: here True means that a query may attend, as in
    F.scaled_dot_product_attention and opposite to nn.MultiheadAttention.
    """
    return weights_of(q, k, None if mask is None else ~mask) @ v


@misconception("mask ignored", read="masks")
def mask_ignored(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is not used at all."""
    return weights_of(q, k, None) @ v


@misconception("mask after softmax", read="masks")
def mask_after_softmax(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is applied after the softmax. The forbidden keys have taken their share by then, and the rest no
    longer sums to one.
    """
    weights = weights_of(q, k, None)
    return (weights if mask is None else weights * mask) @ v


@misconception("masked scores set to zero", read="masks")
def mask_with_zero(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The forbidden scores become zero before the softmax. A score of zero still gets weight exp(0) = 1: only minus
    infinity gets none.
    """
    scores = scores_of(q, k)
    return torch.softmax(scores if mask is None else scores * mask, -1) @ v


@misconception("forbidden scores not low enough", read="masks")
def mask_with_too_little(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Forbidden scores are replaced by a number such as -100, which true scores can reach. Where all permitted ones are
    lower still, the forbidden pairs take the weight. Below every score lies minus infinity, or the dtype's lowest
    number.
    """
    return barely_masked(q, k, mask) @ v


@misconception("mask added as 0 and 1", read="masks")
def mask_added(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The boolean mask is added to the scores, so a permitted key gains 1 and a forbidden one loses nothing. An
    additive mask holds 0 and minus infinity.
    """
    scores = scores_of(q, k)
    return torch.softmax(scores if mask is None else scores + mask, -1) @ v


@misconception("NaN in an empty row", read="fully-masked-row")
def empty_row_is_nan(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """A row of scores that are all minus infinity makes the softmax divide zero by zero. Such a row must give
    zeros, and NaN would spread through everything after it.
    """
    scores = scores_of(q, k)
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, float("-inf")), -1) @ v


@misconception("empty row averages", read="fully-masked-row")
def empty_row_is_mean(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """A query that may attend to nothing receives the mean of the values: with the same large negative score
    everywhere the softmax is uniform. It must receive zeros.
    """
    scores = scores_of(q, k)
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, torch.finfo(scores.dtype).min), -1) @ v


@misconception("NaN overwritten afterwards", read="fully-masked-row")
def nan_overwritten(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The NaN of an empty row is overwritten with zeros in the end. The output looks right, but on the way back the
    gradient passes through the softmax of that row and is NaN all the same: do not let the NaN arise.
    """
    scores = scores_of(q, k)
    if mask is not None:
        scores = scores + torch.zeros_like(scores).masked_fill(~mask, float("-inf"))
    return torch.nan_to_num(torch.softmax(scores, -1)) @ v


@misconception("exponential overflows", read="scores-and-weights")
def exponential_overflows(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax is computed as exp(x) / sum(exp(x)) without taking off the maximum first: large scores overflow
    to infinity and give NaN.
    """
    grown = scores_of(q, k).exp()
    grown = grown if mask is None else grown * mask
    total = grown.sum(-1, keepdim=True)
    return grown / torch.where(total == 0, 1.0, total) @ v


@misconception("changes its input", read="what-goes-wrong-03")
def scales_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """An in-place operation (such as q *= …) changes the caller's tensor: the next call gets other queries."""
    q *= q.shape[-1] ** -0.5
    return weights_of(q, k, mask, scale=1.0) @ v


@misconception("always float32", read="device-and-dtype")
def always_float32(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Everything is converted to float32: a half- or double-precision model gets a result of another dtype and
    fails at the next layer.
    """
    return weights_of(q.float(), k.float(), mask) @ v.float()


@misconception("made on the CPU", read="device-and-dtype")
def made_on_the_cpu(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """A tensor is made on the CPU inside the function. It works until the inputs live on a GPU: take device and
    dtype from the inputs.
    """
    scale = torch.tensor([q.shape[-1]], dtype=q.dtype, device="cpu") ** -0.5
    return weights_of(q * scale, k, mask, scale=1.0) @ v


@misconception("the weights are returned", read="scores-and-weights")
def output_is_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """What comes back are the weights. One step is missing: each query receives the values, averaged with its
    weights.
    """
    return weights_of(q, k, mask)


@misconception("always causal", read="causal-mask")
def always_causal(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """A causal mask is applied whether it was asked for or not. Which pairs are permitted is for the caller to say."""
    past = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
    return weights_of(q, k, past if mask is None else past & mask) @ v


@misconception("examples run together", read="shapes-03")
def examples_together(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """All examples are flattened into one long sequence, so the queries of one attend to the keys of another.
    Leading dimensions stay apart: a matrix product leaves them alone by itself.
    """
    flat_q, flat_k, flat_v = (x.reshape(-1, x.shape[-1]) for x in (q, k, v))
    return (weights_of(flat_q, flat_k, None) @ flat_v).reshape(*q.shape[:-1], v.shape[-1])


@misconception("one example after another", read="scores-and-weights")
def example_by_example(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The numbers are right, but a Python loop goes from example to example (or from head to head). A matrix
    product works on all leading dimensions at once, however many there are.
    """
    if q.ndim == 2:
        return weights_of(q, k, mask) @ v
    masks = [None] * len(q) if mask is None else list(mask.expand(pairs_of(q, k)))
    return torch.stack([example_by_example.wrong(*inputs) for inputs in zip(q, k, v, masks, strict=True)])


SCALED_DOT_PRODUCT_ATTENTION = Exercise(
    reference=attention.scaled_dot_product_attention,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(1, batch, unbatched),
        look.values(3, qkv, unbatched),
        look.values(
            2,
            masked,
            broadcast_mask,
            key_mask,
            name="mask",
            title="A mask lets a query attend where it is True, and nowhere else.",
        ),
        look.empty_row(1, empty_row, title="A query that may attend to nothing gets zeros."),
        look.values(
            1,
            large,
            far_below,
            name="large scores",
            title="Scores in the hundreds, above and below zero, give finite, right numbers.",
        ),
        look.gradients(1, masked, wrt=("q", "k", "v")),
        look.batch_independence(0.5, batch, batched=("q", "k", "v")),
        look.causality(0.5, causal, future=("k", "v")),
        look.permutation(0.5, batch, keys=("k", "v")),
        look.unmutated(0.5, masked),
        look.half_precision(0.5, masked),
        look.double_precision(0.5, masked),
        look.device(0.5, masked),
        look.vectorised(0.5, longer, axis="examples, heads, queries or keys"),
    ),
    forbidden=FUSED,
    rule_case=(qkv, masked),
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
        mask_with_too_little,
        mask_added,
        empty_row_is_nan,
        empty_row_is_mean,
        nan_overwritten,
        exponential_overflows,
        scales_in_place,
        always_float32,
        made_on_the_cpu,
        output_is_weights,
        always_causal,
        examples_together,
        example_by_example,
    ),
)


# ------------------------------------------------------------------------------------------------- two ways to make masks


def length(draw: Draw) -> Case:
    """A length."""
    return Case({"T": int(draw.integers(6, 40))})


def long_text(draw: Draw) -> Case:
    """A length for which nobody has a mask made beforehand."""
    return Case({"T": 60 + int(draw.integers(0, 20))})


def single(draw: Draw) -> Case:
    """A sequence of one position, which attends to itself."""
    return Case({"T": 1})


def elsewhere(draw: Draw) -> Case:
    """A length, and a device that is not the default: the meta device, which every machine has."""
    return length(draw).with_arguments(device="meta")


def longer_sequence(draw: Draw, factor: int) -> Case:
    """A longer sequence."""
    return Case({"T": 5 * factor})


@misconception("nobody sees itself", read="causal-mask")
def without_diagonal(T: int, device: torch.device | str | None = None) -> Tensor:
    """The diagonal is False, so no position may attend to itself, and the first one to nothing at all. The present
    belongs to what a position may see.
    """
    return torch.ones(T, T, dtype=torch.bool, device=device).tril(-1)


@misconception("the future in place of the past", read="causal-mask")
def upper_triangle(T: int, device: torch.device | str | None = None) -> Tensor:
    """The triangle is the wrong one: each position may attend to itself and to the future. Rows are queries,
    columns are keys.
    """
    return torch.ones(T, T, dtype=torch.bool, device=device).triu()


@misconception("True means forbidden", read="masks")
def causal_inverted(T: int, device: torch.device | str | None = None) -> Tensor:
    """The mask is True where a position may not look, as nn.MultiheadAttention wants it. In this course True means:
    may attend.
    """
    return torch.ones(T, T, dtype=torch.bool, device=device).triu(1)


@misconception("numbers in place of truth values", read="causal-mask")
def causal_of_numbers(T: int, device: torch.device | str | None = None) -> Tensor:
    """The mask holds the numbers 0 and 1. It must be boolean: what adds a mask of numbers to the scores would
    forbid nothing.
    """
    return torch.ones(T, T, device=device).tril()


@misconception("additive mask", read="causal-mask")
def causal_additive(T: int, device: torch.device | str | None = None) -> Tensor:
    """The mask holds 0 and minus infinity, to be added to the scores. Here a mask is boolean, and whoever uses it
    fills the scores.
    """
    return torch.full((T, T), float("-inf"), device=device).triu(1)


@misconception("extra axis", read="shapes-03")
def causal_with_axis(T: int, device: torch.device | str | None = None) -> Tensor:
    """The mask has a leading axis of one. Broadcasting adds leading axes by itself: the mask is (T, T)."""
    return torch.ones(1, T, T, dtype=torch.bool, device=device).tril()


@misconception("device ignored", read="device-and-dtype")
def causal_on_the_cpu(T: int, device: torch.device | str | None = None) -> Tensor:
    """The mask is made on the default device, whatever the argument says: on a GPU it meets scores that live
    elsewhere.
    """
    return torch.ones(T, T, dtype=torch.bool).tril()


@misconception("one row after another", read="causal-mask")
def causal_by_rows(T: int, device: torch.device | str | None = None) -> Tensor:
    """The numbers are right, but a Python loop fills row after row. For a long text that is thousands of small
    operations where one comparison or one triangle is enough.
    """
    mask = torch.zeros(T, T, dtype=torch.bool, device=device)
    for i in range(T):
        mask[i, : i + 1] = True
    return mask


CAUSAL_MASK = Exercise(
    reference=attention.causal_mask,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, length, single),
        look.values(2, length, long_text, single, title="True on and below the diagonal, False above it."),
        look.device(1, elsewhere),
        look.vectorised(0.5, longer_sequence, axis="positions"),
    ),
    misconceptions=(
        without_diagonal,
        upper_triangle,
        causal_inverted,
        causal_of_numbers,
        causal_additive,
        causal_with_axis,
        causal_on_the_cpu,
        causal_by_rows,
    ),
)


def lengths_and_size(draw: Draw) -> Case:
    """Lengths of a batch and its size; one sequence is empty, and one was cut off."""
    b, s = draw.sizes(2, low=4)
    lengths = draw.integers(1, s, b)
    lengths[1], lengths[2] = 0, s + 2
    return Case({"lengths": lengths, "S": s + 1})


def short_integers(draw: Draw) -> Case:
    """Lengths as 32-bit integers."""
    case = lengths_and_size(draw)
    return case.with_arguments(lengths=case.arguments["lengths"].to(torch.int32))


def lengths_alone(draw: Draw) -> Case:
    """Lengths whose longest, of more positions than there are sequences, sets the size."""
    b = draw.sizes(1, low=3)[0]
    lengths = draw.integers(1, b, b)
    lengths[b // 2] = b + 3
    return Case({"lengths": lengths})


def more_lengths(draw: Draw, factor: int) -> Case:
    """More sequences, and longer ones."""
    return Case({"lengths": draw.integers(1, 5 * factor, 3 * factor), "S": 5 * factor})


def broken_lengths(draw: Draw) -> Case:
    """Lengths that are no whole numbers."""
    case = lengths_and_size(draw)
    return case.with_arguments(lengths=case.arguments["lengths"] + 0.5)


def keys_up_to(lengths: Tensor, S: int | None) -> Tensor:
    """The index of every key, (S,)."""
    return torch.arange(int(lengths.max()) if S is None else S, device=lengths.device)


@misconception("one too many", read="padding-mask")
def one_key_too_many(lengths: Tensor, S: int | None = None) -> Tensor:
    """One key too many is permitted. Indices start at 0, so a sequence of three has the keys 0, 1 and 2: the index
    must be smaller than the length, not equal to it.
    """
    return keys_up_to(lengths, S) <= lengths[:, None, None]


@misconception("True means padding", read="masks")
def padding_inverted(lengths: Tensor, S: int | None = None) -> Tensor:
    """The mask is True on the padding, as the key_padding_mask of nn.MultiheadAttention wants it. In this course
    True means: may attend.
    """
    return keys_up_to(lengths, S) >= lengths[:, None, None]


@misconception("no axis for the queries", read="padding-mask")
def without_query_axis(lengths: Tensor, S: int | None = None) -> Tensor:
    """The mask is (B, S), without an axis for the queries. Against scores (B, T, S) its B would be taken for T: the
    middle axis of one is needed.
    """
    return keys_up_to(lengths, S) < lengths[:, None]


@misconception("on the queries' axis", read="padding-mask")
def padding_of_queries(lengths: Tensor, S: int | None = None) -> Tensor:
    """The mask is (B, S, 1): it silences the queries at the padding and leaves its keys to be read by everyone. It
    is the last axis, that of the keys, on which padding is forbidden.
    """
    return (keys_up_to(lengths, S) < lengths[:, None])[:, :, None]


@misconception("padding in front", read="padding-mask")
def padding_in_front(lengths: Tensor, S: int | None = None) -> Tensor:
    """The padding is taken to stand in front of each sequence. It stands behind its end."""
    keys = keys_up_to(lengths, S)
    return keys >= len(keys) - lengths[:, None, None]


@misconception("size ignored", read="padding-mask")
def size_ignored(lengths: Tensor, S: int | None = None) -> Tensor:
    """The mask always ends with the longest sequence, whatever S says. A batch may be padded further, and its mask
    must reach as far.
    """
    return keys_up_to(lengths, None) < lengths[:, None, None]


@misconception("as many keys as sequences", read="padding-mask")
def size_of_the_batch(lengths: Tensor, S: int | None = None) -> Tensor:
    """Without S, the mask has as many keys as there are sequences in the batch. The longest length is what it needs."""
    return keys_up_to(lengths, len(lengths) if S is None else S) < lengths[:, None, None]


@misconception("numbers in place of truth values", read="padding-mask")
def padding_of_numbers(lengths: Tensor, S: int | None = None) -> Tensor:
    """The mask holds the numbers 0 and 1. It must be boolean: what adds a mask of numbers to the scores would
    forbid nothing.
    """
    return (keys_up_to(lengths, S) < lengths[:, None, None]).float()


@misconception("any lengths will do", read="padding-mask")
def any_lengths(lengths: Tensor, S: int | None = None) -> Tensor:
    """Lengths with a decimal point are taken as well. Half a position means that something went wrong before: raise
    a ValueError, here, where it can still be found.
    """
    return keys_up_to(lengths, S) < lengths[:, None, None]


@misconception("made on the CPU", read="device-and-dtype")
def padding_on_the_cpu(lengths: Tensor, S: int | None = None) -> Tensor:
    """The indices of the keys are made on the CPU. Lengths that live on a GPU cannot be compared with them: take
    the device from the lengths.
    """
    if lengths.is_floating_point():
        raise ValueError("lengths must be integers")
    return torch.arange(int(lengths.max()) if S is None else S) < lengths[:, None, None]


@misconception("one sequence after another", read="padding-mask")
def padding_by_rows(lengths: Tensor, S: int | None = None) -> Tensor:
    """The numbers are right, but a Python loop goes from sequence to sequence. One comparison of (S,) with (B, 1,
    1) gives the whole mask at once.
    """
    if lengths.is_floating_point():
        raise ValueError("lengths must be integers")
    keys = keys_up_to(lengths, S)
    return torch.stack([keys < length for length in lengths])[:, None, :]


@misconception("changes its input", read="what-goes-wrong-03")
def lengths_in_place(lengths: Tensor, S: int | None = None) -> Tensor:
    """An in-place operation (such as lengths.clamp_) changes the caller's lengths: the next call gets others."""
    if lengths.is_floating_point():
        raise ValueError("lengths must be integers")
    keys = keys_up_to(lengths, S)
    return keys < lengths.clamp_(max=len(keys))[:, None, None]


PADDING_MASK = Exercise(
    reference=attention.padding_mask,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, lengths_and_size),
        look.values(
            1.5, lengths_and_size, short_integers, title="True where a key stands before the end of its sequence."
        ),
        look.values(1, lengths_alone, name="size", title="Without S, the mask is as long as the longest sequence."),
        look.unmutated(0.5, lengths_and_size),
        look.device(0.5, lengths_and_size),
        look.vectorised(0.5, more_lengths, axis="sequences or positions"),
        look.refuses(
            0.5, lengths_and_size, broken_lengths, title="Lengths that are not whole numbers are a ValueError."
        ),
    ),
    misconceptions=(
        one_key_too_many,
        padding_inverted,
        without_query_axis,
        padding_of_queries,
        padding_in_front,
        size_ignored,
        size_of_the_batch,
        padding_of_numbers,
        any_lengths,
        padding_on_the_cpu,
        padding_by_rows,
        lengths_in_place,
    ),
)
