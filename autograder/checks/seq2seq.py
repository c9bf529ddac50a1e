"""Check of chapter 01's translator: an encoder, a context, a decoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from autograder.checking import aspects as look
from autograder.checking.aspects import Aspect, Maker
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.recurrent import CHAPTER, padding_behind
from autograder.checks.sections import HEADINGS
from tfcourse import seq2seq

Context: TypeAlias = tuple[Tensor, Tensor]

# Token 0 is padding and 1 begins a sentence, in both languages. More source tokens than target tokens, so that a target looked up in the
# wrong table still finds a row.
SOURCE_WORDS = 8
TARGET_WORDS = 7
BOS = 1


def _translator(draw: Draw, *, n_layers: int | None = None, batch: int = 2) -> Case:
    """A translator with random weights, and sentences of two different lengths. Without ``n_layers`` the default is used."""
    s, t, e, d = draw.sizes(4, low=3)
    init = {"source_vocabulary": SOURCE_WORDS, "target_vocabulary": TARGET_WORDS, "d_embedding": e, "d_model": d}
    model = seq2seq.Seq2Seq(SOURCE_WORDS, TARGET_WORDS, e, d, n_layers=n_layers or 1)
    target = draw.integers(2, TARGET_WORDS, batch, t)
    target[:, 0] = BOS
    return Case(
        {"source": draw.integers(2, SOURCE_WORDS, batch, s), "target": target},
        init=init if n_layers is None else {**init, "n_layers": n_layers},
        state=draw.weights(model),
    )


def plain(draw: Draw) -> Case:
    """One layer, no padding."""
    return _translator(draw)


def two_layers(draw: Draw) -> Case:
    """Two layers, no padding."""
    return _translator(draw, n_layers=2)


def padded(draw: Draw) -> Case:
    """Sources of different lengths, padding behind them."""
    case = _translator(draw, batch=3)
    source = case.arguments["source"]
    mask = padding_behind(draw, *source.shape)
    return case.with_arguments(source=source * mask, source_mask=mask)


def padded_layers(draw: Draw) -> Case:
    """Two layers, and sources of different lengths."""
    case = _translator(draw, n_layers=2)
    source = case.arguments["source"]
    mask = padding_behind(draw, *source.shape)
    return case.with_arguments(source=source * mask, source_mask=mask)


def full_mask(draw: Draw) -> Case:
    """A mask that marks every token as real."""
    case = _translator(draw)
    return case.with_arguments(source_mask=torch.ones_like(case.arguments["source"], dtype=torch.bool))


def unfit_mask(draw: Draw) -> Case:
    """A mask with a place too few."""
    case = full_mask(draw)
    return case.with_arguments(source_mask=case.arguments["source_mask"][:, :-1])


def reading(draw: Draw) -> Case:
    """Only the encoder, with padding."""
    case = padded_layers(draw)
    arguments = {name: value for name, value in case.arguments.items() if name != "target"}
    return Case(arguments, init=case.init, state=case.state, method="encode")


def writing(draw: Draw) -> Case:
    """Only the decoder, from any state."""
    case = two_layers(draw)
    assert case.init is not None
    b, d = len(case.arguments["target"]), case.init["d_model"]
    arguments = {"target": case.arguments["target"], "state": (draw.normal(2, b, d), draw.normal(2, b, d))}
    return Case(arguments, init=case.init, state=case.state, method="decode")


def teacher_forcing(points: float, maker: Maker) -> Aspect:
    """Changing later target tokens changes no earlier logits."""

    def change(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
        target = case.arguments["target"].clone()
        keep = target.shape[1] // 2
        target[:, keep:] = 2 + (target[:, keep:] - 1) % (TARGET_WORDS - 2)
        view = [("narrow", 1, 0, keep)]
        return case.with_arguments(target=target), view, view

    title = "Logits know nothing of the target tokens that come later."
    return look.relation(
        "causality", title, points, maker, change, claim="earlier logits move when a later target token does"
    )


def length_of_padding(points: float, maker: Maker) -> Aspect:
    """More padding changes nothing."""

    def change(draw: Draw, case: Case) -> tuple[Case, Sequence[Any], Sequence[Any]]:
        source, mask = case.arguments["source"], case.arguments["source_mask"]
        more = torch.zeros(len(source), 2, dtype=source.dtype)
        longer = case.with_arguments(source=torch.cat([source, more], 1), source_mask=torch.cat([mask, more > 0], 1))
        return longer, [], []

    title = "It does not matter how much padding stands behind a source."
    return look.relation("padding", title, points, maker, change, claim="more padding changes the logits")


class _Translator(nn.Module):
    """The translator in steps; each mistake below changes one of them."""

    def __init__(
        self, source_vocabulary: int, target_vocabulary: int, d_embedding: int, d_model: int, n_layers: int = 1
    ) -> None:
        super().__init__()
        self.source_embedding = nn.Embedding(source_vocabulary, d_embedding)
        self.target_embedding = nn.Embedding(target_vocabulary, d_embedding)
        self.encoder = nn.LSTM(d_embedding, d_model, n_layers, batch_first=True)
        self.decoder = nn.LSTM(d_embedding, d_model, n_layers, batch_first=True)
        self.output = nn.Linear(d_model, target_vocabulary)

    def admit(self, source: Tensor, mask: Tensor | None) -> None:
        if mask is not None and mask.shape != source.shape:
            raise ValueError(f"{tuple(mask.shape)} and {tuple(source.shape)}")

    def embed(self, source: Tensor, mask: Tensor | None) -> Tensor:
        embedded: Tensor = self.source_embedding(source)
        return embedded

    def read(self, embedded: Tensor, mask: Tensor | None) -> Context:
        if mask is None:
            context: Context = self.encoder(embedded)[1]
            return context
        lengths = mask.sum(1)
        ends = []
        for b, length in enumerate(lengths.tolist()):
            ends.append(self.encoder(embedded[b : b + 1, :length])[1])
        return torch.cat([end[0] for end in ends], 1), torch.cat([end[1] for end in ends], 1)

    def hand_over(self, context: Context) -> Context:
        return context

    def given(self, target: Tensor) -> Tensor:
        return target

    def look_up(self, target: Tensor) -> Tensor:
        embedded: Tensor = self.target_embedding(target)
        return embedded

    def write(self, embedded: Tensor, state: Context) -> tuple[Tensor, Context]:
        states, (h, c) = self.decoder(embedded, state)
        return states, (h, c)

    def say(self, states: Tensor) -> Tensor:
        logits: Tensor = self.output(states)
        return logits

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Context:
        self.admit(source, source_mask)
        return self.read(self.embed(source, source_mask), source_mask)

    def decode(self, target: Tensor, state: Context) -> tuple[Tensor, Context]:
        states, state = self.write(self.look_up(self.given(target)), state)
        return self.say(states), state

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return self.decode(target, self.hand_over(self.encode(source, source_mask)))[0]


@misconception("context not handed over", read="encoder-decoder")
class NoContext(_Translator):
    """The decoder begins with zeros. Nothing of the source reaches it: it is a language model that writes any sentence of the target
    language. The encoder's last states and cells are where it begins.
    """

    def hand_over(self, context: Context) -> Context:
        return context[0] * 0, context[1] * 0


@misconception("cell not handed over", read="encoder-decoder")
class NoCell(_Translator):
    """Only the states are handed over, and the decoder's cells begin with zeros. The cell is the LSTM's memory: both belong to the
    context.
    """

    def hand_over(self, context: Context) -> Context:
        return context[0], context[1] * 0


@misconception("state and cell swapped", read="encoder-decoder")
class Swapped(_Translator):
    """States and cells have changed places between encoder and decoder. An LSTM takes the pair in the order in which it gives it."""

    def hand_over(self, context: Context) -> Context:
        return context[1], context[0]


@misconception("top layer's context for all", read="encoder-decoder")
class TopForAll(_Translator):
    """Every layer of the decoder begins with the context of the encoder's top layer. Each layer begins where the same layer of the
    encoder ended.
    """

    def hand_over(self, context: Context) -> Context:
        return context[0][-1:].expand_as(context[0]).contiguous(), context[1][-1:].expand_as(context[1]).contiguous()


@misconception("last layer's context only", read="encoder-decoder")
class LastLayerOnly(_Translator):
    """The method encode returns the states and cells of the last layer alone. Every layer has its own, (n_layers, B, D), and every layer
    of the decoder begins with one.
    """

    def encode(self, source: Tensor, source_mask: Tensor | None = None) -> Context:
        h, c = super().encode(source, source_mask)
        return h[-1:], c[-1:]


@misconception("padding read", read="what-goes-wrong-01")
class PaddingRead(_Translator):
    """The mask is not used, so the encoder reads the padding as if it were text: the same sentence gets another context in another
    batch.
    """

    def read(self, embedded: Tensor, mask: Tensor | None) -> Context:
        return super().read(embedded, None)


@misconception("padding read as zeros", read="what-goes-wrong-01")
class PaddingAsZeros(_Translator):
    """The embeddings of the padding are set to zero, and the encoder reads on. A state changes at every step, whatever the input is; the
    context must be the state after the last real token.
    """

    def embed(self, source: Tensor, mask: Tensor | None) -> Tensor:
        embedded = super().embed(source, mask)
        return embedded if mask is None else embedded * mask[..., None]

    def read(self, embedded: Tensor, mask: Tensor | None) -> Context:
        return super().read(embedded, None)


@misconception("cell from behind the padding", read="what-goes-wrong-01")
class CellBehindPadding(_Translator):
    """The states are those after the last real token, and the cells are those after the padding. Both belong to the same step."""

    def read(self, embedded: Tensor, mask: Tensor | None) -> Context:
        return super().read(embedded, mask)[0], super().read(embedded, None)[1]


@misconception("one token too few read", read="what-goes-wrong-01")
class OneTooFewRead(_Translator):
    """The last real token of a padded source is not read. With a length of n the last token stands at n - 1, and the state after it is
    the context.
    """

    def read(self, embedded: Tensor, mask: Tensor | None) -> Context:
        if mask is not None:
            mask = torch.arange(mask.shape[1]) < (mask.sum(1, keepdim=True) - 1).clamp(min=1)
        return super().read(embedded, mask)


@misconception("source read backwards", read="encoder-decoder")
class ReadBackwards(_Translator):
    """The source is turned round before it is read. The paper does so, and it helps; here whoever calls may do it, and the model reads what
    it is given.
    """

    def read(self, embedded: Tensor, mask: Tensor | None) -> Context:
        if mask is None:
            return super().read(embedded.flip(1), None)
        rows = [row[:length].flip(0) for row, length in zip(embedded, mask.sum(1).tolist(), strict=True)]
        return super().read(nn.utils.rnn.pad_sequence(rows, batch_first=True), mask)


@misconception("one embedding for both languages", read="encoder-decoder")
class OneEmbedding(_Translator):
    """The target tokens are looked up in the source's embedding. Token 5 is one word in the one language and another in the other."""

    def look_up(self, target: Tensor) -> Tensor:
        embedded: Tensor = self.source_embedding(target)
        return embedded


