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
    masked,
    qkv,
    scores_of,
    unbatched,
)
from autograder.checks.sections import HEADINGS
from tfcourse import attention

WEIGHTS = ("w_q", "w_k", "w_v")


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
