"""Checks of chapter 03: attention behind learned projections, attention by angle, and the spread of scores."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking import aspects as look
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.attention import (
    CHAPTER,
    FUSED,
    batch,
    broadcast_mask,
    empty_row,
    longer,
    longer_pairs,
    masked,
    qkv,
    scores_of,
    sizes,
    unbatched,
    weights_of,
    without_values,
)
from autograder.checks.sections import HEADINGS
from tfcourse import attention

WEIGHTS = ("w_q", "w_k", "w_v")


# ------------------------------------------------------------------------------------------------------- projections


def two_sequences(draw: Draw) -> Case:
    """One sequence asks another, in a batch."""
    b, dv, t, s, d, dk = sizes(draw)
    return Case(
        {"x_q": draw.normal(b, t, d), "x_kv": draw.normal(b, s, d), **matrices(draw, d, dk, dv)},
    )


def one_example(draw: Draw) -> Case:
    """One sequence asks another, without a leading dimension."""
    t, s, d, dk, dv = draw.sizes(5, low=3)
    return Case({"x_q": draw.normal(t, d), "x_kv": draw.normal(s, d), **matrices(draw, d, dk, dv)})


def one_width(draw: Draw) -> Case:
    """Square matrices: a transposition changes no shape here."""
    t, s, d = draw.sizes(3, low=3)
    return Case({"x_q": draw.normal(t, d), "x_kv": draw.normal(s, d), **matrices(draw, d, d, d)})


def matrices(draw: Draw, d: int, dk: int, dv: int) -> dict[str, Tensor]:
    """The three projections, scaled so that what they make has about the size of what they are given."""
    scale = d**-0.5
    return {
        "w_q": draw.normal(d, dk, scale=scale),
        "w_k": draw.normal(d, dk, scale=scale),
        "w_v": draw.normal(d, dv, scale=scale),
    }


Projected = tuple[Tensor, Tensor, Tensor]


@misconception("second sequence ignored", read="projections")
def only_the_asking(x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Projected:
    """All three come from the sequence that asks. Keys and values belong to the sequence that is asked; the two are
    the same in self-attention only.
    """
    return x_q @ w_q, x_q @ w_k, x_q @ w_v


@misconception("keys from the asking sequence", read="projections")
def keys_from_queries(x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Projected:
    """The keys come from the sequence that asks. A query is compared with what is asked: keys and values both come
    from x_kv.
    """
    return x_q @ w_q, x_q @ w_k, x_kv @ w_v


@misconception("values from the asking sequence", read="projections")
def values_from_queries(x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Projected:
    """The values come from the sequence that asks, which would then receive nothing but itself. Each key needs its
    own value: both come from x_kv.
    """
    return x_q @ w_q, x_kv @ w_k, x_q @ w_v


@misconception("sequences exchanged", read="projections")
def sequences_exchanged(x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Projected:
    """The two sequences have changed places: queries come from the one that asks, x_q, keys and values from the one
    that is asked.
    """
    return x_kv @ w_q, x_q @ w_k, x_q @ w_v


@misconception("query and key matrix exchanged", read="projections")
def matrices_exchanged(x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Projected:
    """Queries are made with the key matrix and keys with the query matrix. Their shapes are the same, so nothing
    complains; what the network has learned to ask and to be asked is mixed up.
    """
    return x_q @ w_k, x_kv @ w_q, x_kv @ w_v


@misconception("matrices transposed", read="projections")
def transposed(x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Projected:
    """The matrices are transposed before they are applied. Here they are (inputs, outputs), so a row is projected
    as x @ W; it is nn.Linear that stores its weight the other way round. Square matrices hide the mistake.
    """
    return x_q @ w_q.T, x_kv @ w_k.T, x_kv @ w_v.T


@misconception("values not projected", read="projections")
def values_as_they_are(x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Projected:
    """The inputs themselves are returned as values. Values have a matrix of their own, which chooses what a
    position tells when it is found.
    """
    return x_q @ w_q, x_kv @ w_k, x_kv


@misconception("queries already scaled", read="projections")
def scaled_queries(x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Projected:
    """The queries are divided by the square root of their width. The scale is a part of attention, which follows;
    whoever calls both would scale twice.
    """
    return x_q @ w_q * w_q.shape[1] ** -0.5, x_kv @ w_k, x_kv @ w_v


@misconception("another order", read="projections")
def another_order(x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Projected:
    """The three come back in another order. Queries first, then keys, then values, as attention takes them."""
    return x_kv @ w_k, x_kv @ w_v, x_q @ w_q


@misconception("always float32", read="device-and-dtype")
def projections_in_float32(x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Projected:
    """Everything is converted to float32 and stays there: a half- or double-precision model gets a result of
    another dtype and fails at the next layer.
    """
    x_q, x_kv = x_q.float(), x_kv.float()
    return x_q @ w_q.float(), x_kv @ w_k.float(), x_kv @ w_v.float()


ATTENTION_PROJECTIONS = Exercise(
    reference=attention.attention_projections,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, two_sequences, one_example),
        look.part(
            1,
            two_sequences,
            one_width,
            output="output[0]",
            name="queries",
            title="Queries come from the sequence that asks, through w_q.",
        ),
        look.part(
            1,
            two_sequences,
            one_width,
            output="output[1]",
            name="keys",
            title="Keys come from the sequence that is asked, through w_k.",
        ),
        look.part(
            1,
            two_sequences,
            one_width,
            output="output[2]",
            name="values",
            title="Values come from the sequence that is asked, through w_v.",
        ),
        look.gradients(0.5, one_example, wrt=("x_q", "x_kv", *WEIGHTS)),
        look.unmutated(0.5, two_sequences),
        look.half_precision(0.5, one_example),
        look.double_precision(0.5, one_example),
        look.device(0.5, two_sequences),
    ),
    misconceptions=(
        only_the_asking,
        keys_from_queries,
        values_from_queries,
        sequences_exchanged,
        matrices_exchanged,
        transposed,
        values_as_they_are,
        scaled_queries,
        another_order,
        projections_in_float32,
    ),
)


# ------------------------------------------------------------------------------------------- attention in matrix form


def projected_masked(draw: Draw) -> Case:
    """With a mask in which every query may attend to something."""
    case = two_sequences(draw)
    return case.with_arguments(mask=draw.mask(*_pairs(case)))


def projected_empty_row(draw: Draw) -> Case:
    """With a query that may attend to nothing."""
    case = projected_masked(draw)
    mask = case.arguments["mask"].clone()
    mask[..., 1, :] = False
    return case.with_arguments(mask=mask)


def more_projected(draw: Draw, factor: int) -> Case:
    """More examples, and longer sequences."""
    b, t, s = 2 * factor, 3 * factor, 4 * factor
    return Case({"x_q": draw.normal(b, t, 5), "x_kv": draw.normal(b, s, 5), **matrices(draw, 5, 6, 7)})


def _pairs(case: Case) -> tuple[int, ...]:
    return (*case.arguments["x_q"].shape[:-1], case.arguments["x_kv"].shape[-2])


@misconception("scaled by the input width", read="projections")
def scaled_by_input_width(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The scores are divided by the square root of the width D of the inputs. What the dot product adds up are the
    Dk columns of queries and keys, after the projection.
    """
    return weights_of(x_q @ w_q, x_kv @ w_k, mask, scale=x_q.shape[-1] ** -0.5) @ (x_kv @ w_v)