@misconception("one network for both languages", read="encoder-decoder")
class OneNetwork(_Translator):
    """The encoder writes the target, too, and the decoder is never used. They are two networks: reading one language and writing another
    are two trades.
    """

    def write(self, embedded: Tensor, state: Context) -> tuple[Tensor, Context]:
        states, (h, c) = self.encoder(embedded, state)
        return states, (h, c)


@misconception("target shifted once more", read="what-goes-wrong-01")
class ShiftedOnceMore(_Translator):
    """The target is shifted once more inside the model: the logits at t have not seen target[:, t] and predict it. The target begins with
    BOS already, so what is given at t is the token after which the next one is predicted.
    """

    def given(self, target: Tensor) -> Tensor:
        return torch.cat([torch.full_like(target[:, :1], BOS), target[:, :-1]], dim=1)


@misconception("sees the token that it predicts", read="what-goes-wrong-01")
class SeesTheAnswer(_Translator):
    """The decoder is given the token that it is to predict: the target is one place too far on. It learns to copy, the loss falls to zero,
    and where there is no target to copy from it can say nothing.
    """

    def given(self, target: Tensor) -> Tensor:
        return target.roll(-1, dims=1)


@misconception("fed with its own words", read="encoder-decoder")
class OwnWords(_Translator):
    """The decoder is given its own best guess in place of the target's token. That is how a translation is written once the model has been
    trained; with teacher forcing it is given the truth.
    """

    def decode(self, target: Tensor, state: Context) -> tuple[Tensor, Context]:
        token, logits = target[:, :1], []
        for _ in range(target.shape[1]):
            said, state = super().decode(token, state)
            logits.append(said)
            token = said.argmax(-1)
        return torch.cat(logits, dim=1), state


