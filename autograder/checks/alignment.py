"""Checks of chapter 02: scores, weights and contexts, and Model 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from autograder.checking import aspects as look
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.ch03_scaled_dot_product.cases import FUSED
from autograder.checks.sections import HEADINGS
from tfcourse import alignment

CHAPTER = "02_alignment"


def _softmax(scores: Tensor, mask: Tensor | None, dim: int = -1) -> Tensor:
    """Weights that are right but for the axis, if another is asked for."""
    if mask is None:
        return torch.softmax(scores, dim)
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(scores.masked_fill(~mask, lowest), dim).masked_fill(~mask, 0.0)


# ------------------------------------------------------------------------------------------------------- masked softmax


def scores_alone(draw: Draw) -> Case:
    """Scores without a mask."""
    return Case({"scores": draw.normal(*draw.sizes(3, low=3))})


def one_row_of_scores(draw: Draw) -> Case:
    """A single row of scores with its mask."""
    (s,) = draw.sizes(1, low=4)
    return Case({"scores": draw.normal(s), "mask": draw.mask(1, s)[0]})


def masked_scores(draw: Draw) -> Case:
    """Scores with a mask of their own shape."""
    b, t, s = draw.sizes(3, low=3)
    return Case({"scores": draw.normal(b, t, s), "mask": draw.mask(b, t, s)})


def padded_scores(draw: Draw) -> Case:
    """Scores with one mask for all queries of an example."""
    b, t, s = draw.sizes(3, low=3)
    return Case({"scores": draw.normal(b, t, s), "mask": draw.mask(b, 1, s)})


def empty_scores(draw: Draw) -> Case:
    """Scores of which one row permits nothing."""
    case = masked_scores(draw)
    mask = case.arguments["mask"].clone()
    mask[:, 1] = False
    return case.with_arguments(mask=mask)


def large_scores(draw: Draw) -> Case:
    """Scores in the hundreds, of either sign; the largest of all is forbidden."""
    b, t, s = draw.sizes(3, low=3)
    scores, mask = 300 * draw.normal(b, t, s), draw.mask(b, t, s)
    scores[:, 0], mask[:, 0] = scores[:, 0].abs() + 200, True
    scores[:, 1] = -scores[:, 1].abs() - 200
    return Case({"scores": scores, "mask": mask})


def more_scores(draw: Draw, factor: int) -> Case:
    """More of everything."""
    b, t, s = 2 * factor, 3 * factor, 4 * factor
    return Case({"scores": draw.normal(b, t, s), "mask": draw.mask(b, t, s)})


def number_mask(draw: Draw) -> Case:
    """A mask of zeros and ones that are not truth values."""
    case = masked_scores(draw)
    return case.with_arguments(mask=case.arguments["mask"].to(torch.int64))


def _boolean(mask: Tensor | None) -> None:
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError("the mask is not boolean")


@misconception("softmax over the wrong axis", read="masked-softmax")
def softmax_over_queries(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax runs over the queries, so that columns sum to one. A query's row must: the softmax goes over the last axis."""
    _boolean(mask)
    return _softmax(scores, mask, dim=-2 if scores.ndim > 1 else -1)


@misconception("mask after softmax", read="masked-softmax")
def mask_after_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is applied after the softmax. The forbidden places have taken their share by then, and the others no longer sum to
    one.
    """
    _boolean(mask)
    weights = torch.softmax(scores, -1)
    return weights if mask is None else weights * mask


@misconception("divided again after the softmax", read="masked-softmax")
def divided_again(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is applied after the softmax, and the rest divided by its sum. Where a forbidden score is far above the others, it has
    taken everything by then: what is left is zero, and cannot be divided up again. Mask the scores, before the softmax.
    """
    _boolean(mask)
    if mask is None:
        return torch.softmax(scores, -1)
    kept = torch.softmax(scores.to(torch.promote_types(scores.dtype, torch.float32)), -1) * mask
    return (kept / kept.sum(-1, keepdim=True).clamp(min=1e-30)).to(scores.dtype)


