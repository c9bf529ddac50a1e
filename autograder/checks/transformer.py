"""Checks of chapter 05: the layers of encoder and decoder, and the Transformer that is built of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autograder.checking import aspects as look
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.attention import FUSED
from autograder.checks.sections import HEADINGS
from tfcourse import attention, layers, multihead, positions, transformer

CHAPTER = "05_transformer"
D, H, F_WIDTH = 4, 2, 6


def lengths(draw: Draw) -> tuple[int, int, int]:
    """Batch, target length and source length: pairwise distinct, and none is a width or the number of heads."""
    t, s = (5, 7) if bool(draw.integers(0, 2)) else (7, 5)
    return 3, t, s


def drop_everything(case: Case) -> Case:
    """The case while training, with a dropout that drops everything: what is left shows where it was applied."""
    return replace(case, init={**(case.init or {}), "dropout": 1.0}, training=True)


def drop_nothing(case: Case) -> Case:
    """The same dropout, and no training: nothing may be dropped."""
    return replace(case, init={**(case.init or {}), "dropout": 1.0})


def with_options(case: Case, **options: object) -> Case:
    """The case with other arguments of the constructor."""
    return replace(case, init={**(case.init or {}), **options})


# ------------------------------------------------------------------------------------------------------ encoder layer


def encoder(draw: Draw) -> Case:
    """A layer with random weights, and sequences without padding."""
    b, _, s = lengths(draw)
    state = draw.weights(layers.EncoderLayer(D, H, F_WIDTH))
    return Case({"x": 2 * draw.normal(b, s, D)}, init={"d_model": D, "n_heads": H, "d_ff": F_WIDTH}, state=state)


def padded_encoder(draw: Draw) -> Case:
    """The same with padding."""
    case = encoder(draw)
    b, s, _ = case.arguments["x"].shape
    return case.with_arguments(mask=draw.mask(b, s)[:, None])


def pre_norm_encoder(draw: Draw) -> Case:
    """Pre-norm, with padding."""
    return with_options(padded_encoder(draw), pre_norm=True)


def gelu_encoder(draw: Draw) -> Case:
    """With GELU."""
    return with_options(encoder(draw), activation="gelu")


def longer_encoder(draw: Draw, factor: int) -> Case:
    """More examples and positions."""
    case = encoder(draw)
    return case.with_arguments(x=draw.normal(2 * factor, 5 * factor, D))


Wrap = Callable[[Tensor], Tensor]


class _Layer(nn.Module):
    """What the layers below share: norms, residual connections, and the parts with their names."""

    norms: Sequence[str]

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        pre_norm: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.dropout, self.pre_norm = dropout, pre_norm
        self.self_attention = multihead.MultiHeadAttention(d_model, n_heads)
        self.feed_forward = layers.FeedForward(d_model, d_ff, activation=activation)
        for name in self.norms:
            setattr(self, name, nn.LayerNorm(d_model))

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)

    def wrap(self, x: Tensor, sublayer: Wrap, norm: Wrap) -> Tensor:
        if self.pre_norm:
            return x + self.drop(sublayer(norm(x)))
        return norm(x + self.drop(sublayer(x)))


class _Encoder(_Layer):
    """The encoder's layer in steps; each mistake below changes one of them."""

    norms = ("self_attention_norm", "feed_forward_norm")
    self_attention_norm: nn.LayerNorm
    feed_forward_norm: nn.LayerNorm

    def place(self, mask: Tensor | None) -> Tensor | None:
        return mask

    def attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        found: Tensor = self.self_attention(x, mask=self.place(mask))
        return found

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.wrap(x, lambda y: self.attend(y, mask), self.self_attention_norm)
        return self.wrap(x, self.feed_forward, self.feed_forward_norm)


@misconception("always post-norm", read="post-or-pre-norm")
class AlwaysPost(_Encoder):
    """The argument pre_norm is taken and not used: every norm stands behind its sum."""

    def wrap(self, x: Tensor, sublayer: Wrap, norm: Wrap) -> Tensor:
        return norm(x + self.drop(sublayer(x)))


@misconception("always pre-norm", read="post-or-pre-norm")
class AlwaysPre(_Encoder):
    """Every norm stands before its sublayer, even where post-norm, the default, is asked for."""

    def wrap(self, x: Tensor, sublayer: Wrap, norm: Wrap) -> Tensor:
        return x + self.drop(sublayer(norm(x)))


@misconception("the two orders exchanged", read="post-or-pre-norm")
class OrdersExchanged(_Encoder):
    """With pre_norm=True the norm stands behind the sum, and otherwise before the sublayer: it is the other way round."""

    def wrap(self, x: Tensor, sublayer: Wrap, norm: Wrap) -> Tensor:
        if self.pre_norm:
            return norm(x + self.drop(sublayer(x)))
        return x + self.drop(sublayer(norm(x)))


@misconception("the normalised input carried on", read="post-or-pre-norm")
class CarriesNormalised(_Encoder):
    """In pre-norm the normalised input is added in place of the input itself. What goes past a sublayer must stay as it came."""

    def wrap(self, x: Tensor, sublayer: Wrap, norm: Wrap) -> Tensor:
        if self.pre_norm:
            return norm(x) + self.drop(sublayer(norm(x)))
        return super().wrap(x, sublayer, norm)


@misconception("no residual connections", read="residual")
class NoResiduals(_Encoder):
    """The inputs of the sublayers are not added to what they say. A layer is to add to what it was given, not to replace it."""

    def wrap(self, x: Tensor, sublayer: Wrap, norm: Wrap) -> Tensor:
        return self.drop(sublayer(norm(x))) if self.pre_norm else norm(self.drop(sublayer(x)))