@misconception("context at every step", read="encoder-decoder")
class ContextAtEveryStep(_Translator):
    """The decoder begins with the context again at every step, so it does not know what it has written. Its state is carried on from token
    to token.
    """

    def decode(self, target: Tensor, state: Context) -> tuple[Tensor, Context]:
        steps = [_Translator.decode(self, token[:, None], state) for token in target.unbind(1)]
        return torch.cat([said for said, _ in steps], dim=1), steps[-1][1]


@misconception("state not handed back", read="encoder-decoder")
class StateNotHandedBack(_Translator):
    """The method decode returns the state that it was given. It returns the one after the last token: a sentence can be written on."""

    def decode(self, target: Tensor, state: Context) -> tuple[Tensor, Context]:
        return super().decode(target, state)[0], state


@misconception("probabilities for logits", read="encoder-decoder")
class ProbabilitiesSaid(_Translator):
    """The model returns probabilities. Logits are asked for: whoever computes the loss applies the softmax, and once is enough."""

    def say(self, states: Tensor) -> Tensor:
        return super().say(states).softmax(dim=-1)


@misconception("last logits only", read="encoder-decoder")
class LastLogitsOnly(_Translator):
    """Only the logits after the last token are returned. Every place of the target has something to learn from: (B, T, V)."""

    def say(self, states: Tensor) -> Tensor:
        return super().say(states[:, -1:])


