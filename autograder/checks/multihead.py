"""Checks of chapter 04: multi-head attention."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor, nn

from autograder.checking import aspects as look
from autograder.checking.aspects import Maker
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.attention import FUSED
from autograder.checks.sections import HEADINGS
from tfcourse import attention, multihead

CHAPTER = "04_multi_head"
NO_LOOP = "examples, positions or heads"


def sizes(draw: Draw, *, batch: int | None = None) -> dict[str, int]:
    """Sizes by letter (W: head width): pairwise distinct, at least two heads of at least two columns, and a width of 6.

    What is not about the batch is asked with ``batch=1``: the answers of every known mistake are recorded, so they are kept small.
    """
    lengths, (first, second) = (4, 5, 7), draw.sizes(2, low=0)
    heads = 2 + int(draw.integers(0, 2))
    return {
        "B": batch or lengths[3 - first - second],
        "T": lengths[first],
        "S": lengths[second],
        "H": heads,
        "W": 5 - heads,
        "D": heads * (5 - heads),
    }


# ------------------------------------------------------------------------------------------------------- the layer


def _layer(draw: Draw, n: dict[str, int], *, context: int | None = None, bias: bool | None = None) -> Case:
    """A layer with random weights, and inputs for it. Without ``bias`` the constructor's default is used."""
    init: dict[str, int | bool] = {"d_model": n["D"], "n_heads": n["H"]}
    if bias is not None:
        init["bias"] = bias
    arguments = {"x": draw.normal(n["B"], n["T"], n["D"])}
    if context is not None:
        arguments["context"] = draw.normal(n["B"], context, n["D"])
    reference = multihead.MultiHeadAttention(n["D"], n["H"], bias=bias is not False)
    return Case(arguments, init=init, state=draw.weights(reference))


def self_attention(draw: Draw) -> Case:
    """No context, no mask."""
    return _layer(draw, sizes(draw))


def cross_attention(draw: Draw) -> Case:
    """A context of another length."""
    n = sizes(draw)
    return _layer(draw, n, context=n["S"])


def one_context(draw: Draw) -> Case:
    """A context of another length, for one example."""
    n = sizes(draw, batch=1)
    return _layer(draw, n, context=n["S"])


def equal_lengths(draw: Draw) -> Case:
    """A context that is as long as ``x``: confusing the two goes unseen by the shapes."""
    n = sizes(draw, batch=1)
    return _layer(draw, n, context=n["T"])


def no_bias(draw: Draw) -> Case:
    """A layer that is asked to have no biases."""
    n = sizes(draw, batch=1)
    return _layer(draw, n, context=n["S"], bias=False)


def loud(draw: Draw) -> Case:
    """Inputs so large that the exponential of a score overflows; in double precision, where no right order of summation matters.

    Every position has a neighbour that is nearly the same, so that some weights are neither ones nor zeros, and tell how the scores were
    scaled. The root of the head width is 2, in any precision.
    """
    n = sizes(draw, batch=1)
    case = _layer(draw, {**n, "D": 4 * n["H"]}).to(torch.float64)
    x = case.arguments["x"] * 30
    return case.with_arguments(x=torch.cat([x, x + draw.normal(*x.shape, scale=0.02, dtype=torch.float64)], dim=1))


def masked(axes: str, *, batch: int | None = None) -> Maker:
    """Cross-attention with a mask of the axes named, for example ``"B1S"``, in which every query may attend to something."""

    def make(draw: Draw) -> Case:
        n = sizes(draw, batch=batch)
        case = _layer(draw, n, context=n["S"])
        return case.with_arguments(mask=draw.mask(*(n.get(axis, 1) for axis in axes)))

    return make


def one_example(draw: Draw) -> Case:
    """A single example with a mask of its own."""
    return masked("BTS", batch=1)(draw)


def gentle(draw: Draw) -> Case:
    """Small weights: four maps and a softmax in a row, each rounded to half precision, stay near the right numbers in any order."""
    case = one_example(draw)
    return replace(case, state={name: value / 2 for name, value in (case.state or {}).items()})


def as_many_heads(draw: Draw) -> Case:
    """As many examples as heads: a mask (B, T, S) whose batch is taken for heads goes unseen by the shapes."""
    n = sizes(draw)
    n["B"] = n["H"]
    case = _layer(draw, n, context=n["S"])
    return case.with_arguments(mask=draw.mask(n["B"], n["T"], n["S"]))


def causal(draw: Draw) -> Case:
    """Self-attention that may not see the future."""
    case = _layer(draw, sizes(draw, batch=1))
    return case.with_arguments(mask=attention.causal_mask(case.arguments["x"].shape[1]))