@misconception("one residual connection for both", read="encoder-layer")
class OneResidual(_Encoder):
    """There is one connection around the whole layer: the feed-forward network is given what attention says without the input. Each of the
    two sublayers has a connection of its own.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.pre_norm:
            inner = self.attend(self.self_attention_norm(x), mask)
            return x + self.drop(self.feed_forward(self.feed_forward_norm(inner)))
        inner = self.self_attention_norm(self.attend(x, mask))
        output: Tensor = self.feed_forward_norm(x + self.drop(self.feed_forward(inner)))
        return output


@misconception("both sublayers side by side", read="encoder-layer")
class SideBySide(_Encoder):
    """Both sublayers are given the input of the layer, and both answers are added. Some models do that; here the feed-forward network
    works on what attention has brought.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        if self.pre_norm:
            found = self.drop(self.attend(self.self_attention_norm(x), mask))
            return x + found + self.drop(self.feed_forward(self.feed_forward_norm(x)))
        attended = self.self_attention_norm(x + self.drop(self.attend(x, mask)))
        output: Tensor = self.feed_forward_norm(attended + self.drop(self.feed_forward(x)))
        return output


@misconception("feed-forward network first", read="encoder-layer")
class FeedForwardFirst(_Encoder):
    """The feed-forward network comes before attention. First the positions exchange what they know, then each works on what it got."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.wrap(x, self.feed_forward, self.feed_forward_norm)
        return self.wrap(x, lambda y: self.attend(y, mask), self.self_attention_norm)


@misconception("norms exchanged", read="encoder-layer")
class NormsExchanged(_Encoder):
    """The norm of the feed-forward network is used for attention, and the other way round. The layer could be trained like that, but
    weights of any other implementation mean something else in it.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.wrap(x, lambda y: self.attend(y, mask), self.feed_forward_norm)
        return self.wrap(x, self.feed_forward, self.self_attention_norm)


@misconception("one norm used twice", read="encoder-layer")
class OneNorm(_Encoder):
    """Both sublayers use the same norm, and the other one never learns anything. Each has factors and shifts of its own."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = self.wrap(x, lambda y: self.attend(y, mask), self.self_attention_norm)
        return self.wrap(x, self.feed_forward, self.self_attention_norm)


@misconception("no feed-forward network", read="feed-forward")
class NoFeedForward(_Encoder):
    """The feed-forward network is made and not used. Attention only averages; it is this network that works on what was
    brought together.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.wrap(x, lambda y: self.attend(y, mask), self.self_attention_norm)


@misconception("no attention", read="encoder-layer")
class NoAttention(_Encoder):
    """Attention is made and not used, so that no position ever learns of another."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.wrap(x, self.feed_forward, self.feed_forward_norm)


@misconception("mask ignored", read="encoder-layer")
class MaskIgnored(_Encoder):
    """The mask is not handed on to attention, so that real tokens attend to padding."""

    def place(self, mask: Tensor | None) -> Tensor | None:
        return None


@misconception("mask inverted", read="encoder-layer")
class MaskInverted(_Encoder):
    """The mask is read the wrong way round: in this course True means that a position may attend, opposite to PyTorch's own layers."""

    def place(self, mask: Tensor | None) -> Tensor | None:
        return None if mask is None else ~mask


@misconception("causal encoder", read="encoder-layer")
class CausalEncoder(_Encoder):
    """The encoder's self-attention is causal. The source is there as a whole: every word may look at what follows it. Only the decoder,
    which has not written the future yet, must not.
    """

    def place(self, mask: Tensor | None) -> Tensor | None:
        past = torch.ones(self.length, self.length, dtype=torch.bool).tril()
        return past if mask is None else mask & past

    def attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        self.length = x.shape[1]
        return super().attend(x, mask)


@misconception("dropout not used", read="dropout")
class NeverDrops(_Encoder):
    """Nothing is dropped, not even in training: the argument dropout is taken and not used."""

    def drop(self, x: Tensor) -> Tensor:
        return x


@misconception("dropout left on", read="dropout")
class AlwaysDrops(_Encoder):
    """Dropout falls even when nothing is being trained: a translation would change from call to call. Ask self.training (nn.Dropout does
    it by itself, F.dropout must be told).
    """

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout)


@misconception("the sum dropped", read="dropout")
class DropsTheSum(_Encoder):
    """Dropout falls on the sum, so that the residual connection is cut as well. It belongs on what the sublayer says, before the sum."""

    def wrap(self, x: Tensor, sublayer: Wrap, norm: Wrap) -> Tensor:
        if self.pre_norm:
            return self.drop(x + sublayer(norm(x)))
        return norm(self.drop(x + sublayer(x)))