@misconception("mask inverted", read="masked-softmax")
def mask_inverted(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is read the wrong way round: True means that a place is real and may be attended to."""
    _boolean(mask)
    return _softmax(scores, None if mask is None else ~mask)


@misconception("padding gets weight", read="masked-softmax")
def mask_ignored(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The mask is not used: the padding takes its share of the weights."""
    _boolean(mask)
    return torch.softmax(scores, -1)


@misconception("scores set to zero", read="masked-softmax")
def scores_set_to_zero(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Forbidden scores are set to zero. Zero is a score like any other, its exponential is 1, and it beats every negative score."""
    _boolean(mask)
    return torch.softmax(scores if mask is None else scores * mask, -1)


@misconception("NaN in an empty row", read="masked-softmax")
def nan_in_empty_row(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """A row in which nothing is permitted gives NaN: with all scores at minus infinity the softmax divides zero by zero. Such a row
    gets zeros.
    """
    _boolean(mask)
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, -math.inf), -1)


@misconception("empty row uniform", read="masked-softmax")
def empty_row_uniform(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """A row in which nothing is permitted gets uniform weights: the same large negative score stands everywhere. It must get zeros."""
    _boolean(mask)
    lowest = torch.finfo(scores.dtype).min
    return torch.softmax(scores if mask is None else scores.masked_fill(~mask, lowest), -1)


@misconception("NaN in the gradients", read="masked-softmax")
def nan_in_gradients(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The weights of an empty row are right, but NaN was made on the way and overwritten afterwards. On the way back the gradient
    passes there again and is NaN: the NaN must not arise.
    """
    _boolean(mask)
    if mask is None:
        return torch.softmax(scores, -1)
    weights = torch.softmax(scores + torch.where(mask, 0.0, -math.inf), -1)
    return torch.where(mask.any(-1, keepdim=True), weights, 0.0)


@misconception("forbidden places dropped", read="masked-softmax")
def forbidden_dropped(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Only the permitted scores are kept, all in one long row. Then nobody knows any more whose they are: the weights have the shape of
    the scores, with zeros at the forbidden places.
    """
    _boolean(mask)
    return torch.softmax(scores if mask is None else scores[mask.expand(scores.shape)], -1)


@misconception("constant left on the CPU", read="masked-softmax")
def constant_on_cpu(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """A tensor that the function makes for itself stays on the CPU when the scores are on a GPU. Give it their device, or use a plain
    number.
    """
    _boolean(mask)
    if mask is None:
        return torch.softmax(scores, -1)
    lowest = torch.full((scores.shape[-1],), torch.finfo(scores.dtype).min, dtype=scores.dtype, device="cpu")
    return torch.softmax(torch.where(mask, scores, lowest), -1).masked_fill(~mask, 0.0)


@misconception("exponential overflows", read="masked-softmax")
def exponential_overflows(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax is computed as exp(x) / sum(exp(x)) without taking off the maximum first: large scores overflow to infinity, very
    negative ones all become zero, and both give NaN.
    """
    _boolean(mask)
    grown = scores.exp() if mask is None else scores.exp() * mask
    total = grown.sum(-1, keepdim=True)
    if mask is None:
        return grown / total
    return grown / torch.where(mask.any(-1, keepdim=True), total, 1.0)


@misconception("not negative enough", read="masked-softmax")
def not_negative_enough(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Forbidden scores are set to a number such as -100, which is not below all others: permitted scores may be lower still, and
    then the forbidden places win.
    """
    _boolean(mask)
    if mask is None:
        return torch.softmax(scores, -1)
    return torch.softmax(scores.masked_fill(~mask, -100.0), -1) * mask


@misconception("changes its input", read="what-goes-wrong-02")
def changes_scores(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The scores are masked in place (masked_fill_ or an assignment), so the caller's tensor is changed."""
    _boolean(mask)
    if mask is None:
        return torch.softmax(scores, -1)
    scores.masked_fill_(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, -1).masked_fill(~mask, 0.0)


@misconception("always float32", read="masked-softmax")
def softmax_in_float32(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """Everything is converted to float32 and stays there. Compute in float32 where the scores are of half precision, and give back
    the dtype that came.
    """
    _boolean(mask)
    return _softmax(scores.float(), mask)


@misconception("one query after another", read="masked-softmax")
def softmax_loop(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The numbers are right, but a Python loop goes from row to row. The softmax takes an axis: all rows are done at once."""
    _boolean(mask)
    if scores.ndim < 2:
        return _softmax(scores, mask)
    everywhere = None if mask is None else mask.expand(scores.shape)
    rows = [
        _softmax(scores[..., t, :], None if everywhere is None else everywhere[..., t, :])
        for t in range(scores.shape[-2])
    ]
    return torch.stack(rows, -2)


@misconception("numbers accepted as a mask", read="masked-softmax")
def numbers_accepted(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """A mask of numbers is accepted. `~` of a 1 is -2, not False: such a mask works by luck or not at all, and a ValueError is the
    kinder answer.
    """
    return _softmax(scores, None if mask is None else mask.bool())


MASKED_SOFTMAX = Exercise(
    reference=alignment.masked_softmax,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, scores_alone, masked_scores),
        look.values(0.5, scores_alone, name="no mask", title="Without a mask it is a softmax over the last axis."),
        look.values(
            2,
            one_row_of_scores,
            masked_scores,
            padded_scores,
            name="mask",
            title="Forbidden places get weight 0, and the others sum to one.",
        ),
        look.empty_row(1, empty_scores, title="A row in which nothing is permitted gets zeros."),
        look.values(1, large_scores, name="large scores", title="Scores in the hundreds give finite, right weights."),
        look.gradients(1, masked_scores, wrt=("scores",), title="Gradients are right."),
        look.unmutated(0.5, masked_scores),
        look.half_precision(0.5, masked_scores),
        look.double_precision(0.5, masked_scores),
        look.device(0.5, masked_scores),
        look.vectorised(0.5, more_scores, axis="rows"),
        look.refuses(0.5, masked_scores, number_mask, title="A mask that is not boolean is a ValueError."),
    ),
    forbidden=FUSED,
    rule_case=(scores_alone, masked_scores),
    misconceptions=(
        softmax_over_queries,
        mask_after_softmax,
        divided_again,
        mask_inverted,
        mask_ignored,
        scores_set_to_zero,
        nan_in_empty_row,
        empty_row_uniform,
        nan_in_gradients,
        forbidden_dropped,
        constant_on_cpu,
        exponential_overflows,
        not_negative_enough,
        changes_scores,
        softmax_in_float32,
        softmax_loop,
        numbers_accepted,
    ),
)


# ------------------------------------------------------------------------------------------------------- soft and hard


def blend(draw: Draw) -> Case:
    """Scores and values, no mask."""
    b, t, s, d = draw.sizes(4)
    return Case({"scores": draw.normal(b, t, s), "values": draw.normal(b, s, d)})


def blend_square(draw: Draw) -> Case:
    """As many queries as values: axes that changed places go unseen by the shapes."""
    b, t, d = draw.sizes(3)
    return Case({"scores": draw.normal(b, t, t), "values": draw.normal(b, t, d)})


def padded_blend(draw: Draw) -> Case:
    """A mask (B, S): the same for all queries of an example. The first example may look at everything, the last one not."""
    b, t, s, d = draw.sizes(4)
    mask = draw.mask(b, s)
    mask[0], mask[-1, 0], mask[-1, -1] = True, True, False
    return Case({"scores": draw.normal(b, t, s), "values": draw.normal(b, s, d), "mask": mask})


def as_many_queries(draw: Draw) -> Case:
    """A mask (B, S) and as many examples as queries: examples that are taken for queries go unseen by the shapes."""
    b, s, d = draw.sizes(3)
    return Case({"scores": draw.normal(b, b, s), "values": draw.normal(b, s, d), "mask": draw.mask(b, s)})


def masked_blend(draw: Draw) -> Case:
    """A mask (B, T, S), of which one row permits nothing."""
    case = blend(draw)
    mask = draw.mask(*case.arguments["scores"].shape)
    mask[:, 1] = False
    return case.with_arguments(mask=mask)


def more_blend(draw: Draw, factor: int) -> Case:
    """More of everything."""
    b, t, s = factor, 2 * factor, 3 * factor
    return Case({"scores": draw.normal(b, t, s), "values": draw.normal(b, s, 4), "mask": draw.mask(b, s)})


def _place(mask: Tensor | None) -> Tensor | None:
    return mask[:, None] if mask is not None and mask.ndim == 2 else mask


@misconception("softmax over the queries", read="attend")
def attend_over_queries(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The softmax runs over the queries, so that they compete for each value. A query shares itself out among the values: the softmax
    goes over the last axis.
    """
    weights = _softmax(scores, _place(mask), dim=1)
    return weights, weights @ values


@misconception("context over the queries", read="attend")
def context_over_queries(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The context is summed along the wrong axis of the weights: over the queries. Each query's context is a sum over the S values."""
    weights = _softmax(scores, _place(mask))
    return weights, weights.transpose(1, 2) @ values


@misconception("context first", read="attend")
def context_first(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The two results are in the wrong order: the weights come first, then the context."""
    weights = _softmax(scores, _place(mask))
    return weights @ values, weights


@misconception("scores in place of weights", read="attend")
def scores_blend(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The values are blended with the scores, not with the weights. Scores may be negative and sum to anything."""
    return _softmax(scores, _place(mask)), scores @ values


@misconception("averaged again", read="attend")
def averaged_again(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The weighted values are averaged in place of summed. The weights sum to one already, so this divides twice."""
    weights = _softmax(scores, _place(mask))
    return weights, weights @ values / scores.shape[2]


@misconception("mask ignored", read="attend")
def attend_mask_ignored(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The mask is not handed on to the softmax, and the padding is blended in."""
    weights = _softmax(scores, None)
    return weights, weights @ values


@misconception("mask inverted", read="attend")
def attend_mask_inverted(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The mask is read the wrong way round: only the padding is attended to. True means that a place is real."""
    weights = _softmax(scores, _place(None if mask is None else ~mask))
    return weights, weights @ values


@misconception("examples taken for queries", read="attend")
def examples_for_queries(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A mask (B, S) meets scores (B, T, S) without a place for the queries. Broadcasting aligns from the right, so examples are taken
    for queries: an error as a rule, and wrong without a word where there are as many.
    """
    weights = _softmax(scores, mask)
    return weights, weights @ values


@misconception("values masked, weights not", read="attend")
def values_masked(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Forbidden places are taken out after the softmax. They have had their share by then, so that the weights of the rest do not sum
    to one and the context is too short.
    """
    weights = torch.softmax(scores, -1)
    place = _place(mask)
    weights = weights if place is None else weights * place
    return weights, weights @ values


@misconception("NaN in an empty row", read="attend")
def attend_empty_nan(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A query that may attend to nothing gets NaN in weights and context. Both must be zeros; masked_softmax sees to it."""
    place = _place(mask)
    weights = torch.softmax(scores if place is None else scores.masked_fill(~place, -math.inf), -1)
    return weights, weights @ values


@misconception("one example after another", read="attend")
def attend_loop(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The numbers are right, but a Python loop goes from example to example. A product of three-dimensional tensors takes all of
    them at once.
    """
    weights = _softmax(scores, _place(mask))
    return weights, torch.stack([weights[b] @ values[b] for b in range(len(values))])


ATTEND = Exercise(
    reference=alignment.attend,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, blend, padded_blend),
        look.part(
            1,
            blend,
            blend_square,
            output="output[0]",
            name="weights",
            title="The weights of each query are those of its scores.",
        ),
        look.part(
            1.5,
            blend,
            blend_square,
            output="output[1]",
            name="context",
            title="The context of each query is the sum of the values, each times its weight.",
        ),
        look.values(
            1,
            padded_blend,
            as_many_queries,
            name="padding",
            title="A mask (B, S) holds for all queries of its example.",
        ),
        look.empty_row(
            0.5, masked_blend, title="A mask (B, T, S) holds for each query, and who may attend to nothing gets zeros."
        ),
        look.gradients(0.5, padded_blend, wrt=("scores", "values")),
        look.batch_independence(0.5, padded_blend, batched=("scores", "values", "mask")),
        look.vectorised(0.5, more_blend, axis="examples, queries or values"),
    ),
    forbidden=FUSED,
    rule_case=(blend, padded_blend),
    misconceptions=(
        attend_over_queries,
        context_over_queries,
        context_first,
        scores_blend,
        averaged_again,
        attend_mask_ignored,
        attend_mask_inverted,
        examples_for_queries,
        values_masked,
        attend_empty_nan,
        attend_loop,
    ),
)


def ties(draw: Draw) -> Case:
    """Scores that are small whole numbers, so that many are equal."""
    b, t, s, d = draw.sizes(4, low=3)
    return Case({"scores": draw.integers(0, 2, b, t, s).float(), "values": draw.normal(b, s, d)})


def below_zero(draw: Draw) -> Case:
    """Scores that are all negative, with a mask (B, S)."""
    case = padded_blend(draw)
    return case.with_arguments(scores=-1 - case.arguments["scores"].abs())


def _taken(scores: Tensor, place: Tensor | None, dim: int = -1) -> Tensor:
    """One 1 for each query, right but for the axis, if another is asked for."""
    open_ = torch.ones_like(scores, dtype=torch.bool) if place is None else place.expand(scores.shape)
    best = scores.masked_fill(~open_, -math.inf).argmax(dim, keepdim=True)
    return torch.zeros_like(scores).scatter(dim, best, 1.0) * open_


@misconception("soft", read="hard-attention")
def soft(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The weights are those of a softmax. Hard attention takes a single value whole, and none of the others."""
    weights = _softmax(scores, _place(mask))
    return weights, weights @ values


@misconception("the last of equals", read="hard-attention")
def last_of_equals(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Among equal scores the last is taken. The first one is asked for."""
    place = _place(mask)
    weights = _taken(scores.flip(-1), None if place is None else place.flip(-1)).flip(-1)
    return weights, weights @ values


@misconception("equals share", read="hard-attention")
def equals_share(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Every place with the highest score gets a 1, so that the values of equals are added up. One place is taken: the first."""
    place = _place(mask)
    lowest = torch.finfo(scores.dtype).min
    masked = scores if place is None else scores.masked_fill(~place, lowest)
    weights = (masked == masked.amax(-1, keepdim=True)).to(scores.dtype)
    weights = weights if place is None else weights * place
    return weights, weights @ values


@misconception("the best query of a place", read="hard-attention")
def hard_over_queries(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The highest score is sought among the queries, so every place takes a query. Every query takes a place: the last axis."""
    weights = _taken(scores, _place(mask), dim=1)
    return weights, weights @ values


@misconception("mask ignored", read="hard-attention")
def hard_mask_ignored(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The mask is not used, and padding can be taken."""
    weights = _taken(scores, None)
    return weights, weights @ values


@misconception("mask inverted", read="hard-attention")
def hard_mask_inverted(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The mask is read the wrong way round: only padding is taken. True means that a place is real."""
    weights = _taken(scores, _place(None if mask is None else ~mask))
    return weights, weights @ values


@misconception("mask after the choice", read="hard-attention")
def hard_mask_after(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The highest score is sought among all places, and a choice that is forbidden is struck out afterwards. Then some queries take
    nothing, though there is something that they may take.
    """
    place = _place(mask)
    weights = _taken(scores, None)
    weights = weights if place is None else weights * place
    return weights, weights @ values


@misconception("forbidden scores set to zero", read="hard-attention")
def hard_zeroed(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Forbidden scores are set to zero before the highest is sought. Where all permitted scores are negative, zero is the highest."""
    place = _place(mask)
    weights = _taken(scores if place is None else scores * place, None)
    if place is not None:
        weights = weights * place.any(-1, keepdim=True)
    return weights, weights @ values


@misconception("empty row takes the first place", read="hard-attention")
def hard_empty(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """A query that may attend to nothing takes the first place: among scores that are all minus infinity, argmax still names one. It
    must get zeros.
    """
    place = _place(mask)
    weights = _taken(scores if place is None else scores.masked_fill(~place, -math.inf), None)
    return weights, weights @ values


@misconception("the score is left in", read="hard-attention")
def hard_scored(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The place that is taken gets its score as a weight. A choice is a 1, however high its score."""
    weights = _taken(scores, _place(mask)) * scores
    return weights, weights @ values


@misconception("places in place of weights", read="hard-attention")
def hard_places(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The number of the place is returned. Asked for are weights as in soft attention, (B, T, S): a 1 at the place, 0 elsewhere."""
    weights = _taken(scores, _place(mask))
    return weights.argmax(-1), weights @ values


@misconception("weights of another dtype", read="hard-attention")
def hard_integers(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The weights are whole numbers, as one_hot makes them. Weights have the dtype of the scores, whichever kind of attention made
    them.
    """
    weights = _taken(scores, _place(mask))
    return weights.long(), weights @ values


@misconception("one query after another", read="hard-attention")
def hard_loop(scores: Tensor, values: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The numbers are right, but a Python loop goes from query to query. argmax takes an axis: all queries choose at once."""
    place = _place(mask)
    everywhere = None if place is None else place.expand(scores.shape)
    rows = [_taken(scores[:, t], None if everywhere is None else everywhere[:, t]) for t in range(scores.shape[1])]
    weights = torch.stack(rows, 1)
    return weights, weights @ values


HARD_ATTEND = Exercise(
    reference=alignment.hard_attend,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, blend, padded_blend),
        look.values(1.5, blend, blend_square, title="Each query takes the value of its highest score, whole."),
        look.values(0.5, ties, name="ties", title="Among equal scores the first place is taken."),
        look.values(
            1,
            below_zero,
            as_many_queries,
            name="padding",
            title="A mask (B, S) holds for all queries of its example, also where all scores are negative.",
        ),
        look.values(
            0.5, masked_blend, name="empty row", title="A query that may attend to nothing has weights and context 0."
        ),
        look.gradients(
            0.5,
            padded_blend,
            wrt=("scores", "values"),
            title="Gradients reach the values that were taken, and only them.",
        ),
        look.double_precision(0.5, padded_blend),
        look.device(0.5, padded_blend),
        look.vectorised(0.5, more_blend, axis="examples, queries or values"),
    ),
    forbidden=FUSED,
    rule_case=(blend, padded_blend),
    misconceptions=(
        soft,
        last_of_equals,
        equals_share,
        hard_over_queries,
        hard_mask_ignored,
        hard_mask_inverted,
        hard_mask_after,
        hard_zeroed,
        hard_empty,
        hard_scored,
        hard_places,
        hard_integers,
        hard_loop,
    ),
)


# -------------------------------------------------------------------------------------------------------------- Model 1

Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]


def corpus(draw: Draw) -> Case:
    """A few short pairs, in which words come again, some of them within a sentence; one source word never occurs."""
    words = int(draw.integers(4, 6))
    pairs = [
        (draw.integers(1, words, 2 + i % 2).tolist(), draw.integers(1, words + 1, 3 - i % 2).tolist()) for i in range(4)
    ]
    pairs.append(([1, 1, 2], [2, 3, 3]))
    sizes = {"source_vocabulary": words + 1, "target_vocabulary": words + 2}
    return Case({"pairs": pairs, **sizes, "iterations": 3})


def one_iteration(draw: Draw) -> Case:
    """A single iteration from the uniform table."""
    return corpus(draw).with_arguments(iterations=1)


def no_iteration(draw: Draw) -> Case:
    """No iteration at all."""
    return corpus(draw).with_arguments(iterations=0)


def many_iterations(draw: Draw) -> Case:
    """So many iterations that the table has nearly settled."""
    return corpus(draw).with_arguments(iterations=12)


def null_among_words(draw: Draw) -> Case:
    """A source sentence in which 0 stands, which is NULL's number."""
    case = corpus(draw)
    return case.with_arguments(pairs=[([0, 1], [1]), *case.arguments["pairs"]])


class _Em:
    """EM in steps; each mistake below changes one of them."""

    def __init__(self, pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> None:
        self.sizes = (source_vocabulary, target_vocabulary)
        self.pairs = [(self.words(source), list(target)) for source, target in pairs]
        self.check(pairs)
        table = self.start()
        for _ in range(iterations):
            table = self.iterate(table)
        self.table = table

    def check(self, pairs: Pairs) -> None:
        for side, size in enumerate(self.sizes):
            if any(not 1 <= token < size for pair in pairs for token in pair[side]):
                raise ValueError("a token is not within its vocabulary")

    def words(self, source: Sequence[int]) -> list[int]:
        return [0, *source]

    def start(self) -> Tensor:
        return torch.full(self.sizes, 1 / self.sizes[1], dtype=torch.float64)

    def empty(self, table: Tensor) -> Tensor:
        return torch.zeros_like(table)

    def share(self, likely: Tensor) -> Tensor:
        return likely / likely.sum(0)

    def count(self, counts: Tensor, source: list[int], target: list[int], shares: Tensor) -> None:
        counts.index_put_((torch.tensor(source)[:, None], torch.tensor(target)), shares, accumulate=True)

    def divide(self, counts: Tensor, table: Tensor) -> Tensor:
        totals = counts.sum(1, keepdim=True)
        return torch.where(totals > 0, counts / totals, table)

    def iterate(self, table: Tensor) -> Tensor:
        counts = self.empty(table)
        for source, target in self.pairs:
            self.count(counts, source, target, self.share(table[torch.tensor(source)[:, None], torch.tensor(target)]))
        return self.divide(counts, table)


@misconception("no NULL word", read="ibm-model-1")
def no_null(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """No source sentence has a NULL word. Then every target word must come from a real one, also those to which nothing in the source
    corresponds.
    """

    class Em(_Em):
        def words(self, source: Sequence[int]) -> list[int]:
            return list(source)

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("divided on the wrong side", read="ibm-model-1")
def wrong_side(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """The counts are divided by their sums for each target word, so that columns sum to one. The table says what a source word makes:
    its row sums to one.
    """

    class Em(_Em):
        def divide(self, counts: Tensor, table: Tensor) -> Tensor:
            totals = counts.sum(0, keepdim=True)
            return torch.where(totals > 0, counts / totals, table)

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("counts not begun afresh", read="ibm-model-1")
def counts_kept(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """The counts are carried on from one iteration to the next. What was counted with an older, worse table must not count again."""

    class Em(_Em):
        kept: Tensor | None = None

        def empty(self, table: Tensor) -> Tensor:
            self.kept = torch.zeros_like(table) if self.kept is None else self.kept
            return self.kept

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("shared out the wrong way", read="ibm-model-1")
def shared_wrong_way(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """Each source word is shared out among the target words of the pair. It is a target word that was made by one source word: its
    shares, over the source words, sum to one.
    """

    class Em(_Em):
        def share(self, likely: Tensor) -> Tensor:
            return likely / likely.sum(1, keepdim=True)

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("not shared at all", read="ibm-model-1")
def not_shared(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """Probabilities of the table are counted as they are. First they must be divided by their sum over the source words, or a target
    word counts for more or less than one.
    """

    class Em(_Em):
        def share(self, likely: Tensor) -> Tensor:
            return likely

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("the likeliest takes all", read="ibm-model-1")
def likeliest_takes_all(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """A target word is given whole to its likeliest source word. EM shares it out in proportion; a choice made from a uniform table is
    made blindly, and never taken back.
    """

    class Em(_Em):
        def share(self, likely: Tensor) -> Tensor:
            return torch.zeros_like(likely).scatter(0, likely.argmax(0, keepdim=True), 1.0)

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("repeated words counted once", read="ibm-model-1")
def counted_once(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """A word that occurs twice in a sentence is counted once: counts[rows, columns] += … keeps only one of the numbers for one place.
    Add them one by one, or with accumulate=True.
    """

    class Em(_Em):
        def count(self, counts: Tensor, source: list[int], target: list[int], shares: Tensor) -> None:
            last = {(s, t): shares[i, j] for i, s in enumerate(source) for j, t in enumerate(target)}
            for (s, t), share in last.items():
                counts[s, t] += share

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("one iteration too many", read="ibm-model-1")
def one_too_many(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """There is one iteration more than asked for. After 0 iterations the table is still the uniform one."""
    return _Em(pairs, source_vocabulary, target_vocabulary, iterations + 1).table


@misconception("a word that never occurs", read="ibm-model-1")
def never_occurs(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """The row of a source word that occurs in no pair is divided by a sum of zero, and is NaN. Nothing was learned about it: it stays
    uniform.
    """

    class Em(_Em):
        def divide(self, counts: Tensor, table: Tensor) -> Tensor:
            return counts / counts.sum(1, keepdim=True)

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("the other direction", read="ibm-model-1")
def other_direction(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """Source and target have changed places: the table says which target word makes a source word. Here it is the source that makes
    the target, word by word.
    """
    _Em(pairs, source_vocabulary, target_vocabulary, 0)
    turned = [(target, source) for source, target in pairs]
    return _Em(turned, target_vocabulary, source_vocabulary, iterations).table.T


@misconception("the table changes within an iteration", read="ibm-model-1")
def changes_within(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """The table is renewed after every pair. In an iteration, all pairs are shared out by the same table; it is renewed when all of
    them are counted.
    """

    class Em(_Em):
        def iterate(self, table: Tensor) -> Tensor:
            counts = self.empty(table)
            for source, target in self.pairs:
                likely = table[torch.tensor(source)[:, None], torch.tensor(target)]
                self.count(counts, source, target, self.share(likely))
                table = self.divide(counts, table)
            return table

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("any number accepted", read="ibm-model-1")
def any_number_accepted(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """A 0 in a sentence is accepted. That is NULL's number, and here it would stand twice in one sentence: a mistake of the caller's,
    such as padding that was left in.
    """

    class Em(_Em):
        def check(self, pairs: Pairs) -> None:
            pass

    return Em(pairs, source_vocabulary, target_vocabulary, iterations).table


@misconception("single precision", read="ibm-model-1")
def single_precision(pairs: Pairs, source_vocabulary: int, target_vocabulary: int, iterations: int) -> Tensor:
    """The table has single precision, PyTorch's default. Many small shares are added up over many iterations: float64 is asked for."""
    return _Em(pairs, source_vocabulary, target_vocabulary, iterations).table.float()


IBM_MODEL_1 = Exercise(
    reference=alignment.ibm_model_1,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(1, corpus, title="The table has a row for every source token, in float64."),
        look.values(
            0.5, no_iteration, name="start", title="Before the first iteration the table is uniform.", easy=True
        ),
        look.values(2, one_iteration, name="one iteration", title="One iteration shares, adds up and divides rightly."),
        look.values(2, corpus, many_iterations, name="more iterations", title="Every iteration goes on from the last."),
        look.refuses(0.5, corpus, null_among_words, title="A token outside its vocabulary, or 0, is a ValueError."),
    ),
    misconceptions=(
        no_null,
        wrong_side,
        counts_kept,
        shared_wrong_way,
        not_shared,
        likeliest_takes_all,
        counted_once,
        one_too_many,
        never_occurs,
        other_direction,
        changes_within,
        any_number_accepted,
        single_precision,
    ),
)


def table(draw: Draw) -> Case:
    """A table of random probabilities, and a pair of sentences."""
    s, t = (int(n) for n in draw.sizes(2, low=4))
    probabilities = torch.softmax(2 * draw.normal(9, 8, dtype=torch.float64), 1)
    source = (draw.permutation(8)[:s] + 1).tolist()
    return Case({"table": probabilities, "source": source, "target": draw.integers(1, 8, t).tolist()})


def null_is_likely(draw: Draw) -> Case:
    """A table in which NULL is the likeliest maker of the first word, and of no other; the last word occurs twice."""
    case = table(draw)
    probabilities = case.arguments["table"].clone()
    target = case.arguments["target"]
    last = target[0] % 7 + 1
    target = [*target[:-2], last, last]
    probabilities[0, target[0]] = 0.9
    probabilities[0, [word for word in target if word != target[0]]] = 0.0
    return case.with_arguments(table=probabilities, target=target)


def equals(draw: Draw) -> Case:
    """A table in which all words, NULL among them, are equally probable; a source word occurs twice."""
    (t,) = draw.sizes(1, low=3)
    uniform = torch.full((6, 5), 0.2, dtype=torch.float64)
    return Case({"table": uniform, "source": [2, 1, 4, 1], "target": draw.integers(1, 5, t).tolist()})


def twice_the_same(draw: Draw) -> Case:
    """A source whose likeliest word occurs twice, and makes every target word."""
    case = table(draw)
    probabilities = case.arguments["table"].clone()
    probabilities[5] = 0.95
    return case.with_arguments(table=probabilities, source=[3, 5, 1, 5])


Places = list[int | None]


def _best(probabilities: Tensor, source: Sequence[int], word: int) -> tuple[float, int]:
    found = [float(probabilities[made_by, word]) for made_by in source]
    best = max(found)
    return best, found.index(best)


@misconception("never NULL", read="ibm-model-1")
def never_null(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """NULL is never chosen. It stands in every source sentence, for words that nothing in the sentence corresponds to."""
    return [_best(table, source, word)[1] for word in target]


@misconception("NULL among equals", read="ibm-model-1")
def null_among_equals(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """NULL is chosen where it is only as probable as a word. A real word is preferred; NULL must be more probable than all of them."""
    pairs = [(_best(table, source, word), float(table[0, word])) for word in target]
    return [None if null >= best else place for (best, place), null in pairs]


@misconception("places counted from 1", read="ibm-model-1")
def from_one(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """Places are counted from 1, with 0 for NULL, as in the paper. Here they count from 0, as in code, and NULL is None."""
    pairs = [(_best(table, source, word), float(table[0, word])) for word in target]
    return [0 if null > best else place + 1 for (best, place), null in pairs]


@misconception("the last of equals", read="ibm-model-1")
def last_equal(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """Among source words that are equally probable the last is taken. The first one is asked for."""
    turned = list(reversed(source))
    pairs = [(_best(table, turned, word), float(table[0, word])) for word in target]
    return [None if null > best else len(source) - 1 - place for (best, place), null in pairs]


@misconception("a target for every source word", read="alignments-cross")
def other_way_round(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """There is one place for every source word, in the target. It is every target word that was made by one source word: as many
    places as there are target words.
    """
    return [_best(table.T, target, made_by)[1] for made_by in source]


@misconception("words in place of places", read="ibm-model-1")
def words_returned(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """What comes back are the source words themselves, by number. Asked for are their places in the sentence: a word may occur twice."""
    pairs = [(_best(table, source, word), float(table[0, word])) for word in target]
    return [None if null > best else source[place] for (best, place), null in pairs]


@misconception("each source word used once", read="alignments-cross")
def used_once(table: Tensor, source: Sequence[int], target: Sequence[int]) -> Places:
    """A source word is taken only once. It may make several target words, or none: each target word chooses for itself."""
    open_, places = list(range(len(source))), Places()
    for word in target:
        best = max((float(table[source[place], word]) for place in open_), default=-math.inf)
        if not open_ or float(table[0, word]) > best:
            places.append(None)
            continue
        taken = next(place for place in open_ if float(table[source[place], word]) == best)
        open_.remove(taken)
        places.append(taken)
    return places


BEST_ALIGNMENT = Exercise(
    reference=alignment.best_alignment,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.values(
            1.5,
            table,
            twice_the_same,
            title="Each target word gets the place of the source word that most probably made it.",
        ),
        look.values(1, null_is_likely, name="NULL", title="A word that NULL most probably made has no place."),
        look.values(0.5, equals, name="ties", title="Among equals the first word is taken, and NULL only if none is."),
    ),
    misconceptions=(
        never_null,
        null_among_equals,
        from_one,
        last_equal,
        other_way_round,
        words_returned,
        used_once,
    ),
)