def empty_row(draw: Draw) -> Case:
    """One query of every example may attend to nothing."""
    case = one_example(draw)
    mask = case.arguments["mask"].clone()
    mask[:, 1] = False
    return case.with_arguments(mask=mask)


def long(draw: Draw, factor: int) -> Case:
    """More of everything, and of heads most: a loop that does little for each head shall be seen among all that the layer does."""
    heads = 2 * factor
    n = {"B": factor, "T": factor + 1, "S": factor + 2, "H": heads, "D": heads}
    return _layer(draw, n, context=n["S"])


def indivisible_model(draw: Draw) -> Case:
    """A model width that cannot be cut into so many heads."""
    return Case({"x": draw.normal(2, 5, 10)}, init={"d_model": 10, "n_heads": 3})


class _Layer(nn.Module):
    """Multi-head attention in steps; each mistake below changes one of them."""

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"{d_model} columns cannot be divided among {n_heads} heads")
        self.d_model, self.n_heads = d_model, n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)

    def project(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_proj(x), self.k_proj(context), self.v_proj(context)

    def split(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], self.n_heads, -1).transpose(1, 2)  # (B, H, T, Dh)

    def merge(self, x: Tensor) -> Tensor:
        return x.transpose(1, 2).flatten(2)  # (B, T, D)

    def place(self, mask: Tensor | None) -> Tensor | None:
        return mask[:, None] if mask is not None and mask.ndim == 3 else mask

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return _softmax(_scores(q, k), mask) @ v

    def finish(self, x: Tensor, merged: Tensor, mask: Tensor | None) -> Tensor:
        output: Tensor = self.o_proj(merged)
        return output

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        q, k, v = (self.split(y) for y in self.project(x, x if context is None else context))
        return self.finish(x, self.merge(self.attend(q, k, v, self.place(mask))), mask)


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def _softmax(scores: Tensor, mask: Tensor | None, dim: int = -1) -> Tensor:
    if mask is None:
        return torch.softmax(scores, dim)
    return torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), dim).masked_fill(~mask, 0.0)


@misconception("split without a transpose", read="split-and-merge")
class SplitWithoutTranspose(_Layer):
    """Queries, keys and values are reshaped to (B, H, T, Dh) in one step. Each "head" then holds whole rows of some positions
    instead of some columns of every position, and attends within a mixture. The heads' axis needs a transpose.
    """

    def split(self, x: Tensor) -> Tensor:
        return _cut(x, self.n_heads)


@misconception("merged without a transpose", read="split-and-merge")
class MergedWithoutTranspose(_Layer):
    """The heads are reshaped to (B, T, D) in one step: a row of the result holds several positions of one head, instead of all
    the heads of one position. The transpose of the split has to be taken back first.
    """

    def merge(self, x: Tensor) -> Tensor:
        return _paste(x)


@misconception("no transpose at all", read="split-and-merge")
class NoTransposeAtAll(_Layer):
    """The width is cut and put together again by reshape alone, without a transpose on either side. The shapes fit, but a "head"
    is then a piece of the sequence: positions attend to neighbours in their piece, and a mask hits the wrong pairs.
    """

    def split(self, x: Tensor) -> Tensor:
        return _cut(x, self.n_heads)

    def merge(self, x: Tensor) -> Tensor:
        return _paste(x)


@misconception("columns dealt out in turn", read="split-and-merge")
class DealtOut(_Layer):
    """Head h gets the columns h, h + H, h + 2·H … instead of a run of neighbours. The layer could be trained like that, but weights
    of any other implementation mean something else in it.
    """

    def split(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], -1, self.n_heads).permute(0, 3, 1, 2)

    def merge(self, x: Tensor) -> Tensor:
        return x.permute(0, 2, 3, 1).flatten(2)


@misconception("heads and head width swapped", read="split-and-merge")
class SwappedSizes(_Layer):
    """The number of heads and the head width have changed places: there are Dh heads of width H. The shape of the output does not
    tell, a mask for every head does.
    """

    def split(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], -1, self.n_heads).transpose(1, 2)


@misconception("one head only", read="multi-head")
class OneHead(_Layer):
    """Queries and keys are compared over their full width: this is one wide head. Split all three into heads before they attend,
    so that each head weighs the positions in its own way.
    """

    def split(self, x: Tensor) -> Tensor:
        return x[:, None]


