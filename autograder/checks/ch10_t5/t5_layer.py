"""The check of ``T5Layer``: a layer of the encoder, and one of the decoder."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.layer_cases import drop_everything, drop_nothing, hardly_drop
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from tfcourse import t5

D, H, DH, F = 6, 2, 5, 8


def _layer(draw: Draw, *, decoder: bool, gated: bool = False) -> Case:
    init: dict[str, int | bool] = {"d_model": D, "n_heads": H, "d_head": DH, "d_ff": F, "decoder": decoder}
    if gated:
        init["gated"] = True
    # With larger weights, scores without a scale are so large that single precision alone moves the result.
    state = draw.weights(t5.T5Layer(D, H, DH, F, decoder=decoder, gated=gated), scale=0.4)
    return Case({"x": draw.normal(3, 4, D) + 0.5}, init=init, state=state)


def encoder(draw: Draw) -> Case:
    """A layer of the encoder, with a bias by position."""
    return _layer(draw, decoder=False).with_arguments(bias=draw.normal(H, 4, 4))


def decoder(draw: Draw) -> Case:
    """A layer of the decoder, with a bias by position."""
    case = _layer(draw, decoder=True)
    return case.with_arguments(memory=2 * draw.normal(3, 7, D) + 0.5, bias=draw.normal(H, 4, 4))


def as_long(draw: Draw) -> Case:
    """A source as long as the target: a bias in the wrong attention goes unseen by the shapes."""
    return decoder(draw).with_arguments(memory=2 * draw.normal(3, 4, D) + 0.5)


def padded_encoder(draw: Draw) -> Case:
    """Padding in the encoder."""
    return encoder(draw).with_arguments(mask=draw.mask(3, 4)[:, None])


def padded_decoder(draw: Draw) -> Case:
    """Padding in the source, for the decoder."""
    return decoder(draw).with_arguments(mask=draw.mask(3, 7)[:, None])


def gated(draw: Draw) -> Case:
    """The feed-forward network of version 1.1."""
    return _layer(draw, decoder=False, gated=True)


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of what the sublayers say."""
    return drop_everything(encoder(draw))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(encoder(draw))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(encoder(draw))


def decoder_all_dropped(draw: Draw) -> Case:
    """Nothing is left of what the sublayers of the decoder say."""
    return drop_everything(decoder(draw))


def decoder_hardly_dropped(draw: Draw) -> Case:
    """A divisor for each sublayer of the decoder."""
    return hardly_drop(decoder(draw))


def without_dropout(draw: Draw) -> Case:
    """Training mode, in which dropout is 0 by default."""
    return replace(decoder(draw), training=True)


def equal_sizes(draw: Draw) -> Case:
    """One head, and as many examples as positions and columns."""
    init: dict[str, int | bool] = {"d_model": 3, "n_heads": 1, "d_head": 3, "d_ff": 3, "decoder": True}
    state = draw.weights(t5.T5Layer(3, 1, 3, 3, decoder=True), scale=0.4)
    return Case({"x": draw.normal(3, 3, 3), "memory": draw.normal(3, 3, 3)}, init=init, state=state)


T5_LAYER = Exercise(
    reference=t5.T5Layer,
    rows=(
        rows.numbers(
            3,
            decoder,
            as_long,
            encoder,
            gradients=False,
            title="A layer of either stack is right: pre-norm, causal in the decoder, the bias in self-attention alone.",
        ),
        rows.numbers(
            1.75, padded_encoder, padded_decoder, name="mask", gradients=False, title="Nobody attends to padding."
        ),
        rows.numbers(
            1.25,
            gated,
            all_dropped,
            not_training,
            hardly_dropped,
            decoder_all_dropped,
            decoder_hardly_dropped,
            without_dropout,
            name="options",
            gradients=False,
            title="The feed-forward network may be gated; dropout falls on what the sublayers say, in training alone.",
        ),
        rows.numbers(
            0.5,
            decoder,
            equal_sizes,
            name="gradients",
            title="Gradients reach both sequences, the bias and all weights; all sizes may be equal.",
        ),
        kept_on_any_device(0.5, decoder, padded_encoder),
    ),
    forbidden=ATTENTION,
    rule_case=(encoder, decoder),
)
