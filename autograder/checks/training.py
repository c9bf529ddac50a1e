"""Checks of chapter 05: what a translator is shown, what it is told, and how its weights change."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autograder.checking import aspects as look
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checking.props import Perceptron, TokenTable
from autograder.checks.sections import HEADINGS
from tfcourse import training

CHAPTER = "05_transformer"
READY_LOSSES = (
    *("cross_entropy", "cross_entropy_loss", "linear_cross_entropy", "kl_div", "Categorical"),
    *("nll_loss", "nll_loss_nd", "nll_loss_forward", "nll_loss2d", "nll_loss2d_forward"),
)


def padded_targets(draw: Draw, batch: int, length: int, vocabulary: int) -> Tensor:
    """Target tokens with EOS and padding: the first example is as long as it can be, and each of the others is shorter."""
    targets = draw.integers(3, vocabulary, batch, length)
    for example in range(batch):
        end = length - math.ceil(example * (length - 2) / batch)
        targets[example, end - 1] = 2
        targets[example, end:] = 0
    return targets


# ------------------------------------------------------------------------------------------------------- shift right


def sentences(draw: Draw) -> Case:
    """Sentences with EOS and padding."""
    b, t = draw.sizes(2, low=3)
    return Case({"targets": padded_targets(draw, b, t, 9)})


def another_beginning(draw: Draw) -> Case:
    """BOS has another number."""
    return sentences(draw).with_arguments(bos=7)


def single_tokens(draw: Draw) -> Case:
    """Sentences of one token."""
    return Case({"targets": draw.integers(3, 9, 3, 1)})


def narrow_integers(draw: Draw) -> Case:
    """Tokens as 32-bit integers."""
    case = sentences(draw)
    return case.with_arguments(targets=case.arguments["targets"].to(torch.int32))


def more_sentences(draw: Draw, factor: int) -> Case:
    """More of everything."""
    return Case({"targets": draw.integers(3, 9, 2 * factor, 5 * factor)})


def one_sentence(draw: Draw) -> Case:
    """A sentence without an axis for the batch."""
    case = sentences(draw)
    return case.with_arguments(targets=case.arguments["targets"][0])


def _two_axes(targets: Tensor) -> Tensor:
    if targets.ndim != 2:
        raise ValueError(tuple(targets.shape))
    return targets


def _begin(targets: Tensor, bos: int) -> Tensor:
    return torch.full_like(_two_axes(targets)[:, :1], bos)


@misconception("not shifted", read="shift-right")
def not_shifted(targets: Tensor, bos: int = 1) -> Tensor:
    """The targets are returned as they are: at every place the decoder would see the very token that it is asked for."""
    return _two_axes(targets).clone()


@misconception("shifted left", read="shift-right")
def shifted_left(targets: Tensor, bos: int = 1) -> Tensor:
    """The targets are moved to the left, so that the decoder sees what comes after the token that it is asked for. To the right: it sees
    what comes before.
    """
    return torch.cat([_two_axes(targets)[:, 1:], torch.zeros_like(targets[:, :1])], 1)


@misconception("turned in a circle", read="shift-right")
def rolled(targets: Tensor, bos: int = 1) -> Tensor:
    """The targets are rolled: what falls out at the end comes in at the beginning, where BOS belongs."""
    return _two_axes(targets).roll(1, 1)


@misconception("BOS over the first token", read="shift-right")
def overwritten(targets: Tensor, bos: int = 1) -> Tensor:
    """The first token is replaced by BOS and nothing is moved: the first word is lost, and all the others are shown where they are asked
    for.
    """
    return torch.cat([_begin(targets, bos), targets[:, 1:]], 1)


@misconception("one token longer", read="shift-right")
def longer(targets: Tensor, bos: int = 1) -> Tensor:
    """BOS is put in front and the last token is kept, so there is one place more than there are targets. The last token is never shown:
    what follows it is not asked for.
    """
    return torch.cat([_begin(targets, bos), targets], 1)


@misconception("one token shorter", read="shift-right")
def shorter(targets: Tensor, bos: int = 1) -> Tensor:
    """The last token is dropped, and there is no BOS in front: the first target has no place at which it could be asked for."""
    return _two_axes(targets)[:, :-1].clone()


@misconception("padding in front", read="shift-right")
def padding_first(targets: Tensor, bos: int = 1) -> Tensor:
    """The free place in front is filled with padding, 0. The sentence begins with BOS, the token that the decoder is given first."""
    return torch.cat([torch.zeros_like(_begin(targets, bos)), targets[:, :-1]], 1)


@misconception("BOS always 1", read="shift-right")
def always_one(targets: Tensor, bos: int = 1) -> Tensor:
    """The argument bos is not used: the first token is 1 in every case."""
    return torch.cat([_begin(targets, 1), targets[:, :-1]], 1)


@misconception("shifted along the batch", read="shift-right")
def along_the_batch(targets: Tensor, bos: int = 1) -> Tensor:
    """The examples are shifted, not the places: each example is shown the sentence of its neighbour. The places are the second axis."""
    return torch.cat([torch.full_like(_two_axes(targets)[:1], bos), targets[:-1]], 0)


@misconception("EOS removed", read="shift-right")
def without_eos(targets: Tensor, bos: int = 1) -> Tensor:
    """The token EOS is removed from what the decoder is shown. It does no harm there: the places behind it are padding and do not count.
    Only the last token of a row is dropped, whatever it is.
    """
    shifted = torch.cat([_begin(targets, bos), targets[:, :-1]], 1)
    return shifted.masked_fill(shifted == 2, 0)


@misconception("changes its input", read="shift-right")
def shifted_in_place(targets: Tensor, bos: int = 1) -> Tensor:
    """The targets themselves are shifted. The loss still needs them as they were."""
    _two_axes(targets)
    targets[:, 1:] = targets[:, :-1].clone()
    targets[:, 0] = bos
    return targets


@misconception("another kind of number", read="shift-right")
def as_int64(targets: Tensor, bos: int = 1) -> Tensor:
    """The result has a dtype of its own (floating-point numbers, or 64-bit integers in every case). Tokens keep the
    dtype that they have.
    """
    return torch.cat([_begin(targets, bos), targets[:, :-1]], 1).long()


@misconception("sentence by sentence", read="shift-right")
def sentence_by_sentence(targets: Tensor, bos: int = 1) -> Tensor:
    """The numbers are right, but a Python loop goes from sentence to sentence. A slice and one concatenation shift them all."""
    begin = _begin(targets, bos)
    return torch.stack([torch.cat([begin[i], targets[i, :-1]]) for i in range(len(targets))])


@misconception("one sentence taken for many", read="shift-right")
def any_axes(targets: Tensor, bos: int = 1) -> Tensor:
    """A single sentence, without an axis for the batch, is shifted as well. Two axes are promised, (B, T): anything
    else is a ValueError.
    """
    return torch.cat([torch.full_like(targets[..., :1], bos), targets[..., :-1]], -1)


SHIFT_RIGHT = Exercise(
    reference=training.shift_right,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, sentences, narrow_integers),
        look.values(1.5, sentences, single_tokens, title="BOS comes first, then every token but the last."),
        look.values(0.5, another_beginning, name="bos", title="BOS may have another number."),
        look.unmutated(0.5, sentences),
        look.device(0.5, sentences),
        look.vectorised(0.5, more_sentences, axis="sentences or places"),
        look.refuses(0.5, sentences, one_sentence, title="Anything but two axes is a ValueError."),
    ),
    misconceptions=(
        not_shifted,
        shifted_left,
        rolled,
        overwritten,
        longer,
        shorter,
        padding_first,
        always_one,
        along_the_batch,
        without_eos,
        shifted_in_place,
        as_int64,
        sentence_by_sentence,
        any_axes,
    ),
)


# ----------------------------------------------------------------------------------------------------- cross-entropy


def predictions(draw: Draw) -> Case:
    """Logits and targets, some of which are padding."""
    b, t, v = draw.sizes(3, low=4)
    targets = padded_targets(draw, b, t, v)
    targets[1, -1] = 0
    return Case({"logits": 2 * draw.normal(b, t, v), "targets": targets})


def smoothed(draw: Draw) -> Case:
    """The same, with label smoothing."""
    return predictions(draw).with_arguments(label_smoothing=0.2)


def flat(draw: Draw) -> Case:
    """One axis of places."""
    n, v = draw.sizes(2, low=5)
    return Case({"logits": draw.normal(n, v), "targets": draw.integers(1, v, n), "label_smoothing": 0.1})


def other_padding(draw: Draw) -> Case:
    """Padding has another number, which is no token at all; token 0 is one like the others."""
    case = smoothed(draw)
    targets = case.arguments["targets"]
    targets = torch.where(targets == 0, -100, targets)
    targets[0, 0] = 0
    return case.with_arguments(targets=targets, ignore_index=-100)


def nothing_counts(draw: Draw) -> Case:
    """Padding everywhere."""
    case = smoothed(draw)
    return case.with_arguments(targets=torch.zeros_like(case.arguments["targets"]))


def loud_logits(draw: Draw) -> Case:
    """Logits whose exponentials overflow."""
    case = predictions(draw)
    return case.with_arguments(logits=100 * case.arguments["logits"])


def more_predictions(draw: Draw, factor: int) -> Case:
    """More of everything."""
    b, t, v = 2 * factor, 3 * factor, 5 * factor
    return Case({"logits": draw.normal(b, t, v), "targets": draw.integers(1, v, b, t), "label_smoothing": 0.1})


def gentle_predictions(draw: Draw) -> Case:
    """Small logits, for half precision, but for those of padding: a share for it weighs more than what rounding hides."""
    case = smoothed(draw)
    logits = case.arguments["logits"] / 2
    logits[..., 0] -= 8.0
    return case.with_arguments(logits=logits)


def one_target_less(draw: Draw) -> Case:
    """A place without a target."""
    case = predictions(draw)
    return case.with_arguments(targets=case.arguments["targets"][:, :-1])


def everything_smoothed(draw: Draw) -> Case:
    """A share that is none."""
    return predictions(draw).with_arguments(label_smoothing=1.5)


Reduce = Callable[[Tensor, Tensor], Tensor]


def _mean(losses: Tensor, counts: Tensor) -> Tensor:
    return losses.masked_fill(~counts, 0.0).sum() / counts.sum().clamp(min=1)


def _loss(
    logits: Tensor,
    targets: Tensor,
    ignore_index: int,
    on_right: float,
    on_each: float,
    reduce: Reduce = _mean,
) -> Tensor:
    """Cross-entropy in steps: ``on_right`` is what the right token gets beside ``on_each``, which every token gets."""
    if logits.shape[:-1] != targets.shape:
        raise ValueError((tuple(logits.shape), tuple(targets.shape)))
    log_p = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    counts = targets != ignore_index
    right = log_p.gather(-1, targets.where(counts, 0)[..., None])[..., 0]
    return reduce(-on_right * right - on_each * log_p.sum(-1), counts).to(logits.dtype)


def _share(label_smoothing: float) -> float:
    if not 0 <= label_smoothing < 1:
        raise ValueError(label_smoothing)
    return label_smoothing


@misconception("no label smoothing", read="label-smoothing")
def never_smoothed(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The argument label_smoothing is taken and not used: only the right token is asked for."""
    _share(label_smoothing)
    return _loss(logits, targets, ignore_index, 1.0, 0.0)


