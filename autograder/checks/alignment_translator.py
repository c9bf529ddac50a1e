"""Checks of chapter 02: the encoder, the decoder that looks back at it, and the translator made of the two."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from autograder.checking import aspects as look
from autograder.checking.aspects import Maker
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise, misconception
from autograder.checks.ch03_scaled_dot_product.cases import FUSED
from autograder.checks.sections import HEADINGS
from tfcourse import alignment

CHAPTER = "02_alignment"


def prefix_mask(draw: Draw, b: int, s: int) -> Tensor:
    """True at the real tokens: the last source is whole, the others are shorter, the first of them by two at least."""
    lengths = 1 + draw.integers(0, s - 1, b)
    lengths[0], lengths[-1] = 1 + int(draw.integers(0, s - 2)), s
    return torch.arange(s) < lengths[:, None]


class _Encoder(nn.Module):
    """The encoder in steps; each mistake below changes one of them."""

    def __init__(self, vocabulary: int, d_embedding: int, d_model: int) -> None:
        super().__init__()
        self.check_width(d_model)
        self.embedding = nn.Embedding(vocabulary, d_embedding)
        self.forward_gru = nn.GRU(d_embedding, d_model // 2, batch_first=True)
        self.backward_gru = nn.GRU(d_embedding, d_model // 2, batch_first=True)

    def check_width(self, d_model: int) -> None:
        if d_model % 2:
            raise ValueError("the width is odd")

    def check_mask(self, source: Tensor, mask: Tensor) -> None:
        if mask.dtype != torch.bool or mask.shape != source.shape:
            raise ValueError("the mask does not fit")

    def turn(self, x: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(x.shape[1], device=x.device)
        lengths = mask.sum(1, keepdim=True)
        order = torch.where(places < lengths, lengths - 1 - places, places)
        return x.gather(1, order[..., None].expand_as(x))

    def read_forward(self, embedded: Tensor, mask: Tensor) -> Tensor:
        return self.forward_gru(embedded)[0]  # type: ignore[no-any-return]

    def read_backward(self, embedded: Tensor, mask: Tensor) -> Tensor:
        return self.turn(self.backward_gru(self.turn(embedded, mask))[0], mask)

    def join(self, forward: Tensor, backward: Tensor, mask: Tensor) -> Tensor:
        return torch.cat([forward, backward], -1) * mask[..., None]

    def forward(self, source: Tensor, source_mask: Tensor | None = None) -> Tensor:
        mask = torch.ones_like(source, dtype=torch.bool) if source_mask is None else source_mask
        self.check_mask(source, mask)
        embedded = self.embedding(source)
        return self.join(self.read_forward(embedded, mask), self.read_backward(embedded, mask), mask)


# ------------------------------------------------------------------------------------------------------------ decoder

B, T, S = 2, 3, 4


def _decoder_init(score: str | None, **more: int) -> dict[str, int | str]:
    init: dict[str, int | str] = {"vocabulary": 5, "d_embedding": 3, "d_model": 4, **more}
    return init if score is None else {**init, "score": score}


def _decoder_state(draw: Draw, score: str, longest: int = 64) -> dict[str, Tensor]:
    return draw.weights(alignment.AttentionDecoder(5, 3, 4, score=score, max_source=longest))


def teacher(score: str | None = None, *, masked: bool = True, longest: int | None = None) -> Maker:
    """A whole target with teacher forcing, by a score or by the one that is the default."""

    def make(draw: Draw) -> Case:
        arguments = {"target": draw.integers(0, 5, B, T), "annotations": draw.normal(B, S, 4)}
        if masked:
            arguments["source_mask"] = prefix_mask(draw, B, S)
        more = {} if longest is None else {"max_source": longest}
        state = _decoder_state(draw, score or "additive", longest or 64)
        return Case(arguments, init=_decoder_init(score, **more), state=state)

    return make


def one_step(draw: Draw) -> Case:
    """A step from any state."""
    arguments = {
        "token": draw.integers(0, 5, B),
        "state": draw.normal(B, 4),
        "annotations": draw.normal(B, S, 4),
        "source_mask": prefix_mask(draw, B, S),
    }
    return Case(arguments, init=_decoder_init("additive"), state=_decoder_state(draw, "additive"), method="step")


def first_state(draw: Draw) -> Case:
    """The state before the first step."""
    state = _decoder_state(draw, "dot")
    return Case({"annotations": draw.normal(B, S, 4)}, init=_decoder_init("dot"), state=state, method="initial_state")


def scores_by(score: str) -> Maker:
    """The scores of queries against annotations."""

    def make(draw: Draw) -> Case:
        arguments = {"queries": draw.normal(B, T, 4), "annotations": draw.normal(B, S, 4)}
        init = _decoder_init(score, max_source=S + 2)
        return Case(arguments, init=init, state=_decoder_state(draw, score, S + 2), method="scores")

    return make


def unknown_score(draw: Draw) -> Case:
    """A score that there is not."""
    arguments = {"target": draw.integers(0, 5, B, T), "annotations": draw.normal(B, S, 4)}
    return Case(arguments, init=_decoder_init("bilinear"))


class _Decoder(alignment.AttentionDecoder):
    """The decoder in steps; each mistake below changes one of them."""

    def look_at(self, state: Tensor, annotations: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Weights (B, S) and context (B, D) of a state."""
        weights, context = alignment.attend(self.scores(state[:, None], annotations), annotations, mask)
        return weights[:, 0], context[:, 0]

    def renew(self, y: Tensor, context: Tensor, state: Tensor) -> Tensor:
        renewed: Tensor = self.cell(torch.cat([y, context], -1), state)
        return renewed

    def tell(self, state: Tensor, context: Tensor, y: Tensor, before: Tensor) -> Tensor:
        logits: Tensor = self.output(torch.cat([state, context, y], -1))
        return logits

    def step(
        self, token: Tensor, state: Tensor, annotations: Tensor, source_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        y = self.embedding(token)
        weights, context = self.look_at(state, annotations, source_mask)
        new = self.renew(y, context, state)
        return self.tell(new, context, y, state), new, weights


@misconception("the new state asks", read="attention-decoder")
class NewStateAsks(_Decoder):
    """The query of weights and logits is the new state, s_t. In this decoder the state *before* asks, s_(t-1): what it finds goes into
    the new state, and cannot come out of it.
    """

    def step(
        self, token: Tensor, state: Tensor, annotations: Tensor, source_mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        y = self.embedding(token)
        new = self.renew(y, self.look_at(state, annotations, source_mask)[1], state)
        weights, context = self.look_at(new, annotations, source_mask)
        return self.tell(new, context, y, state), new, weights


@misconception("the first state asks always", read="attention-decoder")
class FirstStateAsks(_Decoder):
    """The context is found once, with the first state, and used at every step. That is a fixed context again: each step asks anew."""

    def forward(self, target: Tensor, annotations: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        state = self.initial_state(annotations)
        weights, context = self.look_at(state, annotations, source_mask)
        logits = []
        for token in target.unbind(1):
            y = self.embedding(token)
            before, state = state, self.renew(y, context, state)
            logits.append(self.tell(state, context, y, before))
        return torch.stack(logits, 1), weights[:, None].expand(-1, target.shape[1], -1)


@misconception("state not handed on", read="attention-decoder")
class StateNotHandedOn(_Decoder):
    """Every step begins with the first state again: the new one is computed and thrown away. Then the decoder forgets what it has
    written.
    """

    def forward(self, target: Tensor, annotations: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        state = self.initial_state(annotations)
        steps = [self.step(token, state, annotations, source_mask) for token in target.unbind(1)]
        return torch.stack([step[0] for step in steps], 1), torch.stack([step[2] for step in steps], 1)


@misconception("no tanh at the bridge", read="attention-decoder")
class NoTanhAtBridge(_Decoder):
    """The first state is the bridge's output as it is. It goes through a hyperbolic tangent, so that its numbers lie where those of
    every other state lie.
    """

    def initial_state(self, annotations: Tensor) -> Tensor:
        state: Tensor = self.bridge(annotations[:, 0, annotations.shape[2] // 2 :])
        return state


@misconception("bridge from the forward half", read="attention-decoder")
class BridgeFromForwardHalf(_Decoder):
    """The first state comes from the forward half of the first annotation, which has read a single word. The backward half, behind it,
    has read the whole source.
    """

    def initial_state(self, annotations: Tensor) -> Tensor:
        return torch.tanh(self.bridge(annotations[:, 0, : annotations.shape[2] // 2]))


@misconception("bridge from the last annotation", read="attention-decoder")
class BridgeFromLast(_Decoder):
    """The first state comes from the last annotation, which in a padded source is zeros. The backward reading ends at the *first* place:
    its state there has read everything.
    """

    def initial_state(self, annotations: Tensor) -> Tensor:
        return torch.tanh(self.bridge(annotations[:, -1, annotations.shape[2] // 2 :]))


@misconception("first state zero", read="attention-decoder")
class FirstStateZero(_Decoder):
    """The decoder starts from zeros, and the bridge is never used. Then the first query is the same for every source."""

    def initial_state(self, annotations: Tensor) -> Tensor:
        return torch.zeros_like(annotations[:, 0])


@misconception("padding gets weight", read="attention-decoder")
class DecoderMaskIgnored(_Decoder):
    """The mask is not handed on to the attention, so that the padding gets weight."""

    def look_at(self, state: Tensor, annotations: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        return super().look_at(state, annotations, None)


@misconception("mask inverted", read="attention-decoder")
class DecoderMaskInverted(_Decoder):
    """The mask is read the wrong way round: the decoder looks at the padding only. True means that a token is real."""

    def look_at(self, state: Tensor, annotations: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        return super().look_at(state, annotations, None if mask is None else ~mask)


@misconception("cell without the context", read="attention-decoder")
class CellWithoutContext(_Decoder):
    """The context does not enter the cell: the state never learns what was looked at, and the next query cannot go on from there."""

    def renew(self, y: Tensor, context: Tensor, state: Tensor) -> Tensor:
        return super().renew(y, torch.zeros_like(context), state)


@misconception("output without the context", read="attention-decoder")
class OutputWithoutContext(_Decoder):
    """The context does not enter the output layer. It stands there between the state and the embedded token."""

    def tell(self, state: Tensor, context: Tensor, y: Tensor, before: Tensor) -> Tensor:
        return super().tell(state, torch.zeros_like(context), y, before)


@misconception("context before the token", read="attention-decoder")
class ContextBeforeToken(_Decoder):
    """The cell is given the context first and then the embedded token. The order is [y; c]: the first E columns of its weights belong
    to the token.
    """

    def renew(self, y: Tensor, context: Tensor, state: Tensor) -> Tensor:
        renewed: Tensor = self.cell(torch.cat([context, y], -1), state)
        return renewed


@misconception("output in another order", read="attention-decoder")
class OutputInAnotherOrder(_Decoder):
    """The output layer is given the context before the state. The order is [s; c; y]."""

    def tell(self, state: Tensor, context: Tensor, y: Tensor, before: Tensor) -> Tensor:
        return super().tell(context, state, y, before)


@misconception("output of the state before", read="attention-decoder")
class OutputOfStateBefore(_Decoder):
    """The logits are made from the state before the step, which has not seen the token that stands there. They are made from the new
    state.
    """

    def tell(self, state: Tensor, context: Tensor, y: Tensor, before: Tensor) -> Tensor:
        return super().tell(before, context, y, before)


@misconception("the score's name ignored", read="scores")
class NameIgnored(_Decoder):
    """The score is the additive one whatever its name. Look at the name, in the constructor and where the scores are computed."""

    def __init__(
        self, vocabulary: int, d_embedding: int, d_model: int, score: str = "additive", max_source: int = 64
    ) -> None:
        super().__init__(vocabulary, d_embedding, d_model, score="additive" if score in alignment.SCORES else score)


@misconception("unknown name accepted", read="scores")
class UnknownNameAccepted(_Decoder):
    """A name that belongs to no score is accepted, and something else is computed without a word. Raise a ValueError that names it."""

    def __init__(
        self, vocabulary: int, d_embedding: int, d_model: int, score: str = "additive", max_source: int = 64
    ) -> None:
        known = score if score in alignment.SCORES else "dot"
        super().__init__(vocabulary, d_embedding, d_model, score=known, max_source=max_source)


@misconception("scores divided by the width", read="multiplicative-scores")
class DividedByWidth(_Decoder):
    """The score "scaled_dot" is divided by the width itself, not by its square root."""

    def scores(self, queries: Tensor, annotations: Tensor) -> Tensor:
        scores = super().scores(queries, annotations)
        return scores / 2 if self.score == "scaled_dot" else scores  # the root of the width is 2 in these cases


@misconception("queries and keys swapped", read="additive-score")
class RolesSwapped(_Decoder):
    """In the additive score w_q meets the annotations and w_k the state. As they are equally wide nothing fails, but the weights of any
    other implementation mean something else here.
    """

    def scores(self, queries: Tensor, annotations: Tensor) -> Tensor:
        if self.score != "additive":
            return super().scores(queries, annotations)
        return alignment.additive_score(queries, annotations, self.w_k, self.w_q, self.v)


@misconception("general matrix transposed", read="multiplicative-scores")
class GeneralTransposed(_Decoder):
    """In the score "general" the matrix is transposed: its rows belong to the queries, its columns to the annotations."""

    def scores(self, queries: Tensor, annotations: Tensor) -> Tensor:
        if self.score != "general":
            return super().scores(queries, annotations)
        return alignment.general_score(queries, annotations, self.w.T)


@misconception("no teacher", read="attention-decoder")
class NoTeacher(_Decoder):
    """From the second step on the decoder is given its own best guess. In training it is given the token that stands there in truth:
    that is teacher forcing.
    """

    def forward(self, target: Tensor, annotations: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        state, token = self.initial_state(annotations), target[:, 0]
        steps = []
        for _ in range(target.shape[1]):
            logits, state, weights = self.step(token, state, annotations, source_mask)
            steps.append((logits, weights))
            token = logits.argmax(-1)
        return torch.stack([step[0] for step in steps], 1), torch.stack([step[1] for step in steps], 1)


@misconception("probabilities in place of logits", read="attention-decoder")
class Probabilities(_Decoder):
    """A softmax over the vocabulary has been taken already. Logits are asked for: the loss takes the softmax, and takes it once."""

    def tell(self, state: Tensor, context: Tensor, y: Tensor, before: Tensor) -> Tensor:
        return torch.softmax(super().tell(state, context, y, before), -1)


@misconception("the first annotation only", read="beats-the-bottleneck")
class FirstAnnotationOnly(_Decoder):
    """The context is always the first annotation, whatever the weights say: one fixed vector, the bottleneck again."""

    def look_at(self, state: Tensor, annotations: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        return super().look_at(state, annotations, mask)[0], annotations[:, 0]


@misconception("weights turned about", read="attention-decoder")
class WeightsTurned(_Decoder):
    """The weights come out as (B, S, T), one row for each place of the source. A row belongs to a step: (B, T, S)."""

    def forward(self, target: Tensor, annotations: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        logits, weights = super().forward(target, annotations, source_mask)
        return logits, weights.transpose(1, 2)


@misconception("constant left on the CPU", read="attention-decoder")
class DecoderConstantOnCpu(_Decoder):
    """The weights are collected in a tensor that was made on the CPU, and do not go with the model to a GPU."""

    def forward(self, target: Tensor, annotations: Tensor, source_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        logits, weights = super().forward(target, annotations, source_mask)
        return logits, torch.zeros(weights.shape, dtype=weights.dtype, device="cpu") + weights


ATTENTION_DECODER = Exercise(
    reference=alignment.AttentionDecoder,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, teacher()),
        look.values(
            1,
            first_state,
            name="first state",
            title="The first state comes from the backward half of the first annotation.",
        ),
        look.values(
            2,
            one_step,
            name="step",
            title="One step: the state before asks, then comes the new state, then the logits.",
        ),
        look.part(
            2,
            teacher(masked=False),
            output="output[0]",
            name="logits",
            title="With teacher forcing, the logits of all steps are right.",
        ),
        look.part(
            2,
            teacher(masked=False),
            output="output[1]",
            name="weights",
            title="The alignment weights of all steps are right.",
        ),
        look.values(1, teacher("additive"), name="padding", title="Padding gets no weight."),
        look.values(
            1.5,
            *(scores_by(score) for score in alignment.SCORES),
            name="scores",
            title="Each of the six names stands for its score.",
        ),
        look.values(
            0.5,
            teacher("scaled_dot"),
            teacher("location", longest=S + 1),
            name="other scores",
            title="The decoder runs with other scores as well.",
        ),
        look.gradients(1, teacher("additive"), wrt=("annotations",)),
        look.attributes(0.5, teacher("general"), names=("score",)),
        look.device(0.5, teacher("dot")),
        look.refuses(0.5, teacher("dot"), unknown_score, title="A name that belongs to no score is a ValueError."),
    ),
    forbidden=FUSED,
    rule_case=teacher("scaled_dot"),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        NewStateAsks,
        FirstStateAsks,
        StateNotHandedOn,
        NoTanhAtBridge,
        BridgeFromForwardHalf,
        BridgeFromLast,
        FirstStateZero,
        DecoderMaskIgnored,
        DecoderMaskInverted,
        CellWithoutContext,
        OutputWithoutContext,
        ContextBeforeToken,
        OutputInAnotherOrder,
        OutputOfStateBefore,
        NameIgnored,
        UnknownNameAccepted,
        DividedByWidth,
        RolesSwapped,
        GeneralTransposed,
        NoTeacher,
        Probabilities,
        FirstAnnotationOnly,
        WeightsTurned,
        DecoderConstantOnCpu,
    ),
)


# --------------------------------------------------------------------------------------------------------- translator


def translate(
    score: str | None = None, *, masked: bool = True, longest: int | None = None, method: str | None = None
) -> Maker:
    """A batch of sources and targets; source and target vocabulary differ."""

    def make(draw: Draw) -> Case:
        arguments = {"source": draw.integers(1, 6, B, S), "target": draw.integers(0, 5, B, T)}
        if masked:
            arguments["source_mask"] = prefix_mask(draw, B, S)
        init: dict[str, int | str] = {"source_vocabulary": 6, "target_vocabulary": 5, "d_embedding": 3, "d_model": 4}
        if score is not None:
            init["score"] = score
        if longest is not None:
            init["max_source"] = longest
        state = draw.weights(
            alignment.AttentionSeq2Seq(6, 5, 3, 4, score=score or "additive", max_source=longest or 64)
        )
        return Case(arguments, init=init, state=state, method=method)

    return make


class _Translator(alignment.AttentionSeq2Seq):
    """The translator in steps; each mistake below changes one of them."""

    def run(self, source: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logits and weights."""
        pair: tuple[Tensor, Tensor] = self.decoder(target, self.encoder(source, mask), mask)
        return pair

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return self.run(source, target, source_mask)[0]

    def align(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return self.run(source, target, source_mask)[1]


@misconception("vocabularies swapped", read="attention-decoder")
class VocabulariesSwapped(_Translator):
    """The encoder has the vocabulary of the target and the decoder that of the source."""

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        d_embedding: int,
        d_model: int,
        score: str = "additive",
        max_source: int = 64,
    ) -> None:
        super().__init__(target_vocabulary, source_vocabulary, d_embedding, d_model, score=score, max_source=max_source)


@misconception("score not handed on", read="attention-decoder")
class ScoreNotHandedOn(_Translator):
    """The name of the score is not handed on to the decoder, which takes its default."""

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        d_embedding: int,
        d_model: int,
        score: str = "additive",
        max_source: int = 64,
    ) -> None:
        if score not in alignment.SCORES:
            raise ValueError(score)
        super().__init__(source_vocabulary, target_vocabulary, d_embedding, d_model)


@misconception("longest source not handed on", read="location-score")
class LongestNotHandedOn(_Translator):
    """The number max_source is not handed on to the decoder, which takes its default: the matrix of the score "location" has
    another size.
    """

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        d_embedding: int,
        d_model: int,
        score: str = "additive",
        max_source: int = 64,
    ) -> None:
        super().__init__(source_vocabulary, target_vocabulary, d_embedding, d_model, score=score)


@misconception("encoder without the mask", read="annotations")
class EncoderWithoutMask(_Translator):
    """The mask is not handed on to the encoder, whose backward reading then begins in the padding."""

    def run(self, source: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        pair: tuple[Tensor, Tensor] = self.decoder(target, self.encoder(source), mask)
        return pair


@misconception("decoder without the mask", read="attention-decoder")
class DecoderWithoutMask(_Translator):
    """The mask is not handed on to the decoder, which gives weight to the padding."""

    def run(self, source: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        pair: tuple[Tensor, Tensor] = self.decoder(target, self.encoder(source, mask))
        return pair


@misconception("no mask anywhere", read="attention-decoder")
class NoMaskAnywhere(_Translator):
    """The mask is used neither by the encoder nor by the decoder: a translation depends on what it was padded with."""

    def run(self, source: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        return super().run(source, target, None)


@misconception("token 0 taken for padding", read="attention-decoder")
class ZeroTakenForPadding(_Translator):
    """The mask that is given is not used: one is made from the tokens that are not 0. Whoever calls may pad with anything; the mask says
    what is real.
    """

    def __init__(
        self, source_vocabulary: int, target_vocabulary: int, d_embedding: int, d_model: int, **more: Any
    ) -> None:
        super().__init__(source_vocabulary, target_vocabulary, d_embedding, d_model, **more)
        # The mask has gaps. The reference's encoder would refuse it; a student's need not.
        self.add_module("encoder", _Encoder(source_vocabulary, d_embedding, d_model))

    def run(self, source: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        return super().run(source, target, source.remainder(5) != 0)


@misconception("forward returns a pair", read="attention-decoder")
class ForwardReturnsPair(_Translator):
    """The translator returns logits and weights. It has the face of every translator of the course, so it returns the logits alone;
    align gives the weights.
    """

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return self.run(source, target, source_mask)  # type: ignore[return-value]


@misconception("align returns logits", read="attention-decoder")
class AlignReturnsLogits(_Translator):
    """What align returns are the logits. Asked for is where the decoder looked: the weights."""

    def align(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return self.run(source, target, source_mask)[0]


@misconception("align returns places", read="attention-decoder")
class AlignReturnsPlaces(_Translator):
    """What align returns is the place of the largest weight at each step. Asked for are the weights themselves: how widely they
    are spread is part of the answer.
    """

    def align(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return self.run(source, target, source_mask)[1].argmax(-1)


@misconception("alignment turned about", read="alignments-cross")
class AlignmentTurned(_Translator):
    """The alignment comes out as (B, S, T), one row for each source word. A row belongs to a step of the decoder: (B, T, S)."""

    def align(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return self.run(source, target, source_mask)[1].transpose(1, 2)


@misconception("alignment a step late", read="alignments-cross")
class AlignmentLate(_Translator):
    """Row t of the alignment is that of step t-1. Row t belongs to the step whose logits are logits[:, t]: what is rolled on here was
    about the word before.
    """

    def align(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return self.run(source, target, source_mask)[1].roll(1, 1)


@misconception("target shifted", read="attention-decoder")
class TargetShifted(_Translator):
    """The first token of the target is cut off before it goes to the decoder. It is BOS, which the first step is given; the decoder wants
    the target as it comes.
    """

    def run(self, source: Tensor, target: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        return super().run(source, target[:, 1:], mask)


@misconception("log-probabilities in place of logits", read="attention-decoder")
class LogProbabilities(_Translator):
    """A log-softmax has been taken already. Logits are asked for, as the output layer gives them."""

    def forward(self, source: Tensor, target: Tensor, source_mask: Tensor | None = None) -> Tensor:
        return torch.log_softmax(self.run(source, target, source_mask)[0], -1)


ATTENTION_SEQ2SEQ = Exercise(
    reference=alignment.AttentionSeq2Seq,
    chapter=CHAPTER,
    headings=HEADINGS,
    rows=(
        look.shape(0.5, translate()),
        look.values(1, translate(masked=False), name="logits", title="The logits are those of the decoder."),
        look.values(2, translate("dot"), name="padding", title="Encoder and decoder know what is padding."),
        look.values(1, translate(method="align"), name="alignment", title="align gives the weights of every step."),
        look.values(
            0.5,
            translate("location", longest=S + 1),
            name="score",
            title="The score and the longest source are handed on to the decoder.",
        ),
        look.gradients(0.5, translate("general"), wrt=(), title="Gradients flow back to all weights, and are right."),
        look.batch_independence(0.5, translate("scaled_dot"), batched=("source", "target", "source_mask")),
    ),
    forbidden=FUSED,
    rule_case=translate("scaled_dot"),
    misconceptions=(  # type: ignore[arg-type]  # mypy takes a decorated class for the class
        VocabulariesSwapped,
        ScoreNotHandedOn,
        LongestNotHandedOn,
        EncoderWithoutMask,
        DecoderWithoutMask,
        NoMaskAnywhere,
        ZeroTakenForPadding,
        ForwardReturnsPair,
        AlignReturnsLogits,
        AlignReturnsPlaces,
        AlignmentTurned,
        AlignmentLate,
        TargetShifted,
        LogProbabilities,
    ),
)