@misconception("no scale", read="multi-head")
class NoScale(_Layer):
    """The scores are not divided by the square root of the head width. Without it the softmax saturates as heads get wider."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return _softmax(_scores(q, k) * math.sqrt(q.shape[-1]), mask) @ v


@misconception("scaled by the model width", read="multi-head")
class ScaledByModelWidth(_Layer):
    """The scores are divided by the square root of the model width D. A score is a dot product of Dh numbers, those of one head, so
    it is the head width that belongs under the root.
    """

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return _softmax(_scores(q, k) * math.sqrt(q.shape[-1] / self.d_model), mask) @ v


@misconception("scaled twice", read="multi-head")
class ScaledTwice(_Layer):
    """The scores are divided by the square root of the head width twice, for example once by hand and once more in
    scaled_dot_product_attention, which does it already. The weights turn flat.
    """

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return super().attend(q / math.sqrt(q.shape[-1]), k, v, mask)


@misconception("every head the same", read="multi-head")
class EveryHeadTheSame(_Layer):
    """Every head works with the columns of head 0. Heads that see the same find the same: each needs columns of its own, or there is
    only one head, computed H times.
    """

    def split(self, x: Tensor) -> Tensor:
        return super().split(x)[:, :1].expand(-1, self.n_heads, -1, -1)


@misconception("context ignored", read="self-cross-causal")
class ContextIgnored(_Layer):
    """The context is not used: keys and values come from x even in cross-attention, so x talks to itself."""

    def project(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_proj(x), self.k_proj(x), self.v_proj(x)


@misconception("queries from the context", read="self-cross-causal")
class RolesSwapped(_Layer):
    """The context asks and x is asked. It is the other way round: queries come from x, one for every row of the output; keys and
    values come from the context.
    """

    def project(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_proj(context), self.k_proj(x), self.v_proj(x)


@misconception("keys from x", read="self-cross-causal")
class KeysFromX(_Layer):
    """The keys come from x and the values from the context. Key j is the address of value j, so both come from the context."""

    def project(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_proj(x), self.k_proj(x), self.v_proj(context)


@misconception("values from x", read="self-cross-causal")
class ValuesFromX(_Layer):
    """The values come from x and the keys from the context. The weights say where in the context to look, and then something else is
    fetched: both keys and values come from the context.
    """

    def project(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_proj(x), self.k_proj(context), self.v_proj(x)


@misconception("values by the key projection", read="multi-head")
class ValuesByKeyProjection(_Layer):
    """The values are made by k_proj, so v_proj is never used and never learns. What a position is found by (its key) and what it
    tells (its value) are two different things.
    """

    def project(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.q_proj(x), self.k_proj(context), self.k_proj(context)


@misconception("softmax over heads", read="multi-head")
class SoftmaxOverHeads(_Layer):
    """The softmax runs over the heads, so that the heads compete for every pair of positions. Each head distributes its own weight
    over the keys: the softmax goes over the last axis.
    """

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return _softmax(_scores(q, k), mask, dim=1) @ v


@misconception("softmax over queries", read="multi-head")
class SoftmaxOverQueries(_Layer):
    """The softmax runs over the queries, so it is each key's column that sums to one. Each query's row must: the softmax goes over
    the keys, the last axis.
    """

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return _softmax(_scores(q, k), mask, dim=2) @ v


@misconception("output projection left out", read="multi-head")
class NoOutputProjection(_Layer):
    """The merged heads are returned as they are; o_proj is made but not used. It is the only place where what different heads found
    comes together.
    """

    def finish(self, x: Tensor, merged: Tensor, mask: Tensor | None) -> Tensor:
        return merged


@misconception("residual connection added", read="multi-head")
class ResidualAdded(_Layer):
    """The input is added to the output. That residual connection is part of a Transformer's block, which comes in chapter 05; the
    attention layer gives the attention's output alone.
    """

    def finish(self, x: Tensor, merged: Tensor, mask: Tensor | None) -> Tensor:
        output: Tensor = x + self.o_proj(merged)
        return output


@misconception("mask inverted", read="self-cross-causal")
class MaskInverted(_Layer):
    """The mask is read the wrong way round: in this course True means that a query may attend, opposite to nn.MultiheadAttention."""

    def place(self, mask: Tensor | None) -> Tensor | None:
        return super().place(None if mask is None else ~mask)


@misconception("mask ignored", read="self-cross-causal")
class MaskIgnored(_Layer):
    """The mask is not handed on to the attention, so every query attends to everything."""

    def place(self, mask: Tensor | None) -> Tensor | None:
        return None


@misconception("mask after softmax", read="self-cross-causal")
class MaskAfterSoftmax(_Layer):
    """The mask is applied after the softmax. The forbidden keys have taken their share by then, and the rest no longer sums to one."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        weights = _softmax(_scores(q, k), None)
        return (weights if mask is None else weights * mask) @ v