@misconception("more than one in all", read="label-smoothing")
def more_than_one(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The right token keeps the probability 1, and every token gets ε / V on top: together that is 1 + ε. What the right one gets must be
    lowered to 1 - ε first, so that the distribution sums to one.
    """
    e = _share(label_smoothing)
    return _loss(logits, targets, ignore_index, 1.0, e / logits.shape[-1])


@misconception("nothing for the right token", read="label-smoothing")
def right_left_out(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The right token gets 1 - ε, and of the ε / V that every token gets it is left out: together that is less than one. The uniform part
    belongs to all V tokens, the right one among them.
    """
    e = _share(label_smoothing)
    each = e / logits.shape[-1]
    return _loss(logits, targets, ignore_index, 1 - e - each, each)


@misconception("spread over the others only", read="label-smoothing")
def over_the_others(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The share is spread over the V - 1 wrong tokens, ε / (V - 1) each. That sums to one as well, but it is another convention: here ε is
    spread over all V tokens, the right one among them.
    """
    e = _share(label_smoothing)
    each = e / (logits.shape[-1] - 1)
    return _loss(logits, targets, ignore_index, 1 - e - each, each)


@misconception("nothing for padding", read="label-smoothing")
def nothing_for_padding(
    logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0
) -> Tensor:
    """The share is spread over the V - 2 tokens that are neither right nor padding, ε / (V - 2) each. Some code does it like that; here ε
    is spread over all V tokens, padding and the right one among them.
    """
    e = _share(label_smoothing)
    _loss(logits, targets, ignore_index, 1.0, 0.0)
    log_p = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    counts = targets != ignore_index
    wanted = torch.full_like(log_p, e / (logits.shape[-1] - 2))
    wanted[..., 0] = 0.0
    wanted = wanted.scatter(-1, targets.where(counts, 0)[..., None], 1 - e)
    return _mean(-(wanted * log_p).sum(-1), counts).to(logits.dtype)


@misconception("the whole share for every token", read="label-smoothing")
def not_divided(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """Every token gets the whole of ε in place of ε / V: the logarithms are summed over the vocabulary where their mean is wanted."""
    e = _share(label_smoothing)
    return _loss(logits, targets, ignore_index, 1 - e, e)


@misconception("shares exchanged", read="label-smoothing")
def shares_exchanged(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The right token gets ε and 1 - ε is spread evenly: without smoothing the targets would not matter at all."""
    e = _share(label_smoothing)
    return _loss(logits, targets, ignore_index, e, (1 - e) / logits.shape[-1])


@misconception("padding counted", read="cross-entropy")
def padding_counted(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """Padding counts like words, so that the model is trained to write padding, and a long sentence in a batch changes the loss of a short
    one.
    """
    e = _share(label_smoothing)
    return _loss(logits, targets, ignore_index, 1 - e, e / logits.shape[-1], lambda losses, counts: losses.mean())


@misconception("divided by all places", read="cross-entropy")
def divided_by_all(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """Padding adds nothing, but the sum is divided by the number of all places. The mean is taken over the places that count, or the loss
    depends on how much padding a batch happens to have.
    """
    e = _share(label_smoothing)
    return _loss(
        logits,
        targets,
        ignore_index,
        1 - e,
        e / logits.shape[-1],
        lambda losses, counts: losses.masked_fill(~counts, 0.0).mean(),
    )


@misconception("padding smoothed", read="label-smoothing")
def padding_smoothed(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """Padding is left out of the part of the right tokens, but not of the part that smoothing spreads evenly."""
    e = _share(label_smoothing)
    _loss(logits, targets, ignore_index, 1.0, 0.0)
    uniform = -logits.log_softmax(-1).mean(-1).sum() / (targets != ignore_index).sum().clamp(min=1)
    return ((1 - e) * _loss(logits, targets, ignore_index, 1.0, 0.0) + e * uniform).to(logits.dtype)


@misconception("summed", read="cross-entropy")
def summed(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The losses are added up. With the mean, the learning rate means the same whatever the size of a batch."""
    e = _share(label_smoothing)
    return _loss(
        logits,
        targets,
        ignore_index,
        1 - e,
        e / logits.shape[-1],
        lambda losses, counts: losses.masked_fill(~counts, 0.0).sum(),
    )


@misconception("mean of the sentences' means", read="cross-entropy")
def mean_of_means(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """Each sentence is averaged by itself, then the sentences. A word in a short sentence then counts more than one in a long sentence: all
    places that count are averaged at once.
    """
    e = _share(label_smoothing)

    def reduce(losses: Tensor, counts: Tensor) -> Tensor:
        if counts.ndim < 2:
            return _mean(losses, counts)
        return (losses.masked_fill(~counts, 0.0).sum(-1) / counts.sum(-1).clamp(min=1)).mean()

    return _loss(logits, targets, ignore_index, 1 - e, e / logits.shape[-1], reduce)


@misconception("sign forgotten", read="cross-entropy")
def without_sign(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The sign is missing. The logarithm of a probability is negative, the surprise is positive: training would make the right tokens less
    and less probable.
    """
    e = _share(label_smoothing)
    return -_loss(logits, targets, ignore_index, 1 - e, e / logits.shape[-1])


@misconception("in bits", read="cross-entropy")
def in_bits(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The logarithm has base 2. Nats are asked for, the natural logarithm."""
    e = _share(label_smoothing)
    return _loss(logits, targets, ignore_index, 1 - e, e / logits.shape[-1]) / torch.log(torch.tensor(2.0)).item()


@misconception("softmax over the places", read="cross-entropy")
def over_places(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The softmax runs over the places of a sentence. It runs over the vocabulary, the last axis: at every place the tokens share the
    probability among them.
    """
    e = _share(label_smoothing)
    if logits.shape[:-1] != targets.shape:
        raise ValueError(tuple(targets.shape))
    log_p = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-2)
    counts = targets != ignore_index
    right = log_p.gather(-1, targets.where(counts, 0)[..., None])[..., 0]
    return _mean(-(1 - e) * right - e * log_p.mean(-1), counts).to(logits.dtype)


@misconception("logarithm of a softmax", read="cross-entropy")
def log_of_softmax(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The softmax is computed first and its logarithm afterwards. A probability that is rounded to 0 has the logarithm minus infinity:
    log_softmax subtracts before it rounds.
    """
    e = _share(label_smoothing)
    if logits.shape[:-1] != targets.shape:
        raise ValueError(tuple(targets.shape))
    log_p = logits.to(torch.promote_types(logits.dtype, torch.float32)).softmax(-1).log()
    counts = targets != ignore_index
    right = log_p.gather(-1, targets.where(counts, 0)[..., None])[..., 0]
    losses = -(1 - e) * right - (e * log_p.mean(-1) if e else 0.0)
    return _mean(losses, counts).to(logits.dtype)


@misconception("padding always 0", read="cross-entropy")
def always_zero(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The argument ignore_index is not used: padding is taken to be 0 in every case."""
    e = _share(label_smoothing)
    return _loss(logits, targets, 0, 1 - e, e / logits.shape[-1])


@misconception("NaN where nothing counts", read="cross-entropy")
def nan_for_nothing(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """Where all places are padding, 0 / 0 makes the loss NaN, and one such batch makes all weights NaN. The loss of nothing is 0."""
    e = _share(label_smoothing)
    return _loss(
        logits,
        targets,
        ignore_index,
        1 - e,
        e / logits.shape[-1],
        lambda losses, counts: losses.masked_fill(~counts, 0.0).sum() / counts.sum(),
    )


@misconception("always single precision", read="cross-entropy")
def always_single(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The loss is float32 in every case. It is computed in float32 at least, and given in the dtype of the logits."""
    return training.cross_entropy(logits.float(), targets, label_smoothing=label_smoothing, ignore_index=ignore_index)


@misconception("place by place", read="cross-entropy")
def place_by_place(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """The number is right, but a Python loop goes from place to place. gather looks up the right tokens of all places at once."""
    e = _share(label_smoothing)
    _loss(logits, targets, ignore_index, 1.0, 0.0)
    total, count = logits.sum() * 0, 0
    for row, target in zip(logits.reshape(-1, logits.shape[-1]), targets.flatten(), strict=True):
        if target != ignore_index:
            log_p = row.to(torch.promote_types(row.dtype, torch.float32)).log_softmax(-1)
            total, count = total - (1 - e) * log_p[target] - e * log_p.mean(), count + 1
    return (total / max(count, 1)).to(logits.dtype)


@misconception("any share accepted", read="label-smoothing")
def any_share(logits: Tensor, targets: Tensor, *, label_smoothing: float = 0.0, ignore_index: int = 0) -> Tensor:
    """A share of one or more is accepted: the right token would get less than nothing. Raise a ValueError that names it."""
    return _loss(logits, targets, ignore_index, 1 - label_smoothing, label_smoothing / logits.shape[-1])


CROSS_ENTROPY = Exercise(
    reference=training.cross_entropy,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, predictions),
        look.values(1.5, predictions, title="The mean surprise at the tokens that count."),
        look.values(1.5, smoothed, flat, name="smoothing", title="Label smoothing spreads its share over all tokens."),
        look.values(0.5, other_padding, name="padding", title="Padding may have another number."),
        look.values(0.5, nothing_counts, name="nothing", title="Where nothing counts, the loss is 0.", easy=True),
        look.values(0.5, loud_logits, name="large logits", title="Large logits give finite, right numbers."),
        look.gradients(1, smoothed, wrt=("logits",)),
        look.half_precision(0.5, gentle_predictions),
        look.double_precision(0.5, smoothed),
        look.device(0.5, smoothed),
        look.vectorised(0.5, more_predictions, axis="examples, places or tokens"),
        look.refuses(
            0.5,
            predictions,
            one_target_less,
            everything_smoothed,
            title="Shapes that do not fit, and shares out of range, are a ValueError.",
        ),
    ),
    forbidden=READY_LOSSES,
    rule_case=(predictions, smoothed),
    misconceptions=(
        never_smoothed,
        more_than_one,
        right_left_out,
        over_the_others,
        nothing_for_padding,
        not_divided,
        shares_exchanged,
        padding_counted,
        divided_by_all,
        padding_smoothed,
        summed,
        mean_of_means,
        without_sign,
        in_bits,
        over_places,
        log_of_softmax,
        always_zero,
        nan_for_nothing,
        always_single,
        place_by_place,
        any_share,
    ),
)


# ------------------------------------------------------------------------------------------------------ learning rate


def warming_up(draw: Draw) -> Case:
    """A step in the middle of warm-up."""
    warmup = 20 + int(draw.integers(0, 20))
    return Case({"step": 3 + int(draw.integers(0, 12)), "d_model": 16 + int(draw.integers(0, 9)), "warmup": warmup})


def first_step(draw: Draw) -> Case:
    """The very first step."""
    return warming_up(draw).with_arguments(step=1)


def afterwards(draw: Draw) -> Case:
    """A step behind warm-up."""
    case = warming_up(draw)
    return case.with_arguments(step=100 + case.arguments["step"])


def at_the_top(draw: Draw) -> Case:
    """The step at which the rate is largest."""
    case = warming_up(draw)
    return case.with_arguments(step=case.arguments["warmup"])


def of_the_paper(draw: Draw) -> Case:
    """The warm-up of the paper, which is the default."""
    return Case({"step": 1000 + int(draw.integers(0, 9000)), "d_model": 512})


def other_factor(draw: Draw) -> Case:
    """Another factor."""
    return warming_up(draw).with_arguments(factor=2.5)


def step_zero(draw: Draw) -> Case:
    """A step before the first."""
    return warming_up(draw).with_arguments(step=0)


def no_warmup(draw: Draw) -> Case:
    """A warm-up of no steps."""
    return warming_up(draw).with_arguments(warmup=0)


def _counted(step: int, warmup: int) -> None:
    if step < 1 or warmup < 1:
        raise ValueError((step, warmup))


@misconception("the larger of the two", read="warm-up")
def the_larger(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """The larger of the two is taken. While warming up the straight line is the smaller one, afterwards the falling root: min joins them
    where they meet.
    """
    _counted(step, warmup)
    return float(factor * d_model**-0.5 * max(step**-0.5, step * warmup**-1.5))


@misconception("no warm-up", read="warm-up")
def only_falling(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """There is only the falling part: the first steps are the largest, just when the gradients of a post-norm model are at their worst."""
    _counted(step, warmup)
    return float(factor * d_model**-0.5 * step**-0.5)


@misconception("no end of warm-up", read="warm-up")
def only_rising(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """There is only the rising part: after warm-up the rate must fall."""
    _counted(step, warmup)
    return float(factor * d_model**-0.5 * step * warmup**-1.5)


@misconception("root of the width", read="warm-up")
def root_of_width(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """The rate is multiplied by sqrt(D). It is divided by it: wider models learn with smaller steps."""
    _counted(step, warmup)
    return float(factor * d_model**0.5 * min(step**-0.5, step * warmup**-1.5))


@misconception("width left out", read="warm-up")
def without_width(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """The width is not used. The rate is divided by sqrt(D)."""
    _counted(step, warmup)
    return float(factor * min(step**-0.5, step * warmup**-1.5))


@misconception("divided by the width", read="warm-up")
def by_the_width(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """The rate is divided by D in place of its root."""
    _counted(step, warmup)
    return float(factor / d_model * min(step**-0.5, step * warmup**-1.5))


@misconception("the two do not meet", read="warm-up")
def never_meet(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """The exponent of warmup is -0.5 in place of -1.5, so that the straight line is never the smaller one, except at the very first steps:
    the two must meet at the end of warm-up.
    """
    _counted(step, warmup)
    return float(factor * d_model**-0.5 * min(step**-0.5, step * warmup**-0.5))


@misconception("falling in a straight line", read="warm-up")
def falling_linearly(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """After warm-up the rate falls as 1 / step. It falls as one over the root of the step, more slowly."""
    _counted(step, warmup)
    return float(factor * d_model**-0.5 * min(warmup**0.5 / step, step * warmup**-1.5))


@misconception("constant after warm-up", read="warm-up")
def constant_afterwards(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """After warm-up the rate stays where it is. It falls as one over the root of the step."""
    _counted(step, warmup)
    return float(factor * d_model**-0.5 * min(warmup**-0.5, step * warmup**-1.5))


@misconception("steps counted from zero", read="warm-up")
def from_zero(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """The rate is that of the next step, as if steps were counted from 0. They are counted from 1."""
    _counted(step, warmup)
    return float(factor * d_model**-0.5 * min((step + 1) ** -0.5, (step + 1) * warmup**-1.5))


@misconception("factor not used", read="warm-up")
def without_factor(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """The argument factor is taken and not used."""
    _counted(step, warmup)
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


@misconception("always 4000 steps of warm-up", read="warm-up")
def always_4000(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """The number 4000 is written into the code, and the argument warmup is not used."""
    _counted(step, warmup)
    return float(factor * d_model**-0.5 * min(step**-0.5, step * 4000**-1.5))


@misconception("step 0 accepted", read="warm-up")
def zero_accepted(step: int, d_model: int, warmup: int = 4000, factor: float = 1.0) -> float:
    """Step 0 gets the rate 0, a step that changes nothing, or fails with a division by zero. Steps are counted from 1: say so with a
    ValueError.
    """
    if step == 0:
        return 0.0
    return training.noam_learning_rate(step, d_model, warmup, factor)


NOAM_LEARNING_RATE = Exercise(
    reference=training.noam_learning_rate,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.values(
            1,
            warming_up,
            first_step,
            at_the_top,
            name="rise",
            title="While warming up, the rate rises in a straight line.",
        ),
        look.values(1, afterwards, of_the_paper, name="fall", title="Then it falls as one over the root of the step."),
        look.values(0.5, other_factor, name="factor", title="All rates are multiplied with the factor."),
        look.refuses(0.5, warming_up, step_zero, no_warmup, title="Steps and warm-up of less than 1 are a ValueError."),
    ),
    misconceptions=(
        the_larger,
        only_falling,
        only_rising,
        root_of_width,
        without_width,
        by_the_width,
        never_meet,
        falling_linearly,
        constant_afterwards,
        from_zero,
        without_factor,
        always_4000,
        zero_accepted,
    ),
)


# -------------------------------------------------------------------------------------------------------- checkpoints


def states(draw: Draw, count: int = 3, dtype: torch.dtype = torch.float32) -> list[dict[str, Tensor]]:
    """States of one model."""
    out, width = draw.sizes(2)
    return [
        {
            "map.weight": draw.normal(out, width, dtype=dtype),
            "map.bias": draw.normal(out, dtype=dtype),
            "scale": draw.normal(1, dtype=dtype)[0],
        }
        for _ in range(count)
    ]


def checkpoints(draw: Draw) -> Case:
    """Three or four states."""
    return Case({"checkpoints": states(draw, 3 + int(draw.integers(0, 2)))})


def single(draw: Draw) -> Case:
    """One state."""
    return Case({"checkpoints": states(draw, 1)})


def with_counts(draw: Draw) -> Case:
    """States with a count of steps, and a mask of truth values."""
    made = states(draw)
    for number, state in enumerate(made):
        state["steps"] = torch.tensor(100 * number + 7)
        state["used"] = torch.tensor([True, number == 2])
    return Case({"checkpoints": made})


def halves(draw: Draw) -> Case:
    """States in float16 whose sum overflows."""
    made = states(draw, 4, torch.float16)
    return Case({"checkpoints": [{name: x.abs() * 1000 + 20_000 for name, x in state.items()} for state in made]})


def none_at_all(draw: Draw) -> Case:
    """No state."""
    return Case({"checkpoints": []})


def another_model(draw: Draw) -> Case:
    """A state that lacks a weight."""
    made = states(draw)
    del made[1]["scale"]
    return Case({"checkpoints": made})


def another_size(draw: Draw) -> Case:
    """A state with a weight of another shape, which would be broadcast."""
    made = states(draw)
    made[1]["map.bias"] = made[1]["map.bias"][:1]
    return Case({"checkpoints": made})


Checkpoints = Sequence[Mapping[str, Tensor]]


def _same_model(checkpoints: Checkpoints) -> None:
    if not checkpoints:
        raise ValueError("none")
    shapes = [{name: x.shape for name, x in state.items()} for state in checkpoints]
    if any(other != shapes[0] for other in shapes):
        raise ValueError(shapes)


def _averaged(checkpoints: Checkpoints, mean: Callable[[Sequence[Tensor]], Tensor]) -> dict[str, Tensor]:
    """The states averaged by ``mean``; of what is no floating-point number, the last."""
    _same_model(checkpoints)
    return {
        name: mean([state[name] for state in checkpoints]) if last.is_floating_point() else last.clone()
        for name, last in checkpoints[-1].items()
    }


def _exact(values: Sequence[Tensor]) -> Tensor:
    return torch.stack([x.double() for x in values]).mean(0).to(values[0].dtype)


@misconception("summed", read="averaging")
def summed_up(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """The weights are added up and not divided by the number of checkpoints."""
    return _averaged(checkpoints, lambda values: torch.stack([x.float() for x in values]).sum(0).to(values[0].dtype))


@misconception("only the last", read="averaging")
def the_last(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """The last checkpoint is returned as it is. The mean of several lies nearer to the middle of the valley in which they jump about."""
    return _averaged(checkpoints, lambda values: values[-1].clone())


@misconception("only the first", read="averaging")
def the_first(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """The first checkpoint is returned as it is: the others are never added."""
    return _averaged(checkpoints, lambda values: values[0].clone())


@misconception("first and last", read="averaging")
def first_and_last(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """Only the first and the last checkpoint are averaged. All of them count alike."""
    return _averaged(checkpoints, lambda values: _exact([values[0], values[-1]]))


@misconception("averaged step by step", read="averaging")
def running(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """Each checkpoint is averaged with the mean so far, half and half. The last one then counts as much as all the others together: all of
    them count alike.
    """

    def mean(values: Sequence[Tensor]) -> Tensor:
        result = values[0].double()
        for x in values[1:]:
            result = (result + x.double()) / 2
        return result.to(values[0].dtype)

    return _averaged(checkpoints, mean)


@misconception("divided by one less", read="averaging")
def one_less(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """The sum is divided by the number of checkpoints less one."""
    return _averaged(
        checkpoints,
        lambda values: (torch.stack([x.double() for x in values]).sum(0) / max(len(values) - 1, 1)).to(values[0].dtype),
    )


@misconception("one number for a weight", read="averaging")
def one_number(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """The mean is taken over all entries of a weight. It is taken over the checkpoints, entry by entry: the weights keep their shapes."""
    return _averaged(checkpoints, lambda values: _exact(values).double().mean().to(values[0].dtype))


@misconception("median", read="averaging")
def median(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """The median of the checkpoints is taken. Their mean is asked for."""
    return _averaged(checkpoints, lambda values: torch.stack(list(values)).median(0).values)


@misconception("summed in the first checkpoint", read="averaging")
def in_place(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """The sum is made in the first checkpoint itself (+=, or a copy of the dictionary that holds the same tensors). It is changed
    afterwards, and with it the model whose weights they are.
    """
    result = _averaged(checkpoints, _exact)
    for name, x in checkpoints[0].items():
        if x.is_floating_point():
            x.copy_(result[name])
    return result


@misconception("counts averaged", read="averaging")
def counts_averaged(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """What is not a floating-point number, such as a count of steps or a mask, is averaged as well and becomes a fraction. It is taken
    from the last checkpoint.
    """
    _same_model(checkpoints)
    return {
        name: _exact([s[name] for s in checkpoints])
        if last.is_floating_point()
        else torch.stack([s[name].double() for s in checkpoints]).mean(0).float()
        for name, last in checkpoints[-1].items()
    }


@misconception("counts from the first", read="averaging")
def counts_of_the_first(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """What is not a floating-point number is taken from the first checkpoint. The count of steps that belongs to the mean is the last
    one.
    """
    result = _averaged(checkpoints, _exact)
    return {name: x if x.is_floating_point() else checkpoints[0][name].clone() for name, x in result.items()}


@misconception("counts left out", read="averaging")
def counts_left_out(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """What is not a floating-point number is left out. A model would refuse to load a state that lacks an entry."""
    return {name: x for name, x in _averaged(checkpoints, _exact).items() if x.is_floating_point()}


@misconception("summed in half precision", read="averaging")
def summed_in_half(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """The sum is made in the precision of the weights. In float16 numbers end at 65504, and small differences are rounded away: sum in
    float32, round the mean.
    """

    def mean(values: Sequence[Tensor]) -> Tensor:
        total = values[0].clone()
        for x in values[1:]:
            total = total + x
        return total / len(values)

    return _averaged(checkpoints, mean)


@misconception("single precision returned", read="averaging")
def single_returned(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """The mean is float32 in every case. Each weight keeps its dtype."""
    return _averaged(checkpoints, lambda values: torch.stack([x.float() for x in values]).mean(0))


@misconception("different models accepted", read="averaging")
def any_models(checkpoints: Checkpoints) -> dict[str, Tensor]:
    """Checkpoints that lack a weight, or whose weights have another shape, are averaged as far as they go. They are not states of one
    model: raise a ValueError.
    """
    if not checkpoints:
        raise ValueError("none")
    result = {}
    for name, last in checkpoints[-1].items():
        values = [state[name] for state in checkpoints if name in state]
        total = sum((x.double() for x in values[1:]), values[0].double()) / len(values)
        result[name] = total.to(last.dtype) if last.is_floating_point() else last.clone()
    return result


AVERAGE_CHECKPOINTS = Exercise(
    reference=training.average_checkpoints,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, checkpoints, halves),
        look.values(1.5, checkpoints, single, title="Every entry is the mean of the checkpoints' entries."),
        look.values(
            0.5, with_counts, name="counts", title="What is no floating-point number is that of the last checkpoint."
        ),
        look.unmutated(1, with_counts),
        look.values(
            0.5,
            halves,
            name="half precision",
            title="Means of half precision are computed in float32 and rounded back.",
        ),
        look.double_precision(0.5, checkpoints),
        look.refuses(
            0.5,
            checkpoints,
            none_at_all,
            another_model,
            another_size,
            title="No checkpoints, or those of different models, are a ValueError.",
        ),
    ),
    misconceptions=(
        summed_up,
        the_last,
        the_first,
        first_and_last,
        running,
        one_less,
        one_number,
        median,
        in_place,
        counts_averaged,
        counts_of_the_first,
        counts_left_out,
        summed_in_half,
        single_returned,
        any_models,
    ),
)


# ------------------------------------------------------------------------------------------------------ training step

TOKENS = 5


def step_of_a_network(draw: Draw, optimizer: str = "SGD", **options: float) -> Case:
    """A small network, its optimiser, and one batch with padding."""
    b, t, inputs, hidden = draw.sizes(4, low=3)
    model = {
        "kind": "Perceptron",
        "init": {"inputs": inputs, "hidden": hidden, "outputs": TOKENS},
        "state": draw.weights(Perceptron(inputs, hidden, TOKENS)),
    }
    return Case(
        {"inputs": (draw.normal(b, t, inputs),), "targets": padded_targets(draw, b, t, TOKENS)},
        props={"model": model, "optimizer": {"kind": optimizer, "of": "model", "init": {"lr": 0.5, **options}}},
    )


def step_of_a_table(draw: Draw) -> Case:
    """A table of next tokens, as a language model."""
    b, t, places = draw.sizes(3, low=3)
    model = {
        "kind": "TokenTable",
        "init": {"vocabulary": TOKENS, "places": places},
        "state": draw.weights(TokenTable(TOKENS, places)),
    }
    return Case(
        {"inputs": (draw.integers(0, TOKENS, b, t),), "targets": padded_targets(draw, b, t, TOKENS)},
        props={"model": model, "optimizer": {"kind": "SGD", "of": "model", "init": {"lr": 2.0}}},
    )


def smoothed_step(draw: Draw) -> Case:
    """A step with label smoothing."""
    return step_of_a_network(draw).with_arguments(label_smoothing=0.3)


def step_with_adam(draw: Draw) -> Case:
    """A step of another optimiser, which does not move by rate times gradient."""
    return step_of_a_network(draw, "Adam", lr=0.1)


def step_at_a_rate(draw: Draw) -> Case:
    """A step at a rate that is given."""
    return step_of_a_network(draw).with_arguments(learning_rate=0.07)


def step_of_groups(draw: Draw) -> Case:
    """The same, with an optimiser that keeps each weight in a group of its own."""
    case = step_at_a_rate(draw)
    assert case.props is not None
    return replace(case, props={**case.props, "optimizer": {**case.props["optimizer"], "apart": True}})


def step_with_leftovers(draw: Draw) -> Case:
    """A model in which an earlier step has left its gradients."""
    case = step_of_a_network(draw)
    assert case.props is not None
    model = case.props["model"]
    left = {name: draw.normal(*weight.shape) for name, weight in model["state"].items()}
    return replace(case, props={**case.props, "model": {**model, "gradients": left}})


Optimizer = torch.optim.Optimizer


class _Step:
    """A step of training in parts; each mistake below changes one of them."""

    def rate(self, optimizer: Optimizer, learning_rate: float | None) -> None:
        if learning_rate is not None:
            for group in optimizer.param_groups:
                group["lr"] = learning_rate

    def loss(self, logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        return F.cross_entropy(
            logits.flatten(0, -2), targets.flatten(), ignore_index=0, label_smoothing=label_smoothing
        )

    def learn(self, model: nn.Module, optimizer: Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    def __call__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        inputs: Sequence[Tensor],
        targets: Tensor,
        *,
        learning_rate: float | None = None,
        label_smoothing: float = 0.0,
    ) -> Any:
        self.rate(optimizer, learning_rate)
        loss = self.loss(model(*inputs), targets, label_smoothing)
        self.learn(model, optimizer, loss)
        return loss.detach()


def _mistake(name: str, *, read: str) -> Callable[[type[Any]], Any]:
    """Declare a variant of the step, or of the loop, as a known mistake: what is called is an instance of it."""

    def declare(kind: type[Any]) -> Any:
        step = kind()

        def wrong(*args: Any, **kwargs: Any) -> Any:
            return step(*args, **kwargs)

        wrong.__doc__ = kind.__doc__
        return misconception(name, read=read)(wrong)

    return declare


@_mistake("gradients not cleared", read="training-step")
class _NotCleared(_Step):
    """The gradients of the step before are not cleared. backward() adds to what is there, so every step goes on in all the old
    directions, too: call optimizer.zero_grad() before.
    """

    def learn(self, model: nn.Module, optimizer: Optimizer, loss: Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


@_mistake("no weight changes", read="training-step")
class _ClearedTooLate(_Step):
    """No weight ever changes: the optimiser finds no gradients to follow, or is not asked to make its step. There has to be a backward(),
    then a step(), and nothing between the two that clears the gradients.
    """

    def learn(self, model: nn.Module, optimizer: Optimizer, loss: Tensor) -> None:
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.zero_grad()
        optimizer.step()


@_mistake("step before the gradients are there", read="training-step")
class _StepFirst(_Step):
    """The optimiser makes its step before backward() has computed the gradients: it follows those of the step before, or none at all."""

    def learn(self, model: nn.Module, optimizer: Optimizer, loss: Tensor) -> None:
        optimizer.step()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]


@_mistake("two steps for one", read="training-step")
class _Twice(_Step):
    """The method optimizer.step() is called twice (before and behind, or by hand as well): the weights move twice as far."""

    def learn(self, model: nn.Module, optimizer: Optimizer, loss: Tensor) -> None:
        super().learn(model, optimizer, loss)
        optimizer.step()


@_mistake("up in place of down", read="training-step")
class _Up(_Step):
    """The step goes the other way: the loss grows. The optimiser goes against the gradient by itself; what is handed to it is the
    gradient of the loss.
    """

    def learn(self, model: nn.Module, optimizer: Optimizer, loss: Tensor) -> None:
        super().learn(model, optimizer, -loss)


@_mistake("a rule of its own", read="training-step")
class _ByHand(_Step):
    """The weights are moved by hand, by rate times gradient, and the optimiser is not asked. Another optimiser, such as Adam, has another
    rule: optimizer.step() follows it.
    """

    def learn(self, model: nn.Module, optimizer: Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for weight in model.parameters():
                if weight.grad is not None:
                    weight.sub_(optimizer.param_groups[0]["lr"] * weight.grad)


@_mistake("only the first weights", read="training-step")
class _FirstOnly(_Step):
    """Only the first of the model's weights learns; the others are left as they were."""

    def learn(self, model: nn.Module, optimizer: Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for weight in list(model.parameters())[1:]:
            weight.grad = None
        if len(list(model.parameters())) > 1:
            optimizer.step()


@_mistake("gradients clipped", read="training-step")
class _Clipped(_Step):
    """The gradients are clipped before the step. That can help (chapter 01), but it is another step than the one that is asked for."""

    def learn(self, model: nn.Module, optimizer: Optimizer, loss: Tensor) -> None:
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()


@_mistake("padding counted", read="cross-entropy")
class _PaddingCounted(_Step):
    """Padding counts in the loss, so that the model learns to write padding."""

    def loss(self, logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), label_smoothing=label_smoothing)


@_mistake("losses summed", read="cross-entropy")
class _Summed(_Step):
    """The losses are added up in place of averaged: a larger batch makes a larger step."""

    def loss(self, logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        return super().loss(logits, targets, label_smoothing) * (targets != 0).sum()


@_mistake("label smoothing not handed on", read="label-smoothing")
class _NotSmoothed(_Step):
    """The argument label_smoothing is taken and not handed on to the loss."""

    def loss(self, logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
        return super().loss(logits, targets, 0.0)


@_mistake("learning rate not used", read="warm-up")
class _RateIgnored(_Step):
    """The argument learning_rate is not used for this step: it is left out, or set when the step has been made. The optimiser goes at
    the rate that it had before; set the rate before step().
    """

    def rate(self, optimizer: Optimizer, learning_rate: float | None) -> None:
        return


@_mistake("learning rate multiplied", read="warm-up")
class _RateMultiplied(_Step):
    """The optimiser's rate is multiplied with the one that is given. It is replaced by it: otherwise the rates of all steps would
    multiply.
    """

    def rate(self, optimizer: Optimizer, learning_rate: float | None) -> None:
        for group in optimizer.param_groups:
            group["lr"] *= 1.0 if learning_rate is None else learning_rate


@_mistake("rate of the first group only", read="warm-up")
class _FirstGroup(_Step):
    """Only the first of the optimiser's groups gets the rate. An optimiser may keep its parameters in several groups, each with a rate of
    its own: go through all of them.
    """

    def rate(self, optimizer: Optimizer, learning_rate: float | None) -> None:
        if learning_rate is not None:
            optimizer.param_groups[0]["lr"] = learning_rate


@_mistake("loss after the step", read="training-step")
class _LossAfter(_Step):
    """The loss is measured again after the step and that number is returned. The loss before the step is asked for: it is there already,
    and a second pass through the model costs as much as the first.
    """

    def __call__(
        self, model: nn.Module, optimizer: Optimizer, inputs: Sequence[Tensor], targets: Tensor, **rest: Any
    ) -> Any:
        super().__call__(model, optimizer, inputs, targets, **rest)
        return self.loss(model(*inputs), targets, rest.get("label_smoothing", 0.0)).detach()


@_mistake("a Python number", read="training-step")
class _Number(_Step):
    """The loss is returned as a Python number (.item()). On a GPU that waits for the device at every step: return the tensor, detached."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs).item()


TRAINING_STEP = Exercise(
    reference=training.training_step,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.part(
            1,
            step_of_a_network,
            step_of_a_table,
            output="output",
            name="loss",
            title="It returns the loss before the step, a tensor.",
        ),
        look.values(
            1.5, step_of_a_network, step_of_a_table, title="Every weight moves as it should, and the loss is right."
        ),
        look.values(1, step_with_leftovers, name="left over", title="Gradients that were left over do not count."),
        look.values(0.5, step_with_adam, name="optimiser", title="The optimiser decides how the weights move."),
        look.values(
            0.5, step_at_a_rate, step_of_groups, name="rate", title="A rate that is given is the rate of this step."
        ),
        look.values(0.5, smoothed_step, name="smoothing", title="Label smoothing is handed on to the loss."),
        look.unmutated(0.5, step_of_a_network),
        look.double_precision(0.5, step_of_a_network),
    ),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        _NotCleared,
        _ClearedTooLate,
        _StepFirst,
        _Twice,
        _Up,
        _ByHand,
        _FirstOnly,
        _Clipped,
        _PaddingCounted,
        _Summed,
        _NotSmoothed,
        _RateIgnored,
        _RateMultiplied,
        _FirstGroup,
        _LossAfter,
        _Number,
    ),
)


# ------------------------------------------------------------------------------------------------------ training loop

# How long the small task is trained, and how good the model must be then, on examples that it has not seen. On 400 tasks the reference
# never had a loss above 0.06, or less than 98 % right; without the schedule, at its first rate alone, or on one batch for ever, no loss was
# below 0.2.
STEPS = 60
WARMUP = 15
LARGEST_LOSS = 0.15
LEAST_RIGHT = 0.95
CORNERS = 4


def _rates(*rates: float) -> dict[str, Any]:
    return {"kind": "Rates", "init": {"rates": rates}}


def some_steps(draw: Draw, steps: int = 3, optimizer: str = "SGD", **options: float) -> Case:
    """A small network, its optimiser, and a few batches with padding, each of another size."""
    _, inputs, hidden = draw.sizes(3)
    model = {
        "kind": "Perceptron",
        "init": {"inputs": inputs, "hidden": hidden, "outputs": TOKENS},
        "state": draw.weights(Perceptron(inputs, hidden, TOKENS)),
    }
    batches = [((draw.normal(2 + n, 4, inputs),), padded_targets(draw, 2 + n, 4, TOKENS)) for n in range(steps)]
    return Case(
        {"batches": batches},
        props={"model": model, "optimizer": {"kind": optimizer, "of": "model", "init": {"lr": 0.5, **options}}},
    )


def one_step(draw: Draw) -> Case:
    """A single batch."""
    return some_steps(draw, steps=1)


def no_steps(draw: Draw) -> Case:
    """No batch at all."""
    return some_steps(draw).with_arguments(batches=[])


def smoothed_steps(draw: Draw) -> Case:
    """Steps with label smoothing."""
    return some_steps(draw).with_arguments(label_smoothing=0.3)


def steps_with_adam(draw: Draw) -> Case:
    """Steps of an optimiser that remembers the ones before."""
    return some_steps(draw, steps=4, optimizer="Adam", lr=0.1)


def steps_at_rates(draw: Draw) -> Case:
    """Every step has a rate of its own."""
    case = some_steps(draw, steps=4)
    first = 0.3 + float(draw.integers(1, 9)) / 10
    return replace(case, props={**(case.props or {}), "learning_rate": _rates(first, first / 3, 2 * first, first / 5)})


def steps_of_groups(draw: Draw) -> Case:
    """The same, with an optimiser that keeps each weight in a group of its own."""
    case = steps_at_rates(draw)
    assert case.props is not None
    return replace(case, props={**case.props, "optimizer": {**case.props["optimizer"], "apart": True}})


def steps_with_dropout(draw: Draw) -> Case:
    """A model that drops everything while it is trained, and has been examined just before."""
    case = some_steps(draw)
    assert case.props is not None
    model = case.props["model"]
    model = {**model, "init": {**model["init"], "dropout": 1.0}, "training": False}
    return replace(case, props={**case.props, "model": model})


def _corners(draw: Draw, count: int, first: int, among: int) -> tuple[Tensor, Tensor]:
    """Draw points of three coordinates around corners of a square: the tokens from 1 on; the third coordinate says nothing."""
    corner = (first + draw.integers(0, among, count)) % CORNERS
    centre = torch.stack([corner // 2, (corner + 1) // 2 % 2, torch.full_like(corner, 0)], dim=-1) * 2.0 - 1.0
    return centre + draw.normal(count, 3, scale=0.3), corner + 1


def corners(draw: Draw) -> tuple[Case, tuple[Tensor, ...], Tensor]:
    """Which corner? Every batch shows two neighbouring ones of four. The optimiser's own rate is far too small; the schedule's is not."""
    init = {"inputs": 3, "hidden": 8, "outputs": TOKENS}
    rates = [0.1 * min(step / WARMUP, (WARMUP / step) ** 0.5) for step in range(1, STEPS + 1)]
    batches = []
    for step in range(STEPS):
        points, targets = _corners(draw, 8, first=step, among=2)
        batches.append(((points,), targets))
    case = Case(
        {"batches": batches},
        props={
            "model": {"kind": "Perceptron", "init": init, "state": draw.weights(Perceptron(3, 8, TOKENS))},
            "optimizer": {"kind": "Adam", "of": "model", "init": {"lr": 1e-4}},
            "learning_rate": _rates(*rates),
        },
    )
    points, targets = _corners(draw, 200, first=0, among=CORNERS)
    return case, (points,), targets


Batches = Sequence[tuple[Sequence[Tensor], Tensor]]
Rate = Callable[[int], float]


class _Loop:
    """A training loop in parts; each mistake below changes one of them."""

    def mode(self, model: nn.Module) -> None:
        model.train()

    def batches(self, batches: Batches) -> Batches:
        return batches

    def rate(self, learning_rate: Rate | None, step: int) -> float | None:
        return None if learning_rate is None else learning_rate(step)

    def step(
        self, model: nn.Module, optimizer: Optimizer, inputs: Sequence[Tensor], targets: Tensor, **rest: Any
    ) -> Any:
        return _Step()(model, optimizer, inputs, targets, **rest)

    def told(self, losses: list[Tensor]) -> Any:
        return torch.stack(losses)

    def __call__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        batches: Batches,
        *,
        learning_rate: Rate | None = None,
        label_smoothing: float = 0.0,
    ) -> Any:
        if not batches:
            raise ValueError("none")
        self.mode(model)
        losses = []
        for step, (inputs, targets) in enumerate(self.batches(batches), start=1):
            options = {"learning_rate": self.rate(learning_rate, step), "label_smoothing": label_smoothing}
            losses.append(self.step(model, optimizer, inputs, targets, **options))
        return self.told(losses)


@_mistake("one batch for ever", read="training-step")
class _OneBatch(_Loop):
    """Every step is made on the first batch. The model learns that one by heart, and nothing of the others."""

    def batches(self, batches: Batches) -> Batches:
        return [batches[0]] * len(batches)


@_mistake("one step and no more", read="training-step")
class _OneStep(_Loop):
    """The loop ends after its first step (a return inside of it?). One step is made for each batch."""

    def batches(self, batches: Batches) -> Batches:
        return batches[:1]


@_mistake("last batch left out", read="training-step")
class _LastLeftOut(_Loop):
    """The last batch is not trained on: the loop ends one step too early."""

    def batches(self, batches: Batches) -> Batches:
        return batches[:-1] or batches


@_mistake("batches in another order", read="training-step")
class _Reversed(_Loop):
    """The batches are not taken in the order in which they come, but from behind. Who hands them over has chosen their order."""

    def batches(self, batches: Batches) -> Batches:
        return batches[::-1]


@_mistake("two rounds", read="training-step")
class _TwoRounds(_Loop):
    """The batches are gone through more than once. Each is one step: who wants another round hands them over again."""

    def batches(self, batches: Batches) -> Batches:
        return [*batches, *batches]


@_mistake("one step for all batches", read="training-step")
class _OneForAll(_Loop):
    """The losses of all batches are computed first, and one step is made on their mean. Each batch has a step of its own, and the next one
    is asked of the weights that this step has left.
    """

    def __call__(
        self,
        model: nn.Module,
        optimizer: Optimizer,
        batches: Batches,
        *,
        learning_rate: Rate | None = None,
        label_smoothing: float = 0.0,
    ) -> Any:
        if not batches:
            raise ValueError("none")
        model.train()
        losses = torch.stack([_Step().loss(model(*inputs), targets, label_smoothing) for inputs, targets in batches])
        _Step().rate(optimizer, self.rate(learning_rate, 1))
        _Step().learn(model, optimizer, losses.mean())
        return losses.detach()


@_mistake("schedule not used", read="warm-up")
class _ScheduleIgnored(_Loop):
    """The argument learning_rate is taken and not used: all steps are made at the rate that the optimiser was made with."""

    def rate(self, learning_rate: Rate | None, step: int) -> float | None:
        return None


@_mistake("one rate for all steps", read="warm-up")
class _OneRate(_Loop):
    """The schedule is asked once, and all steps are made at the rate of the first. With a warm-up that is the smallest of all: ask again
    before every step.
    """

    def rate(self, learning_rate: Rate | None, step: int) -> float | None:
        return super().rate(learning_rate, 1)


@_mistake("steps counted from 0", read="warm-up")
class _FromZero(_Loop):
    """The steps are counted from 0, but a schedule counts from 1: step 0 has no rate."""

    def rate(self, learning_rate: Rate | None, step: int) -> float | None:
        return super().rate(learning_rate, step - 1)


@_mistake("rate one step late", read="warm-up")
class _RateLate(_Loop):
    """The rate is set after the step that it is meant for. The first step is made at the optimiser's own rate, and every other one at that
    of the step before.
    """

    def step(
        self, model: nn.Module, optimizer: Optimizer, inputs: Sequence[Tensor], targets: Tensor, **rest: Any
    ) -> Any:
        rate = rest.pop("learning_rate")
        loss = super().step(model, optimizer, inputs, targets, **rest)
        _Step().rate(optimizer, rate)
        return loss


@_mistake("rates multiplied", read="warm-up")
class _RatesMultiplied(_Loop):
    """The optimiser's rate is multiplied by that of the schedule, step after step. It is replaced by it."""

    def step(
        self, model: nn.Module, optimizer: Optimizer, inputs: Sequence[Tensor], targets: Tensor, **rest: Any
    ) -> Any:
        rate = rest.pop("learning_rate")
        for group in optimizer.param_groups:
            group["lr"] *= 1.0 if rate is None else rate
        return super().step(model, optimizer, inputs, targets, **rest)


@_mistake("rate of the first group only", read="warm-up")
class _LoopFirstGroup(_Loop):
    """Only the first of the optimiser's groups gets the rates. An optimiser may keep its parameters in several groups: go through all of
    them, as training_step does.
    """

    def step(
        self, model: nn.Module, optimizer: Optimizer, inputs: Sequence[Tensor], targets: Tensor, **rest: Any
    ) -> Any:
        rate = rest.pop("learning_rate")
        if rate is not None:
            optimizer.param_groups[0]["lr"] = rate
        return super().step(model, optimizer, inputs, targets, **rest)


@_mistake("gradients never cleared", read="training-step")
class _LoopNotCleared(_Loop):
    """The gradients are never cleared, so that every step goes on in the directions of all steps before it, too."""

    def step(
        self, model: nn.Module, optimizer: Optimizer, inputs: Sequence[Tensor], targets: Tensor, **rest: Any
    ) -> Any:
        _Step().rate(optimizer, rest["learning_rate"])
        loss = _Step().loss(model(*inputs), targets, rest["label_smoothing"])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss.detach()


@_mistake("a new optimiser at every step", read="training-step")
class _ForgetsState(_Loop):
    """The optimiser is made anew at every step, and forgets what it had gathered. Adam lives on its running means: use the one that is
    given, from the first step to the last.
    """

    def step(
        self, model: nn.Module, optimizer: Optimizer, inputs: Sequence[Tensor], targets: Tensor, **rest: Any
    ) -> Any:
        optimizer.state.clear()
        return super().step(model, optimizer, inputs, targets, **rest)


@_mistake("training mode forgotten", read="dropout")
class _ModeForgotten(_Loop):
    """The model is not put into training mode. Who has just examined it has called model.eval(), and without model.train() the dropout
    stays off for the rest of the training, without any error.
    """

    def mode(self, model: nn.Module) -> None:
        return


@_mistake("label smoothing not handed on", read="label-smoothing")
class _LoopNotSmoothed(_Loop):
    """The argument label_smoothing is taken and not handed on to the steps."""

    def step(
        self, model: nn.Module, optimizer: Optimizer, inputs: Sequence[Tensor], targets: Tensor, **rest: Any
    ) -> Any:
        return super().step(model, optimizer, inputs, targets, **{**rest, "label_smoothing": 0.0})


@_mistake("only the last loss", read="training-step")
class _LastLoss(_Loop):
    """Only the loss of the last step is returned. The losses of all steps are asked for: the learning curve is drawn from them."""

    def told(self, losses: list[Tensor]) -> Any:
        return losses[-1]


@_mistake("mean of the losses", read="training-step")
class _MeanLoss(_Loop):
    """One number is returned, the mean of the losses of all steps. Those of the beginning and of the end do not belong together: return
    one number for each step.
    """

    def told(self, losses: list[Tensor]) -> Any:
        return torch.stack(losses).mean()


@_mistake("a list of losses", read="training-step")
class _ListOfLosses(_Loop):
    """The losses are returned as a list. One tensor with an entry for each step is asked for: torch.stack makes it."""

    def told(self, losses: list[Tensor]) -> Any:
        return losses


@_mistake("losses after the steps", read="training-step")
class _LossesAfter(_Loop):
    """Each loss is measured again after its step. The loss before the step is there already; a second pass through the model costs as much
    as the first.
    """

    def step(
        self, model: nn.Module, optimizer: Optimizer, inputs: Sequence[Tensor], targets: Tensor, **rest: Any
    ) -> Any:
        super().step(model, optimizer, inputs, targets, **rest)
        return _Step().loss(model(*inputs), targets, rest["label_smoothing"]).detach()


@_mistake("losses kept with their graphs", read="training-step")
class _GraphsKept(_Loop):
    """The losses are collected as they are, not detached. Each of them keeps the whole graph of its step in memory, with all that the
    model computed on the way: a long training ends for want of memory.
    """

    def step(
        self, model: nn.Module, optimizer: Optimizer, inputs: Sequence[Tensor], targets: Tensor, **rest: Any
    ) -> Any:
        _Step().rate(optimizer, rest["learning_rate"])
        loss = _Step().loss(model(*inputs), targets, rest["label_smoothing"])
        _Step().learn(model, optimizer, loss)
        return loss


@_mistake("single precision told", read="training-step")
class _SingleTold(_Loop):
    """The losses are turned into Python numbers and back into a tensor, which is float32 then, whatever the model's precision. Stack the
    tensors that the steps return.
    """

    def told(self, losses: list[Tensor]) -> Any:
        return torch.tensor([loss.item() for loss in losses])


@_mistake("batches used up", read="training-step")
class _UsedUp(_Loop):
    """The batches are taken out of the list that was handed over, which is empty afterwards. Go through it and leave it as it is."""

    def __call__(self, model: nn.Module, optimizer: Optimizer, batches: Batches, **rest: Any) -> Any:
        losses = super().__call__(model, optimizer, batches, **rest)
        if isinstance(batches, list):
            batches.clear()
        return losses


@_mistake("no batches accepted", read="training-step")
class _NoneAccepted(_Loop):
    """Without any batch an empty tensor is returned, as if something had been trained. Raise a ValueError: an iterator that was used up
    already looks just like that.
    """

    def __call__(self, model: nn.Module, optimizer: Optimizer, batches: Batches, **rest: Any) -> Any:
        return super().__call__(model, optimizer, batches, **rest) if batches else torch.empty(0)


TRAINING_LOOP = Exercise(
    reference=training.training_loop,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.part(
            1,
            one_step,
            some_steps,
            output="output",
            name="losses",
            title="It returns the loss of every step, before that step.",
        ),
        look.values(
            1.5,
            one_step,
            some_steps,
            title="After one step and after three, every weight is where it should be, and every loss is right.",
        ),
        look.values(
            1, steps_at_rates, steps_of_groups, name="rates", title="Every step is made at its own learning rate."
        ),
        look.values(0.5, steps_with_adam, name="optimiser", title="The optimiser remembers the steps before."),
        look.values(0.5, steps_with_dropout, name="training mode", title="The model is trained in training mode."),
        look.values(0.5, smoothed_steps, name="smoothing", title="Label smoothing is handed on to every step."),
        look.detached(0.5, some_steps),
        look.unmutated(0.5, some_steps),
        look.double_precision(0.5, some_steps),
        look.reaches(
            1,
            corners,
            loss=LARGEST_LOSS,
            right=LEAST_RIGHT,
            title=f"After {STEPS} steps of a small task the model does it, on examples that it has not seen.",
        ),
        look.refuses(0.5, some_steps, no_steps, title="No batches at all are a ValueError."),
    ),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        _OneBatch,
        _OneStep,
        _LastLeftOut,
        _Reversed,
        _TwoRounds,
        _OneForAll,
        _ScheduleIgnored,
        _OneRate,
        _FromZero,
        _RateLate,
        _RatesMultiplied,
        _LoopFirstGroup,
        _LoopNotCleared,
        _ForgetsState,
        _ModeForgotten,
        _LoopNotSmoothed,
        _LastLoss,
        _MeanLoss,
        _ListOfLosses,
        _LossesAfter,
        _GraphsKept,
        _SingleTold,
        _UsedUp,
        _NoneAccepted,
    ),
)