@misconception("scaled by the value width", read="projections")
def scaled_by_value_width(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The scores are divided by the square root of the width of the values. It is the width of queries and keys
    that matters: the values take no part in the scores.
    """
    return weights_of(x_q @ w_q, x_kv @ w_k, mask, scale=w_v.shape[1] ** -0.5) @ (x_kv @ w_v)


@misconception("no scale", read="why-scale")
def projected_unscaled(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The scores are not divided by the square root of the width of queries and keys: their variance grows with the
    width, so the softmax saturates and its gradients vanish.
    """
    return weights_of(x_q @ w_q, x_kv @ w_k, mask, scale=1.0) @ (x_kv @ w_v)


@misconception("scaled twice", read="why-scale")
def projected_scaled_twice(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The scores are divided by the square root of the width twice, perhaps once in the queries and once in
    attention: the weights come out too flat.
    """
    return weights_of(x_q @ w_q, x_kv @ w_k, mask, scale=1 / w_q.shape[1]) @ (x_kv @ w_v)


@misconception("second sequence ignored", read="projections")
def attends_to_itself(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Queries, keys and values all come from the sequence that asks. Keys and values belong to the sequence that is
    asked; the two are the same in self-attention only.
    """
    return weights_of(x_q @ w_q, x_q @ w_k, None) @ (x_q @ w_v)


@misconception("sequences exchanged", read="projections")
def answers_exchanged(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The two sequences have changed places: queries come from the one that asks, x_q, keys and values from the one
    that is asked. There is one output for each query.
    """
    turned = None if mask is None else mask.transpose(-2, -1)
    return weights_of(x_kv @ w_q, x_q @ w_k, turned) @ (x_q @ w_v)


@misconception("query and key matrix exchanged", read="projections")
def attention_matrices_exchanged(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Queries are made with the key matrix and keys with the query matrix. Their shapes are the same, so nothing
    complains; what the network has learned to ask and to be asked is mixed up.
    """
    return weights_of(x_q @ w_k, x_kv @ w_q, mask) @ (x_kv @ w_v)


@misconception("values not projected", read="projections")
def inputs_as_values(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The inputs themselves are averaged, without the value matrix. It chooses what a position tells when it is
    found, and how wide the output is.
    """
    return weights_of(x_q @ w_q, x_kv @ w_k, mask) @ x_kv


@misconception("softmax over queries", read="scores-and-weights")
def projected_over_queries(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The softmax runs over the queries, so it is each key's column that sums to one. Each query's row must: the
    softmax goes over the keys, the last axis of the scores.
    """
    return weights_of(x_q @ w_q, x_kv @ w_k, mask, dim=-2) @ (x_kv @ w_v)


@misconception("mask ignored", read="masks")
def projected_mask_ignored(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The mask is not used at all: it was taken as an argument and not passed on."""
    return weights_of(x_q @ w_q, x_kv @ w_k, None) @ (x_kv @ w_v)


@misconception("mask inverted", read="masks")
def projected_mask_inverted(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The mask is read the wrong way round: here True means that a query may attend, as in
    F.scaled_dot_product_attention and opposite to nn.MultiheadAttention.
    """
    return weights_of(x_q @ w_q, x_kv @ w_k, None if mask is None else ~mask) @ (x_kv @ w_v)


@misconception("NaN in an empty row", read="fully-masked-row")
def projected_empty_row_is_nan(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """A row of scores that are all minus infinity makes the softmax divide zero by zero. Such a row must give
    zeros, and NaN would spread through everything after it.
    """
    scores = scores_of(x_q @ w_q, x_kv @ w_k)
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, float("-inf")), -1) @ (x_kv @ w_v)


@misconception("examples run together", read="shapes-03")
def projected_together(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """All examples are flattened into one long sequence, so the queries of one attend to the keys of another.
    Leading dimensions stay apart: a matrix product leaves them alone by itself.
    """
    q, k, v = (x.reshape(-1, x.shape[-1]) for x in (x_q @ w_q, x_kv @ w_k, x_kv @ w_v))
    return (weights_of(q, k, None) @ v).reshape(*x_q.shape[:-1], w_v.shape[1])


@misconception("changes its input", read="what-goes-wrong-03")
def projected_in_place(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """An in-place operation (such as w_q *= …) changes the caller's matrix: every call makes the queries smaller."""
    w_q *= w_q.shape[1] ** -0.5
    return weights_of(x_q @ w_q, x_kv @ w_k, mask, scale=1.0) @ (x_kv @ w_v)


@misconception("one query after another", read="projections")
def projected_by_rows(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The numbers are right, but a Python loop goes from query to query. One matrix product gives the scores of all
    queries at once, however many there are.
    """
    weights = weights_of(x_q @ w_q, x_kv @ w_k, mask)
    return torch.cat([weights[..., i : i + 1, :] @ x_kv @ w_v for i in range(x_q.shape[-2])], dim=-2)


PROJECTED_ATTENTION = Exercise(
    reference=attention.projected_attention,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, two_sequences, one_example),
        look.values(2, two_sequences, one_example),
        look.values(
            1, projected_masked, name="mask", title="A mask lets a query attend where it is True, and nowhere else."
        ),
        look.values(0.5, projected_empty_row, name="empty row", title="A query that may attend to nothing gets zeros."),
        look.gradients(0.5, projected_masked, wrt=("x_q", "x_kv", *WEIGHTS)),
        look.batch_independence(0.5, two_sequences, batched=("x_q", "x_kv")),
        look.permutation(0.5, two_sequences, keys=("x_kv",)),
        look.unmutated(0.5, projected_masked),
        look.half_precision(0.5, projected_masked),
        look.double_precision(0.5, projected_masked),
        look.device(0.5, projected_masked),
        look.vectorised(0.5, more_projected, axis="examples, queries or keys"),
    ),
    forbidden=FUSED,
    rule_case=(two_sequences, projected_masked),
    misconceptions=(
        scaled_by_input_width,
        scaled_by_value_width,
        projected_unscaled,
        projected_scaled_twice,
        attends_to_itself,
        answers_exchanged,
        attention_matrices_exchanged,
        inputs_as_values,
        projected_over_queries,
        projected_mask_ignored,
        projected_mask_inverted,
        projected_empty_row_is_nan,
        projected_together,
        projected_in_place,
        projected_by_rows,
    ),
)


# -------------------------------------------------------------------------------------------------- attention by angle


def sharper(draw: Draw) -> Case:
    """With a scale that makes cosines matter."""
    return batch(draw).with_arguments(scale=5.0)


def zero_vectors(draw: Draw) -> Case:
    """With a query and a key that are zero, as padding is."""
    case = unbatched(draw)
    q, k = case.arguments["q"].clone(), case.arguments["k"].clone()
    q[1], k[-1] = 0.0, 0.0
    return case.with_arguments(q=q, k=k, scale=3.0)


def other_lengths(draw: Draw, case: Case) -> tuple[Case, list[object], list[object]]:
    """The same directions, with vectors of other lengths."""
    q, k = case.arguments["q"], case.arguments["k"]
    longer_q = q * (0.5 + draw.normal(*q.shape[:-1], 1).abs())
    longer_k = k * (0.5 + draw.normal(*k.shape[:-1], 1).abs())
    return case.with_arguments(q=longer_q, k=longer_k), [], []


def cosines(q: Tensor, k: Tensor) -> Tensor:
    """Cosines (..., T, S), 0 where a vector is zero."""
    return torch.nn.functional.normalize(q, dim=-1) @ torch.nn.functional.normalize(k, dim=-1).transpose(-2, -1)


def average(scores: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """The values, averaged with the softmax of scores that are not scaled any more."""
    if mask is None:
        return torch.softmax(scores, -1) @ v
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(scores.masked_fill(~mask, lowest), -1).masked_fill(~mask, 0.0) @ v


@misconception("dot products", read="cosine")
def dot_products(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """The scores are dot products: a long key wins by its length. A cosine divides by the lengths of both vectors."""
    return average(scale * scores_of(q, k, 1.0), v, mask)


@misconception("divided by the root of the width", read="cosine")
def cosine_scaled_by_width(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0
) -> Tensor:
    """The cosines are divided by the square root of the width as well. They lie between -1 and 1 whatever the
    width: dividing them again makes the weights flat.
    """
    return average(scale * cosines(q, k) * q.shape[-1] ** -0.5, v, mask)


@misconception("only the keys normalised", read="cosine")
def only_keys(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """Only the keys are divided by their lengths. A long query still makes sharper weights than a short one; the
    cosine divides by both lengths.
    """
    return average(scale * cosines(q, k) * torch.linalg.vector_norm(q, dim=-1, keepdim=True), v, mask)


@misconception("only the queries normalised", read="cosine")
def only_queries(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """Only the queries are divided by their lengths, so a key can still win by its length. The cosine divides by
    both lengths.
    """
    lengths = torch.linalg.vector_norm(k, dim=-1)
    return average(scale * cosines(q, k) * lengths[..., None, :], v, mask)


@misconception("divided by the squared length", read="cosine")
def squared_lengths(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """The vectors are divided by the sum of their squares. That is the square of the length; the root is missing."""
    q_unit = q / q.square().sum(-1, keepdim=True).clamp_min(1e-12)
    k_unit = k / k.square().sum(-1, keepdim=True).clamp_min(1e-12)
    return average(scale * q_unit @ k_unit.transpose(-2, -1), v, mask)


@misconception("normalised along the sequence", read="cosine")
def along_the_sequence(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """The lengths are taken along the sequence. It is each vector that has a length: normalise over the last axis."""
    q_unit, k_unit = (torch.nn.functional.normalize(x, dim=-2) for x in (q, k))
    return average(scale * q_unit @ k_unit.transpose(-2, -1), v, mask)


@misconception("scale ignored", read="cosine")
def cosine_scale_ignored(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """The argument scale is not used. Cosines span a narrow range, and without a factor the weights can never
    become sharp.
    """
    return average(cosines(q, k), v, mask)


@misconception("divided by the scale", read="cosine")
def scale_as_temperature(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """The cosines are divided by the scale, as by a temperature. They are multiplied by it: a larger scale makes
    sharper weights.
    """
    return average(cosines(q, k) / scale, v, mask)


@misconception("scale after the softmax", read="cosine")
def scale_after_softmax(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """The scale multiplies the weights, after the softmax. They no longer sum to one, and are no sharper than
    before: the factor belongs to the cosines.
    """
    return scale * average(cosines(q, k), v, mask)


@misconception("a zero vector gives NaN", read="cosine")
def zero_gives_nan(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """A zero vector is divided by its length, zero by zero, and NaN spreads from there. The zero vector has no
    direction; here its cosine with everything is 0.
    """
    q_unit, k_unit = (x / torch.linalg.vector_norm(x, dim=-1, keepdim=True) for x in (q, k))
    return average(scale * q_unit @ k_unit.transpose(-2, -1), v, mask)


@misconception("NaN overwritten afterwards", read="cosine")
def zero_overwritten(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """The NaN of a zero vector is overwritten after the division. The output looks right, but on the way back the
    gradient passes through the division by zero and is NaN all the same: do not let the NaN arise.
    """
    q_unit, k_unit = (torch.nan_to_num(x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)) for x in (q, k))
    return average(scale * q_unit @ k_unit.transpose(-2, -1), v, mask)


@misconception("mask ignored", read="masks")
def cosine_mask_ignored(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """The mask is not used at all: it was taken as an argument and not passed on."""
    return average(scale * cosines(q, k), v, None)


@misconception("NaN in an empty row", read="fully-masked-row")
def cosine_empty_row_is_nan(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0
) -> Tensor:
    """A row of scores that are all minus infinity makes the softmax divide zero by zero. Such a row must give
    zeros, and NaN would spread through everything after it.
    """
    scores = scale * cosines(q, k)
    return average(scores if mask is None else scores.masked_fill(~mask, float("-inf")), v, None)


@misconception("the cosines are returned", read="cosine")
def cosines_returned(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """What comes back are the scaled cosines. Two steps are missing: the softmax over the keys, and the average of
    the values.
    """
    return scale * cosines(q, k)


@misconception("changes its input", read="what-goes-wrong-03")
def cosine_in_place(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """An in-place operation (such as q /= …) changes the caller's tensor: whoever goes on with it has vectors of
    length one.
    """
    q /= torch.linalg.vector_norm(q, dim=-1, keepdim=True).clamp_min(1e-12)
    return average(scale * cosines(q, k), v, mask)


@misconception("made on the CPU", read="device-and-dtype")
def cosine_on_the_cpu(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """A tensor is made on the CPU inside the function. It works until the inputs live on a GPU: take device and
    dtype from the inputs.
    """
    factor = torch.tensor([scale], dtype=q.dtype)
    return average(factor * cosines(q, k), v, mask)


@misconception("one query after another", read="cosine")
def cosine_by_rows(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """The numbers are right, but a Python loop goes from query to query. Divide all vectors by their lengths first,
    and one matrix product gives all cosines at once.
    """
    rows = [torch.cosine_similarity(q[..., i : i + 1, :], k, dim=-1) for i in range(q.shape[-2])]
    return average(scale * torch.stack(rows, dim=-2), v, mask)


COSINE_ATTENTION = Exercise(
    reference=attention.cosine_attention,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, qkv, unbatched),
        look.values(1.5, qkv, unbatched),
        look.values(
            1, sharper, name="scale", title="The scale multiplies the cosines: a larger one makes sharper weights."
        ),
        look.values(
            0.5,
            masked,
            broadcast_mask,
            name="mask",
            title="A mask lets a query attend where it is True, and nowhere else.",
        ),
        look.values(0.5, empty_row, name="empty row", title="A query that may attend to nothing gets zeros."),
        look.values(1, zero_vectors, name="zero vector", title="A zero vector has the cosine 0 with every vector."),
        look.relation(
            "lengths",
            "The lengths of queries and keys do not matter, only their directions.",
            0.5,
            sharper,
            other_lengths,
            claim="making vectors longer or shorter changes the result",
        ),
        look.gradients(0.5, masked, wrt=("q", "k", "v")),
        look.finite_gradients(
            0.5,
            zero_vectors,
            wrt=("q", "k", "v"),
            name="finite gradients",
            title="A zero vector makes no gradient NaN or infinite.",
        ),
        look.unmutated(0.5, masked),
        look.half_precision(0.5, masked),
        look.double_precision(0.5, masked),
        look.device(0.5, masked),
        look.vectorised(0.5, longer, axis="examples, heads, queries or keys"),
    ),
    forbidden=FUSED,
    rule_case=(qkv, masked),
    misconceptions=(
        dot_products,
        cosine_scaled_by_width,
        only_keys,
        only_queries,
        squared_lengths,
        along_the_sequence,
        cosine_scale_ignored,
        scale_as_temperature,
        scale_after_softmax,
        zero_gives_nan,
        zero_overwritten,
        cosine_mask_ignored,
        cosine_empty_row_is_nan,
        cosines_returned,
        cosine_in_place,
        cosine_on_the_cpu,
        cosine_by_rows,
    ),
)


# ------------------------------------------------------------------------------------------------ the spread of scores


def unscaled(draw: Draw) -> Case:
    """Asking for the variance of the dot products as they are."""
    return without_values(batch)(draw).with_arguments(scaled=False)


def off_centre(draw: Draw) -> Case:
    """Queries and keys whose scores do not scatter about zero."""
    case = without_values(unbatched)(draw)
    return case.with_arguments(q=case.arguments["q"] + 1.0, k=case.arguments["k"] + 1.5)


@misconception("sample variance", read="why-scale")
def sample_variance(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """The sum of squares is divided by one less than the number of scores, as var() does when it is not told
    otherwise. These scores are all there are, not a sample: divide by their number.
    """
    return scores_of(q, k, None if scaled else 1.0).var(dim=(-2, -1))


@misconception("standard deviation", read="why-scale")
def standard_deviation(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """What comes back is the standard deviation, the square root of the variance. It is the variance that grows in
    proportion to the width.
    """
    return scores_of(q, k, None if scaled else 1.0).std(dim=(-2, -1), correction=0)


@misconception("mean square", read="why-scale")
def mean_square(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """The mean of the squared scores is taken, without taking off their mean first. The two agree only where the
    scores have mean zero.
    """
    return scores_of(q, k, None if scaled else 1.0).square().mean(dim=(-2, -1))


@misconception("query by query", read="why-scale")
def variance_of_rows(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """The variance is taken along each query's row and then averaged, so the spread between the queries is lost.
    All T·S scores belong together.
    """
    return scores_of(q, k, None if scaled else 1.0).var(dim=-1, correction=0).mean(-1)


@misconception("leading dimensions mixed", read="shapes-03")
def variance_of_everything(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """One number comes back for everything together. Each example (and head) has a variance of its own: reduce the
    last two axes only.
    """
    return scores_of(q, k, None if scaled else 1.0).var(correction=0)


@misconception("always scaled", read="why-scale")
def always_scaled(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """The scores are divided by the square root of the width even with scaled=False, so nobody can see what the
    division is good for.
    """
    return scores_of(q, k).var(dim=(-2, -1), correction=0)


@misconception("never scaled", read="why-scale")
def never_scaled(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """The scores are not divided by the square root of the width, whatever the argument says. Then the variance
    grows with the width.
    """
    return scores_of(q, k, 1.0).var(dim=(-2, -1), correction=0)


@misconception("variance divided by the root", read="why-scale")
def variance_over_root(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """The variance is divided by the square root of the width. It is the scores that are: a variance is made of
    squares, so that divides it by the width itself.
    """
    variance = scores_of(q, k, 1.0).var(dim=(-2, -1), correction=0)
    return variance * q.shape[-1] ** -0.5 if scaled else variance


@misconception("scores divided by the width", read="why-scale")
def scores_over_width(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """The scores are divided by the width, not by its square root: their variance falls in proportion to the width
    where it should stay the same.
    """
    return scores_of(q, k, 1 / q.shape[-1] if scaled else 1.0).var(dim=(-2, -1), correction=0)


@misconception("always float32", read="device-and-dtype")
def variance_in_float32(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """Everything is converted to float32 and stays there: half- or double-precision inputs get a result of another
    dtype.
    """
    return scores_of(q.float(), k.float(), None if scaled else 1.0).var(dim=(-2, -1), correction=0)


@misconception("one query after another", read="why-scale")
def variance_by_rows(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """The numbers are right, but a Python loop goes from query to query. One matrix product gives all T·S scores at
    once.
    """
    factor = q.shape[-1] ** -0.5 if scaled else 1.0
    rows = [(k @ q[..., i, :, None]).squeeze(-1) * factor for i in range(q.shape[-2])]
    return torch.stack(rows, dim=-1).var(dim=(-2, -1), correction=0)


SCORE_VARIANCE = Exercise(
    reference=attention.score_variance,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, without_values(qkv), without_values(unbatched)),
        look.values(1.5, without_values(qkv), off_centre),
        look.values(
            1, unscaled, name="scaled=False", title="With scaled=False the dot products are taken as they are."
        ),
        look.gradients(0.5, without_values(batch), wrt=("q", "k")),
        look.batch_independence(0.5, without_values(batch), batched=("q", "k")),
        look.half_precision(0.5, without_values(batch)),
        look.double_precision(0.5, without_values(batch)),
        look.device(0.5, without_values(batch)),
        look.vectorised(0.5, longer_pairs, axis="examples, heads, queries or keys"),
    ),
    forbidden=FUSED,
    rule_case=without_values(qkv),
    misconceptions=(
        sample_variance,
        standard_deviation,
        mean_square,
        variance_of_rows,
        variance_of_everything,
        always_scaled,
        never_scaled,
        variance_over_root,
        scores_over_width,
        variance_in_float32,
        variance_by_rows,
    ),
)


# --------------------------------------------------------------------------------------------- one matrix for two


def query_and_key(draw: Draw) -> Case:
    """The matrices of one head."""
    d, dk = draw.sizes(2, low=3)
    return Case({"w_q": draw.normal(d, dk), "w_k": draw.normal(d, dk)})


@misconception("turned round", read="merge-query-key")
def turned_round(w_q: Tensor, w_k: Tensor) -> Tensor:
    """The product is the other way round, the transpose of what is asked. It would let the keys ask and the queries
    be asked.
    """
    return w_k @ w_q.T


@misconception("multiplied along the inputs", read="merge-query-key")
def along_the_inputs(w_q: Tensor, w_k: Tensor) -> Tensor:
    """The product adds up over the D inputs and is (Dk, Dk). The dot product of query and key adds up over their Dk
    columns; what stays are the inputs, on both sides.
    """
    return w_q.T @ w_k


@misconception("scaled", read="merge-query-key")
def merged_and_scaled(w_q: Tensor, w_k: Tensor) -> Tensor:
    """The merged matrix is divided by the square root of the width. It stands for the scores before scaling;
    attention scales them later, and must do so only once.
    """
    return scores_of(w_q, w_k)


@misconception("one matrix twice", read="merge-query-key")
def one_matrix_twice(w_q: Tensor, w_k: Tensor) -> Tensor:
    """The query matrix is multiplied with itself, and the key matrix is not used. Such scores are symmetric:
    nothing could ask without being asked.
    """
    return w_q @ w_q.T


@misconception("made symmetric", read="merge-query-key")
def made_symmetric(w_q: Tensor, w_k: Tensor) -> Tensor:
    """The merged matrix is made symmetric. That page i scores page j does not mean that page j scores page i."""
    return (w_q @ w_k.T + w_k @ w_q.T) / 2


@misconception("multiplied entry by entry", read="merge-query-key")
def entry_by_entry(w_q: Tensor, w_k: Tensor) -> Tensor:
    """The matrices are multiplied entry by entry and stay (D, Dk). Two linear maps, one after the other, are merged
    by a matrix product.
    """
    return w_q * w_k


@misconception("always float32", read="device-and-dtype")
def merged_in_float32(w_q: Tensor, w_k: Tensor) -> Tensor:
    """Everything is converted to float32 and stays there: a half- or double-precision model gets a matrix of
    another dtype.
    """
    return w_q.float() @ w_k.float().T


MERGE_QUERY_KEY = Exercise(
    reference=attention.merge_query_key,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, query_and_key),
        look.values(1.5, query_and_key, query_and_key),
        look.gradients(
            0.5, query_and_key, wrt=("w_q", "w_k"), title="Gradients flow back to both matrices, and are right."
        ),
        look.half_precision(0.5, query_and_key),
        look.double_precision(0.5, query_and_key),
        look.device(0.5, query_and_key),
    ),
    misconceptions=(
        turned_round,
        along_the_inputs,
        merged_and_scaled,
        one_matrix_twice,
        made_symmetric,
        entry_by_entry,
        merged_in_float32,
    ),
)