@misconception("batch of the mask taken for heads", read="self-cross-causal")
class BatchTakenForHeads(_Layer):
    """A mask (B, T, S) meets scores (B, H, T, S) without a place for the heads. Broadcasting aligns from the right, so the mask's
    examples are taken for heads: an error as a rule, and wrong without a word where there are as many examples as heads.
    """

    def place(self, mask: Tensor | None) -> Tensor | None:
        return mask


@misconception("a place for heads in every mask", read="self-cross-causal")
class PlaceInEveryMask(_Layer):
    """An axis for the heads is inserted in every mask, whatever its shape. Only a mask of three dimensions lacks it: (T, S)
    broadcasts by itself, and (B, H, T, S) has the heads already.
    """

    def place(self, mask: Tensor | None) -> Tensor | None:
        return None if mask is None else mask[:, None]


@misconception("NaN in an empty row", read="self-cross-causal")
class EmptyRowIsNan(_Layer):
    """A query that may attend to nothing gives NaN: the softmax of scores that are all minus infinity divides zero by zero. All its
    heads must give zeros instead.
    """

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        scores = _scores(q, k)
        return torch.softmax(scores if mask is None else scores.masked_fill(~mask, float("-inf")), -1) @ v


@misconception("empty row averages", read="self-cross-causal")
class EmptyRowAverages(_Layer):
    """A query that may attend to nothing receives the mean of the values: with the same large negative score everywhere the softmax
    is uniform. All its heads must give zeros.
    """

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        scores = _scores(q, k)
        lowest = torch.finfo(scores.dtype).min
        return torch.softmax(scores if mask is None else scores.masked_fill(~mask, lowest), -1) @ v


@misconception("empty row without the bias", read="self-cross-causal")
class EmptyRowWithoutBias(_Layer):
    """The output of a query that may attend to nothing is set to zero after the output projection. It is the heads that give zeros;
    what leaves the layer is then the bias of o_proj.
    """

    def finish(self, x: Tensor, merged: Tensor, mask: Tensor | None) -> Tensor:
        output: Tensor = self.o_proj(merged)
        if mask is None:
            return output
        mask = mask.any(1) if mask.ndim == 4 else mask  # (B, T, S), or what broadcasts to it
        return output * mask.any(-1, keepdim=True)


@misconception("biases not used", read="parameters")
class BiasesNotUsed(_Layer):
    """The weights of the four maps are used without their biases. Call the linear layer, or hand its bias to F.linear as well."""

    def project(self, x: Tensor, context: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x @ self.q_proj.weight.T, context @ self.k_proj.weight.T, context @ self.v_proj.weight.T

    def finish(self, x: Tensor, merged: Tensor, mask: Tensor | None) -> Tensor:
        return merged @ self.o_proj.weight.T


@misconception("bias always on", read="parameters")
class BiasAlwaysOn(_Layer):
    """The linear maps have biases whatever the argument bias says. Hand it on to each of the four."""

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__(d_model, n_heads, bias=True)


@misconception("exponential overflows", read="multi-head")
class ExponentialOverflows(_Layer):
    """The softmax is computed as exp(x) / sum(exp(x)) without taking off the maximum first: large scores overflow to infinity and
    give NaN.
    """

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        grown = _scores(q, k).exp()
        grown = grown if mask is None else grown * mask
        total = grown.sum(-1, keepdim=True)
        return grown / torch.where(total == 0, 1.0, total) @ v


@misconception("constant left on the CPU", read="multi-head")
class ConstantOnCpu(_Layer):
    """A tensor that the layer makes for itself in the constructor stays on the CPU, in float32, when the layer moves to a GPU or
    another dtype. Use a plain number, or register_buffer(…, persistent=False).
    """

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__(d_model, n_heads, bias=bias)
        self.scale = torch.tensor([d_model / n_heads], dtype=torch.float32, device="cpu").sqrt()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return _softmax(q @ k.transpose(-2, -1) / self.scale, mask) @ v


@misconception("always float32", read="multi-head")
class AlwaysFloat32(_Layer):
    """The attention is computed in float32 and stays there: a half- or double-precision layer fails at its output projection."""

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        return super().attend(q.float(), k.float(), v.float(), mask)


@misconception("changes its mask", read="self-cross-causal")
class ChangesItsMask(_Layer):
    """The caller's mask is changed in place (by logical_not_ or the like). The next layer that gets it sees the opposite."""

    def place(self, mask: Tensor | None) -> Tensor | None:
        return None if mask is None else super().place(~mask.logical_not_())


@misconception("one head after another", read="multi-head")
class LoopOverHeads(_Layer):
    """The numbers are right, but a Python loop goes from head to head (or from example to example). A matrix product works on all heads
    at once: with the axes (B, H, T, Dh) nothing has to be repeated.
    """

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        everywhere = None if mask is None else mask.expand(*q.shape[:-1], k.shape[-2])
        heads = [
            _softmax(_scores(q[:, h], k[:, h]), None if everywhere is None else everywhere[:, h]) @ v[:, h]
            for h in range(self.n_heads)
        ]
        return torch.stack(heads, 1)


@misconception("width not checked", read="multi-head")
class WidthNotChecked(_Layer):
    """A width that cannot be divided by the number of heads is accepted, and fails much later, where the message says nothing of the
    cause. Look at the two numbers in the constructor and raise a ValueError that names them.
    """

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__(d_model, 1, bias=bias)
        self.n_heads = n_heads


@misconception("number of heads hidden", read="multi-head")
class HeadsHidden(_Layer):
    """The number of heads is not kept in the attribute n_heads, where the code around a layer looks for it."""

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        super().__init__(d_model, n_heads, bias=bias)
        del self.n_heads
        self._heads = n_heads

    def split(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:2], self._heads, -1).transpose(1, 2)