@misconception("one layer only", read="stacked-bidirectional")
class OneLayerOnly(_Translator):
    """Both LSTMs have one layer, however many are asked for: n_layers is not handed on."""

    def __init__(
        self, source_vocabulary: int, target_vocabulary: int, d_embedding: int, d_model: int, n_layers: int = 1
    ) -> None:
        super().__init__(source_vocabulary, target_vocabulary, d_embedding, d_model)


@misconception("mask not checked", read="shapes-01")
class MaskNotChecked(_Translator):
    """A mask that does not have the source's shape is accepted, and part of the source is silently not read. Compare the shapes and raise
    a ValueError that names them.
    """

    def admit(self, source: Tensor, mask: Tensor | None) -> None:
        pass


SEQ2SEQ = Exercise(
    reference=seq2seq.Seq2Seq,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, plain, two_layers),
        look.values(2, plain, title="The logits are right, one layer and no padding."),
        look.values(1, two_layers, name="layers", title="They are right with two layers."),
        look.values(1.5, padded, name="mask", title="Sources of different lengths: the padding is not read."),
        length_of_padding(0.5, padded_layers),
        look.values(1, reading, name="encode", title="encode gives the last states and cells of every layer."),
        look.values(1, writing, name="decode", title="decode writes on from any state, and hands the new one back."),
        look.gradients(1, plain, wrt=(), title="Gradients flow back to every weight of both networks, and are right."),
        teacher_forcing(0.5, plain),
        look.batch_independence(0.5, padded, batched=("source", "target", "source_mask")),
        look.double_precision(0.5, plain),
        look.device(0.5, plain),
        look.refuses(0.5, full_mask, unfit_mask, title="A mask that does not fit the source is a ValueError."),
    ),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        NoContext,
        NoCell,
        Swapped,
        TopForAll,
        LastLayerOnly,
        PaddingRead,
        PaddingAsZeros,
        CellBehindPadding,
        OneTooFewRead,
        ReadBackwards,
        OneEmbedding,
        OneNetwork,
        ShiftedOnceMore,
        SeesTheAnswer,
        OwnWords,
        ContextAtEveryStep,
        StateNotHandedBack,
        ProbabilitiesSaid,
        LastLogitsOnly,
        OneLayerOnly,
        MaskNotChecked,
    ),
)