@misconception("activation not handed on", read="feed-forward")
class ActivationLost(_Encoder):
    """The argument activation is not handed on to the feed-forward network, which then uses ReLU in every case."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, **options: Any) -> None:
        super().__init__(d_model, n_heads, d_ff, **{**options, "activation": "relu"})


@misconception("one norm more", read="post-or-pre-norm")
class NormAtTheEnd(_Encoder):
    """In pre-norm every layer ends with a norm. One norm more comes behind the last layer only, and it belongs to the stack: within a layer
    the way past the sublayers stays free.
    """

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        x = super().forward(x, mask)
        return F.layer_norm(x, x.shape[-1:]) if self.pre_norm else x


ENCODER_LAYER = Exercise(
    reference=layers.EncoderLayer,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, encoder),
        look.values(
            2, encoder, encoder, name="post-norm", title="Post-norm: each sum of input and sublayer is normalised."
        ),
        look.values(2, pre_norm_encoder, name="pre-norm", title="Pre-norm: each sublayer's input is normalised."),
        look.values(1, padded_encoder, name="mask", title="Nobody attends to padding."),
        look.values(
            1,
            lambda draw: drop_everything(padded_encoder(draw)),
            lambda draw: drop_everything(pre_norm_encoder(draw)),
            lambda draw: drop_nothing(encoder(draw)),
            name="dropout",
            title="In training, and only then, dropout falls on what the sublayers say.",
        ),
        look.values(0.5, gelu_encoder, name="activation", title="The activation is handed on."),
        look.gradients(1, padded_encoder, wrt=("x",)),
        look.batch_independence(0.5, padded_encoder, batched=("x", "mask")),
        look.unmutated(0.5, padded_encoder),
        look.double_precision(0.5, padded_encoder),
        look.device(0.5, padded_encoder),
        look.vectorised(0.5, longer_encoder, axis="examples or positions"),
    ),
    forbidden=FUSED,
    rule_case=(encoder, padded_encoder),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        AlwaysPost,
        AlwaysPre,
        OrdersExchanged,
        CarriesNormalised,
        NoResiduals,
        OneResidual,
        SideBySide,
        FeedForwardFirst,
        NormsExchanged,
        OneNorm,
        NoFeedForward,
        NoAttention,
        MaskIgnored,
        MaskInverted,
        CausalEncoder,
        NeverDrops,
        AlwaysDrops,
        DropsTheSum,
        ActivationLost,
        NormAtTheEnd,
    ),
)


# ------------------------------------------------------------------------------------------------------ decoder layer


def decoder(draw: Draw) -> Case:
    """A layer with random weights, target sequences, and a memory of another length, with padding."""
    b, t, s = lengths(draw)
    state = draw.weights(layers.DecoderLayer(D, H, F_WIDTH))
    return Case(
        {"x": 2 * draw.normal(b, t, D), "memory": 2 * draw.normal(b, s, D), "memory_mask": draw.mask(b, s)[:, None]},
        init={"d_model": D, "n_heads": H, "d_ff": F_WIDTH},
        state=state,
    )


def whole_memory(draw: Draw) -> Case:
    """Without padding."""
    return decoder(draw).with_arguments(memory_mask=None)


def equally_long(draw: Draw) -> Case:
    """A memory as long as the target: confusing the two goes unseen by the shapes."""
    case = decoder(draw)
    b, t, _ = case.arguments["x"].shape
    return case.with_arguments(memory=2 * draw.normal(b, t, D), memory_mask=draw.mask(b, t)[:, None])


def pre_norm_decoder(draw: Draw) -> Case:
    """Pre-norm."""
    return with_options(decoder(draw), pre_norm=True)


def gelu_decoder(draw: Draw) -> Case:
    """With GELU."""
    return with_options(decoder(draw), activation="gelu")


def longer_decoder(draw: Draw, factor: int) -> Case:
    """More examples and positions."""
    return decoder(draw).with_arguments(
        x=draw.normal(2 * factor, 5 * factor, D), memory=draw.normal(2 * factor, 4 * factor, D), memory_mask=None
    )


class _Decoder(_Layer):
    """The decoder's layer in steps; each mistake below changes one of them."""

    norms = ("self_attention_norm", "cross_attention_norm", "feed_forward_norm")
    self_attention_norm: nn.LayerNorm
    cross_attention_norm: nn.LayerNorm
    feed_forward_norm: nn.LayerNorm

    def __init__(self, d_model: int, n_heads: int, d_ff: int, **options: Any) -> None:
        super().__init__(d_model, n_heads, d_ff, **options)
        self.cross_attention = multihead.MultiHeadAttention(d_model, n_heads)

    def past(self, x: Tensor) -> Tensor | None:
        return attention.causal_mask(x.shape[1], x.device)

    def recall(self, x: Tensor) -> Tensor:
        found: Tensor = self.self_attention(x, mask=self.past(x))
        return found

    def read(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        found: Tensor = self.cross_attention(x, memory, mask)
        return found

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        x = self.wrap(x, self.recall, self.self_attention_norm)
        x = self.wrap(x, lambda y: self.read(y, memory, memory_mask), self.cross_attention_norm)
        return self.wrap(x, self.feed_forward, self.feed_forward_norm)


@misconception("no causal mask", read="decoder-layer")
class NoCausalMask(_Decoder):
    """Self-attention is not causal: while it is trained, each position sees the very word that it is asked for. The loss falls to
    nothing, and the model cannot write.
    """

    def past(self, x: Tensor) -> Tensor | None:
        return None


@misconception("only the future seen", read="decoder-layer")
class OnlyTheFuture(_Decoder):
    """The causal mask is turned round: a position sees itself and what follows. It must see itself and what came before."""

    def past(self, x: Tensor) -> Tensor | None:
        return attention.causal_mask(x.shape[1], x.device).T


@misconception("itself not seen", read="decoder-layer")
class ItselfHidden(_Decoder):
    """A position may not attend to itself, only to those before it. Its input is already the word before the one asked for (the target was
    shifted right), so it may be seen.
    """

    def past(self, x: Tensor) -> Tensor | None:
        return attention.causal_mask(x.shape[1], x.device).tril(-1)


@misconception("memory mask ignored", read="decoder-layer")
class MemoryMaskIgnored(_Decoder):
    """The memory's mask is not handed on to cross-attention, so that the decoder reads padding."""

    def read(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        return super().read(x, memory, None)


@misconception("memory mask inverted", read="decoder-layer")
class MemoryMaskInverted(_Decoder):
    """The memory's mask is read the wrong way round: True means that a position may be attended to, opposite to PyTorch's own layers."""

    def read(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        return super().read(x, memory, None if mask is None else ~mask)


@misconception("roles in cross-attention exchanged", read="decoder-layer")
class RolesExchanged(_Decoder):
    """In cross-attention the memory asks and the target answers. It is the other way round: the target asks (one query for every row of the
    output), and keys and values come from the memory.
    """

    def read(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        found: Tensor = self.cross_attention(memory, x)
        return found


@misconception("the target reads itself", read="decoder-layer")
class ReadsItself(_Decoder):
    """Cross-attention is not given the memory, so that the target reads itself a second time: the translation does not depend on the
    source.
    """

    def read(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        found: Tensor = self.cross_attention(x)
        return found + 0 * memory.sum()


@misconception("cross-attention left out", read="decoder-layer")
class NeverReads(_Decoder):
    """Cross-attention is made and not used: the decoder never sees the source."""

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        x = self.wrap(x, self.recall, self.self_attention_norm)
        return self.wrap(x, self.feed_forward, self.feed_forward_norm)


@misconception("cross-attention first", read="decoder-layer")
class ReadsFirst(_Decoder):
    """Cross-attention comes before self-attention. First the target so far is put together, then it asks the source."""

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        x = self.wrap(x, lambda y: self.read(y, memory, memory_mask), self.cross_attention_norm)
        x = self.wrap(x, self.recall, self.self_attention_norm)
        return self.wrap(x, self.feed_forward, self.feed_forward_norm)


@misconception("feed-forward network in the middle", read="decoder-layer")
class WorksTooEarly(_Decoder):
    """The feed-forward network comes before cross-attention. It comes last, and works on what both attentions have brought."""

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        x = self.wrap(x, self.recall, self.self_attention_norm)
        x = self.wrap(x, self.feed_forward, self.feed_forward_norm)
        return self.wrap(x, lambda y: self.read(y, memory, memory_mask), self.cross_attention_norm)


@misconception("one attention used twice", read="decoder-layer")
class OneAttention(_Decoder):
    """Cross-attention uses the weights of self-attention. To look back and to read the source are two tasks, and each has maps of its
    own.
    """

    def read(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        found: Tensor = self.self_attention(x, memory, mask)
        return found


@misconception("attentions exchanged", read="decoder-layer")
class AttentionsExchanged(_Decoder):
    """The layers self_attention and cross_attention have changed places: the first is used for the memory, the second for the target."""

    def recall(self, x: Tensor) -> Tensor:
        found: Tensor = self.cross_attention(x, mask=self.past(x))
        return found

    def read(self, x: Tensor, memory: Tensor, mask: Tensor | None) -> Tensor:
        found: Tensor = self.self_attention(x, memory, mask)
        return found


@misconception("norms exchanged", read="decoder-layer")
class DecoderNormsExchanged(_Decoder):
    """The norms of self- and cross-attention have changed places. The layer could be trained like that, but weights of any other
    implementation mean something else in it.
    """

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        x = self.wrap(x, self.recall, self.cross_attention_norm)
        x = self.wrap(x, lambda y: self.read(y, memory, memory_mask), self.self_attention_norm)
        return self.wrap(x, self.feed_forward, self.feed_forward_norm)


@misconception("memory normalised as well", read="post-or-pre-norm")
class MemoryNormalised(_Decoder):
    """In pre-norm the memory is normalised with the norm of cross-attention. That norm is for the target; what the encoder gives has passed
    the norm at the end of its own stack.
    """

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        return super().forward(x, self.cross_attention_norm(memory) if self.pre_norm else memory, memory_mask)


@misconception("no connection around cross-attention", read="residual")
class NoConnectionAroundReading(_Decoder):
    """There is no residual connection around cross-attention: what the target knew of itself is replaced by what it reads. Each of the
    three sublayers has one.
    """

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        x = self.wrap(x, self.recall, self.self_attention_norm)
        if self.pre_norm:
            x = self.drop(self.read(self.cross_attention_norm(x), memory, memory_mask))
        else:
            x = self.cross_attention_norm(self.drop(self.read(x, memory, memory_mask)))
        return self.wrap(x, self.feed_forward, self.feed_forward_norm)


@misconception("always post-norm", read="post-or-pre-norm")
class DecoderAlwaysPost(_Decoder):
    """The argument pre_norm is taken and not used: every norm stands behind its sum."""

    def wrap(self, x: Tensor, sublayer: Wrap, norm: Wrap) -> Tensor:
        return norm(x + self.drop(sublayer(x)))


@misconception("always pre-norm", read="post-or-pre-norm")
class DecoderAlwaysPre(_Decoder):
    """Every norm stands before its sublayer, even where post-norm, the default, is asked for."""

    def wrap(self, x: Tensor, sublayer: Wrap, norm: Wrap) -> Tensor:
        return x + self.drop(sublayer(norm(x)))


@misconception("dropout not used", read="dropout")
class DecoderNeverDrops(_Decoder):
    """Nothing is dropped, not even in training: the argument dropout is taken and not used."""

    def drop(self, x: Tensor) -> Tensor:
        return x


@misconception("dropout left on", read="dropout")
class DecoderAlwaysDrops(_Decoder):
    """Dropout falls even when nothing is being trained: a translation would change from call to call. Ask self.training (nn.Dropout does
    it by itself, F.dropout must be told).
    """

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout)


@misconception("cross-attention not dropped", read="dropout")
class ReadingNotDropped(_Decoder):
    """Dropout falls on two of the three sublayers: what cross-attention says is never dropped."""

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        x = self.wrap(x, self.recall, self.self_attention_norm)
        dropout, self.dropout = self.dropout, 0.0
        x = self.wrap(x, lambda y: self.read(y, memory, memory_mask), self.cross_attention_norm)
        self.dropout = dropout
        return self.wrap(x, self.feed_forward, self.feed_forward_norm)


@misconception("activation not handed on", read="feed-forward")
class DecoderActivationLost(_Decoder):
    """The argument activation is not handed on to the feed-forward network, which then uses ReLU in every case."""

    def __init__(self, d_model: int, n_heads: int, d_ff: int, **options: Any) -> None:
        super().__init__(d_model, n_heads, d_ff, **{**options, "activation": "relu"})


@misconception("mask left on the CPU", read="decoder-layer")
class MaskOnTheCpu(_Decoder):
    """The causal mask is made on the default device. It works until the layer lives on a GPU: make it on the device of x."""

    def past(self, x: Tensor) -> Tensor | None:
        return attention.causal_mask(x.shape[1], "cpu")


DECODER_LAYER = Exercise(
    reference=layers.DecoderLayer,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, decoder),
        look.values(
            2, decoder, equally_long, name="post-norm", title="Post-norm: look back, read the source, work on both."
        ),
        look.values(2, pre_norm_decoder, name="pre-norm", title="Pre-norm: each sublayer's input is normalised."),
        look.values(1, whole_memory, name="no padding", title="Without a mask every source position is read."),
        look.causality(1, decoder, future=("x",)),
        look.values(
            1,
            lambda draw: drop_everything(decoder(draw)),
            lambda draw: drop_everything(pre_norm_decoder(draw)),
            lambda draw: drop_nothing(decoder(draw)),
            name="dropout",
            title="In training, and only then, dropout falls on what the three sublayers say.",
        ),
        look.values(0.5, gelu_decoder, name="activation", title="The activation is handed on."),
        look.gradients(1, decoder, wrt=("x", "memory")),
        look.batch_independence(0.5, decoder, batched=("x", "memory", "memory_mask")),
        look.unmutated(0.5, decoder),
        look.double_precision(0.5, decoder),
        look.device(0.5, decoder),
        look.vectorised(0.5, longer_decoder, axis="examples or positions"),
    ),
    forbidden=FUSED,
    rule_case=(decoder, whole_memory),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        NoCausalMask,
        OnlyTheFuture,
        ItselfHidden,
        MemoryMaskIgnored,
        MemoryMaskInverted,
        RolesExchanged,
        ReadsItself,
        NeverReads,
        ReadsFirst,
        WorksTooEarly,
        OneAttention,
        AttentionsExchanged,
        DecoderNormsExchanged,
        MemoryNormalised,
        NoConnectionAroundReading,
        DecoderAlwaysPost,
        DecoderAlwaysPre,
        DecoderNeverDrops,
        DecoderAlwaysDrops,
        ReadingNotDropped,
        DecoderActivationLost,
        MaskOnTheCpu,
    ),
)


# -------------------------------------------------------------------------------------------------------- transformer

V = 6


def translator(draw: Draw, *, source_vocabulary: int = V, n_layers: int = 1, **options: Any) -> Case:
    """A small model with random weights, source tokens with their mask, and target tokens."""
    init: dict[str, Any] = {
        "source_vocabulary": source_vocabulary,
        "target_vocabulary": V,
        "d_model": D,
        "n_heads": H,
        "d_ff": 3,
        "n_layers": n_layers,
        **options,
    }
    t, s = (3, 5) if bool(draw.integers(0, 2)) else (5, 3)
    state = draw.weights(transformer.Transformer(**init))
    arguments = {
        "source": draw.integers(0, source_vocabulary, 2, s),
        "target": draw.integers(0, V, 2, t),
        "source_mask": draw.mask(2, s),
    }
    return Case(arguments, init=init, state=state)


def tied(draw: Draw) -> Case:
    """The model of the paper, but small: post-norm, tied weights, sinusoids."""
    return translator(draw)


def unmasked(draw: Draw) -> Case:
    """No mask: every token is real, whatever its number."""
    return translator(draw).with_arguments(source_mask=None)


def deep(draw: Draw) -> Case:
    """Two layers a stack."""
    return translator(draw, n_layers=2)


def without_layers(draw: Draw) -> Case:
    """No layers at all: embeddings, positions, and logits are left; the gradients of a layer are asked of the layer.

    No token is padding: an embedding may be made so that what is looked up there does not learn.
    """
    case = translator(draw, n_layers=0)
    return case.with_arguments(**{name: case.arguments[name].clamp(min=1) for name in ("source", "target")})


def pre_norm(draw: Draw) -> Case:
    """Pre-norm, with a norm behind each stack."""
    return translator(draw, pre_norm=True)


def untied(draw: Draw) -> Case:
    """Two vocabularies, and a matrix for each of three tasks."""
    return translator(draw, source_vocabulary=V + 2, tie_weights=False)


def learned(draw: Draw) -> Case:
    """Learned positions, in a table that is longer than needed."""
    return translator(draw, positions="learned", max_length=7)


def everywhere(draw: Draw) -> Case:
    """Positions before every layer."""
    return translator(draw, n_layers=2, positions_every_layer=True)


def rounded(draw: Draw) -> Case:
    """With GELU."""
    return translator(draw, activation="gelu")


def reading(draw: Draw) -> Case:
    """The encoder alone."""
    case = translator(draw, pre_norm=True)
    arguments = {name: value for name, value in case.arguments.items() if name != "target"}
    return replace(case, arguments=arguments, method="encode")


def mixed_up(draw: Draw) -> Case:
    """Two vocabularies, and weights that are to be tied all the same."""
    return replace(untied(draw), init={**(untied(draw).init or {}), "tie_weights": True}, state=None)


def unknown_positions(draw: Draw) -> Case:
    """A kind of positions that nobody has promised."""
    return replace(with_options(tied(draw), positions="rotary"), state=None)


def too_long_for_the_table(draw: Draw) -> Case:
    """A learned table that ends too early, for the target alone."""
    case = translator(draw, positions="learned", max_length=4)
    return case.with_arguments(
        source=case.arguments["source"][:, :3],
        source_mask=case.arguments["source_mask"][:, :3],
        target=draw.integers(0, V, 2, 5),
    )


def longer_translator(draw: Draw, factor: int) -> Case:
    """More examples, and longer ones."""
    return translator(draw).with_arguments(
        source=draw.integers(0, V, 2 * factor, 4 * factor),
        target=draw.integers(0, V, 2 * factor, 5 * factor),
        source_mask=None,
    )


def _later_targets(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
    """Other tokens in the second half of the target, and the logits of the first half."""
    target = case.arguments["target"].clone()
    keep = target.shape[1] // 2
    target[:, keep:] = (target[:, keep:] + 1) % V
    view = [("narrow", 1, 0, keep)]
    return case.with_arguments(target=target), view, view


def _other_padding(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
    """Other tokens where the source is padded."""
    source, mask = case.arguments["source"], case.arguments["source_mask"]
    return case.with_arguments(source=torch.where(mask, source, (source + 1) % V)), [], []


class _Model(nn.Module):
    """The Transformer in steps; each mistake below changes one of them."""

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        *,
        d_model: int = 512,
        n_heads: int = 8,
        d_ff: int = 2048,
        n_layers: int = 6,
        dropout: float = 0.1,
        pre_norm: bool = False,
        activation: str = "relu",
        tie_weights: bool = True,
        positions: str = "sinusoidal",
        positions_every_layer: bool = False,
        max_length: int = 512,
    ) -> None:
        super().__init__()
        self.dropout, self.pre_norm, self.tied, self.every = dropout, pre_norm, tie_weights, positions_every_layer
        self.check(source_vocabulary, target_vocabulary, positions)
        if tie_weights:
            self.embedding = nn.Embedding(target_vocabulary, d_model)
        else:
            self.source_embedding = nn.Embedding(source_vocabulary, d_model)
            self.target_embedding = nn.Embedding(target_vocabulary, d_model)
            self.output = nn.Linear(d_model, target_vocabulary, bias=False)
        self.position_table = nn.Parameter(torch.zeros(max_length, d_model)) if positions == "learned" else None
        options: dict[str, Any] = {"dropout": dropout, "pre_norm": pre_norm, "activation": activation}
        self.encoder_layers = self.stack(layers.EncoderLayer, n_layers, (d_model, n_heads, d_ff), options)
        self.decoder_layers = self.stack(layers.DecoderLayer, n_layers, (d_model, n_heads, d_ff), options)
        if pre_norm:
            self.encoder_norm, self.decoder_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def check(self, source_vocabulary: int, target_vocabulary: int, positions: str) -> None:
        if positions not in ("sinusoidal", "learned") or (self.tied and source_vocabulary != target_vocabulary):
            raise ValueError((source_vocabulary, target_vocabulary, positions))

    def stack(
        self, kind: Callable[..., nn.Module], n: int, sizes: tuple[int, int, int], options: dict[str, Any]
    ) -> nn.ModuleList:
        return nn.ModuleList(kind(*sizes, **options) for _ in range(n))

    def matrices(self) -> tuple[Tensor, Tensor, Tensor]:
        """The matrices of source, target and output."""
        if self.tied:
            return self.embedding.weight, self.embedding.weight, self.embedding.weight
        return self.source_embedding.weight, self.target_embedding.weight, self.output.weight

    def table(self, x: Tensor) -> Tensor:
        if self.position_table is None:
            return positions.sinusoidal_positions(x.shape[1], x.shape[2], x.device).to(x.dtype)
        if x.shape[1] > len(self.position_table):
            raise ValueError(x.shape)
        return self.position_table[: x.shape[1]]

    def place(self, x: Tensor, layer: int, *, writing: bool) -> Tensor:
        return x + self.table(x) if layer == 0 or self.every else x

    def scaled(self, vectors: Tensor) -> Tensor:
        return vectors * math.sqrt(vectors.shape[-1])

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)

    def embed(self, tokens: Tensor, matrix: Tensor, *, writing: bool) -> Tensor:
        return self.drop(self.place(self.scaled(F.embedding(tokens, matrix)), 0, writing=writing))

    def masks(self, mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """The masks of encoder and cross-attention."""
        wide = None if mask is None else mask[:, None]
        return wide, wide

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        x = self.embed(source, self.matrices()[0], writing=False)
        for number, layer in enumerate(self.encoder_layers):
            x = self.place(x, number, writing=False) if number else x
            x = layer(x, self.masks(source_mask)[0])
        return self.encoder_norm(x) if self.pre_norm else x

    def decode(self, target: Tensor, memory: Tensor, source_mask: Tensor | None = None) -> Tensor:
        x = self.embed(target, self.matrices()[1], writing=True)
        for number, layer in enumerate(self.decoder_layers):
            x = self.place(x, number, writing=True) if number else x
            x = layer(x, memory, self.masks(source_mask)[1])
        return self.finish(self.decoder_norm(x) if self.pre_norm else x)

    def finish(self, x: Tensor) -> Tensor:
        return x @ self.matrices()[2].T

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return self.decode(target, self.encode(source, source_mask), source_mask)


@misconception("embeddings not scaled", read="weight-tying")
class NotScaled(_Model):
    """The embeddings are not multiplied by sqrt(D). They are drawn small, because the same matrix makes the logits: beside positions of
    size one the words would hardly be heard.
    """

    def scaled(self, vectors: Tensor) -> Tensor:
        return vectors


@misconception("embeddings divided", read="weight-tying")
class Divided(_Model):
    """The embeddings are divided by sqrt(D), as scores are. Embeddings are multiplied by it."""

    def scaled(self, vectors: Tensor) -> Tensor:
        return vectors / math.sqrt(vectors.shape[-1])


@misconception("scaled with its positions", read="weight-tying")
class ScaledTogether(_Model):
    """The sum of embedding and position is multiplied by sqrt(D). Only the embedding is; then the position is added as it is."""

    def embed(self, tokens: Tensor, matrix: Tensor, *, writing: bool) -> Tensor:
        return self.drop(self.scaled(self.place(F.embedding(tokens, matrix), 0, writing=writing)))


@misconception("no positions", read="positions")
class NoPositions(_Model):
    """No positions are added. To attention a sentence is a set: "dog bites man" and "man bites dog" would have the same translation."""

    def place(self, x: Tensor, layer: int, *, writing: bool) -> Tensor:
        return x + 0 * self.table(x)


@misconception("positions for the source only", read="positions")
class SourcePositionsOnly(_Model):
    """Positions are added to the source and not to the target. The decoder has to know where it is, too."""

    def place(self, x: Tensor, layer: int, *, writing: bool) -> Tensor:
        return x if writing else super().place(x, layer, writing=writing)


@misconception("positions before the first layer only", read="learned-positions")
class PositionsOnce(_Model):
    """The argument positions_every_layer is taken and not used: positions are added before the first layer alone."""

    def place(self, x: Tensor, layer: int, *, writing: bool) -> Tensor:
        return x + self.table(x) if layer == 0 else x


@misconception("positions before every layer, always", read="learned-positions")
class PositionsAlways(_Model):
    """Positions are added before every layer even where that is not asked for."""

    def place(self, x: Tensor, layer: int, *, writing: bool) -> Tensor:
        return x + self.table(x)


@misconception("mask not used by the encoder", read="whole-transformer")
class EncoderUnmasked(_Model):
    """The mask is used in cross-attention only: within the encoder, real tokens attend to padding."""

    def masks(self, mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        return None, super().masks(mask)[1]


@misconception("mask not used in cross-attention", read="whole-transformer")
class CrossAttentionUnmasked(_Model):
    """The mask is used in the encoder only: the decoder reads padding. It has to be handed to cross-attention as well."""

    def masks(self, mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        return super().masks(mask)[0], None


@misconception("mask ignored", read="whole-transformer")
class NeverMasked(_Model):
    """The source's mask is not used at all, so that padding is read like words: a translation depends on how long its neighbours are."""

    def masks(self, mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        return None, None


@misconception("mask inverted", read="whole-transformer")
class InvertedMask(_Model):
    """The source's mask is read the wrong way round: it is True at real tokens, opposite to the key_padding_mask of
    PyTorch's own layers.
    """

    def masks(self, mask: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        return super().masks(None if mask is None else ~mask)


@misconception("token 0 taken for padding", read="whole-transformer")
class ZeroIsPadding(_Model):
    """Where no mask is given, tokens of the number 0 are masked. Without a mask every token is real: who calls knows what is padding."""

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return super().forward(source, target, source != 0 if source_mask is None else source_mask)


@misconception("layer by layer", read="whole-transformer")
class LayerByLayer(_Model):
    """Each layer of the decoder reads what the encoder's layer of the same number gives. All of them read the same memory: what leaves the
    last layer of the encoder.
    """

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        memory = self.embed(source, self.matrices()[0], writing=False)
        x = self.embed(target, self.matrices()[1], writing=True)
        both = self.masks(source_mask)
        for number, (reader, writer) in enumerate(zip(self.encoder_layers, self.decoder_layers, strict=True)):
            memory = reader(self.place(memory, number, writing=False) if number else memory, both[0])
            carried = self.encoder_norm(memory) if self.pre_norm else memory
            x = writer(self.place(x, number, writing=True) if number else x, carried, both[1])
        return self.finish(self.decoder_norm(x) if self.pre_norm else x)


@misconception("embeddings read in place of the encoder's output", read="whole-transformer")
class ReadsEmbeddings(_Model):
    """The decoder attends to the source's embeddings, and the encoder's layers are not used."""

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        x = self.embed(source, self.matrices()[0], writing=False)
        return self.encoder_norm(x) if self.pre_norm else x


@misconception("one layer again and again", read="whole-transformer")
class OneLayerAgain(_Model):
    """All places of a stack hold one and the same layer ([layer] * n). Each layer has weights of its own: make a new
    one for every place.
    """

    def stack(
        self, kind: Callable[..., nn.Module], n: int, sizes: tuple[int, int, int], options: dict[str, Any]
    ) -> nn.ModuleList:
        return nn.ModuleList([kind(*sizes, **options)] * n)


@misconception("norms behind the stacks not used", read="post-or-pre-norm")
class LastNormsUnused(_Model):
    """With pre-norm, encoder_norm and decoder_norm are made and not used. Nothing else normalises what the last layer's sums have grown
    to.
    """

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        self.pre_norm = False
        return super().forward(source, target, source_mask)


@misconception("norm behind the encoder not used", read="post-or-pre-norm")
class MemoryNotNormalised(_Model):
    """With pre-norm, the norm behind the encoder's stack is not used; only the decoder's is. Each of the two stacks ends with one."""

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        before, self.pre_norm = self.pre_norm, False
        memory = super().encode(source, source_mask)
        self.pre_norm = before
        return memory


@misconception("pre_norm not handed on", read="post-or-pre-norm")
class PreNormLost(_Model):
    """The argument pre_norm is not handed on to the layers: all are post-norm, with one norm more behind each stack."""

    def stack(
        self, kind: Callable[..., nn.Module], n: int, sizes: tuple[int, int, int], options: dict[str, Any]
    ) -> nn.ModuleList:
        return super().stack(kind, n, sizes, {**options, "pre_norm": False})


@misconception("activation not handed on", read="feed-forward")
class ActivationForgotten(_Model):
    """The argument activation is not handed on to the layers, which then use ReLU in every case."""

    def stack(
        self, kind: Callable[..., nn.Module], n: int, sizes: tuple[int, int, int], options: dict[str, Any]
    ) -> nn.ModuleList:
        return super().stack(kind, n, sizes, {**options, "activation": "relu"})


@misconception("dropout not handed on", read="dropout")
class DropoutForgotten(_Model):
    """The argument dropout is used for the embeddings and not handed on to the layers: the sublayers never drop anything."""

    def stack(
        self, kind: Callable[..., nn.Module], n: int, sizes: tuple[int, int, int], options: dict[str, Any]
    ) -> nn.ModuleList:
        return super().stack(kind, n, sizes, {**options, "dropout": 0.0})


@misconception("embeddings not dropped", read="dropout")
class EmbeddingsKept(_Model):
    """Dropout falls on the sublayers only. It also falls on the sum of embeddings and positions, in both stacks."""

    def drop(self, x: Tensor) -> Tensor:
        return x


@misconception("only the embeddings dropped, not their positions", read="dropout")
class PositionsKept(_Model):
    """Dropout falls on the embeddings before their positions are added. It falls on the sum of the two."""

    def embed(self, tokens: Tensor, matrix: Tensor, *, writing: bool) -> Tensor:
        return self.place(self.drop(self.scaled(F.embedding(tokens, matrix))), 0, writing=writing)


@misconception("dropout left on", read="dropout")
class EmbeddingsAlwaysDropped(_Model):
    """Dropout falls on the embeddings even when nothing is being trained. nn.Dropout asks for the mode by itself,
    F.dropout must be told.
    """

    def drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout)


@misconception("logits scaled as well", read="weight-tying")
class LogitsScaled(_Model):
    """The logits are multiplied by sqrt(D), too. The factor belongs to the embeddings alone: as output the matrix is used as it is."""

    def finish(self, x: Tensor) -> Tensor:
        return self.scaled(super().finish(x))


@misconception("probabilities in place of logits", read="cross-entropy")
class Probabilities(_Model):
    """A softmax is applied to the logits. The loss takes logits, and would apply a second one; for decoding the order is the same."""

    def finish(self, x: Tensor) -> Tensor:
        return super().finish(x).softmax(-1)


@misconception("logarithms of probabilities", read="cross-entropy")
class LogProbabilities(_Model):
    """A log-softmax is applied to the logits. The loss would not notice, but what the model promises are logits."""

    def finish(self, x: Tensor) -> Tensor:
        return super().finish(x).log_softmax(-1)


@misconception("source and target exchanged", read="whole-transformer")
class Exchanged(_Model):
    """The target is read by the encoder and the source is written by the decoder. Source comes first, target second, as everywhere."""

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return super().forward(target, source)


@misconception("output matrix not used", read="weight-tying")
class OutputUnused(_Model):
    """Where the weights are not tied, the target's matrix embeds the target and makes the logits, too; the third matrix is not used."""

    def matrices(self) -> tuple[Tensor, Tensor, Tensor]:
        source, target, _ = super().matrices()
        return source, target, target


@misconception("never tied", read="weight-tying")
class NeverTied(_Model):
    """There are three matrices even where the weights are to be tied. Tied means one matrix, an nn.Embedding with the name embedding: it
    learns from all three of its tasks.
    """

    def __init__(self, source_vocabulary: int, target_vocabulary: int, **options: Any) -> None:
        if options.get("tie_weights", True) and source_vocabulary != target_vocabulary:
            raise ValueError((source_vocabulary, target_vocabulary))
        super().__init__(source_vocabulary, target_vocabulary, **{**options, "tie_weights": False})


@misconception("sinusoids always", read="learned-positions")
class AlwaysSinusoids(_Model):
    """The table of learned positions is made and not used: sinusoids are added in every case."""

    def table(self, x: Tensor) -> Tensor:
        super().table(x)
        return positions.sinusoidal_positions(x.shape[1], x.shape[2], x.device).to(x.dtype)


@misconception("vocabularies not compared", read="weight-tying")
class TiesAnything(_Model):
    """Vocabularies of different sizes are tied without a word: the source's larger numbers are found in no row. Compare the two and raise a
    ValueError.
    """

    def check(self, source_vocabulary: int, target_vocabulary: int, positions: str) -> None:
        if positions not in ("sinusoidal", "learned"):
            raise ValueError(positions)


TRANSFORMER = Exercise(
    reference=transformer.Transformer,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, tied),
        look.values(2, tied, tied, title="With tied weights and post-norm, the logits are right."),
        look.values(
            1, deep, name="depth", title="Every layer of the decoder reads what leaves the encoder's last one."
        ),
        look.values(1.5, pre_norm, name="pre-norm", title="With pre-norm a norm stands behind each stack."),
        look.values(1, untied, name="untied", title="Weights that are not tied: a matrix for each of the three tasks."),
        look.values(1, learned, name="learned positions", title="Learned positions come from their table."),
        look.values(1, everywhere, name="every layer", title="Positions can be added before every layer."),
        look.values(
            1,
            lambda draw: drop_everything(tied(draw)),
            lambda draw: drop_everything(translator(draw, pre_norm=True)),
            lambda draw: drop_nothing(tied(draw)),
            name="dropout",
            title="In training, and only then, dropout falls on embeddings with their positions, and on sublayers.",
        ),
        look.values(0.5, rounded, name="activation", title="The activation is handed on."),
        look.values(0.5, unmasked, name="no mask", title="Without a mask every token is real."),
        look.values(0.5, reading, name="encode", title="The method encode gives what the decoder attends to."),
        look.relation(
            "causality",
            "What comes later in the target changes no earlier logits.",
            1,
            tied,
            _later_targets,
            claim="an earlier place's logits move when a later token does",
        ),
        look.relation(
            "padding",
            "What stands in the source's padding changes nothing.",
            1,
            pre_norm,
            _other_padding,
            claim="the logits move when a padded token does",
        ),
        look.gradients(
            0.5,
            without_layers,
            wrt=(),
            title="Gradients reach the shared matrix from each of its tasks, and are right.",
        ),
        look.double_precision(0.5, tied),
        look.device(0.5, tied),
        look.vectorised(0.5, longer_translator, axis="examples or positions"),
        look.refuses(
            0.5,
            learned,
            mixed_up,
            unknown_positions,
            too_long_for_the_table,
            title="Tied vocabularies of two sizes, unknown or missing positions are a ValueError.",
        ),
    ),
    forbidden=FUSED,
    rule_case=(tied, pre_norm),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        NotScaled,
        Divided,
        ScaledTogether,
        NoPositions,
        SourcePositionsOnly,
        PositionsOnce,
        PositionsAlways,
        EncoderUnmasked,
        CrossAttentionUnmasked,
        NeverMasked,
        InvertedMask,
        ZeroIsPadding,
        LayerByLayer,
        ReadsEmbeddings,
        OneLayerAgain,
        LastNormsUnused,
        MemoryNotNormalised,
        PreNormLost,
        ActivationForgotten,
        DropoutForgotten,
        EmbeddingsKept,
        PositionsKept,
        EmbeddingsAlwaysDropped,
        LogitsScaled,
        Probabilities,
        LogProbabilities,
        Exchanged,
        OutputUnused,
        NeverTied,
        AlwaysSinusoids,
        TiesAnything,
    ),
)