def _cut(x: Tensor, n_heads: int) -> Tensor:
    B, T, D = x.shape
    return x.reshape(B, n_heads, T, D // n_heads)


def _paste(x: Tensor) -> Tensor:
    B, H, T, Dh = x.shape
    return x.reshape(B, T, H * Dh)


MULTI_HEAD_ATTENTION = Exercise(
    reference=multihead.MultiHeadAttention,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, self_attention, one_context),
        look.values(2, self_attention, name="self-attention", title="Self-attention gives the right numbers."),
        look.values(
            2,
            cross_attention,
            equal_lengths,
            name="cross-attention",
            title="In cross-attention x asks and the context answers.",
        ),
        look.values(
            2,
            masked("TS", batch=1),
            masked("B1S"),
            masked("BTS"),
            as_many_heads,
            name="mask",
            title="A mask (T, S), (B, 1, S) or (B, T, S) holds for every head.",
        ),
        look.values(
            1,
            masked("BHTS", batch=1),
            masked("B11S"),
            name="mask per head",
            title="A mask of four dimensions can tell the heads apart.",
        ),
        look.empty_row(1, empty_row, title="A query that may attend to nothing gets the bias of the output map."),
        look.values(0.5, no_bias, name="bias", title="With bias=False none of the four maps has a bias."),
        look.gradients(1.5, one_example, wrt=("x", "context")),
        look.causality(0.5, causal, future=("x",)),
        look.batch_independence(0.5, as_many_heads, batched=("x", "context", "mask")),
        look.permutation(0.5, one_context, keys=("context",)),
        look.values(0.5, loud, name="large scores", title="Large scores give finite, right numbers."),
        look.unmutated(0.5, one_example),
        look.half_precision(0.5, gentle),
        look.double_precision(0.5, one_example),
        look.device(0.5, one_example),
        look.vectorised(0.5, long, axis=NO_LOOP),
        look.attributes(0.5, self_attention, names=("n_heads",)),
        look.refuses(
            0.5,
            one_context,
            indivisible_model,
            title="A model width that cannot be divided by the number of heads is a ValueError.",
        ),
    ),
    forbidden=FUSED,
    rule_case=(self_attention, one_example),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        SplitWithoutTranspose,
        MergedWithoutTranspose,
        NoTransposeAtAll,
        DealtOut,
        SwappedSizes,
        OneHead,
        NoScale,
        ScaledByModelWidth,
        ScaledTwice,
        EveryHeadTheSame,
        ContextIgnored,
        RolesSwapped,
        KeysFromX,
        ValuesFromX,
        ValuesByKeyProjection,
        SoftmaxOverHeads,
        SoftmaxOverQueries,
        NoOutputProjection,
        ResidualAdded,
        MaskInverted,
        MaskIgnored,
        MaskAfterSoftmax,
        BatchTakenForHeads,
        PlaceInEveryMask,
        EmptyRowIsNan,
        EmptyRowAverages,
        EmptyRowWithoutBias,
        BiasesNotUsed,
        BiasAlwaysOn,
        ExponentialOverflows,
        ConstantOnCpu,
        AlwaysFloat32,
        ChangesItsMask,
        LoopOverHeads,
        WidthNotChecked,
        HeadsHidden,
    ),
)
