"""The check of ``EncoderLayer``: self-attention and a feed-forward network, each with its residual connection."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import inputs_and_device
from autograder.checks.ch05_transformer.layer_cases import (
    D,
    F,
    H,
    drop_everything,
    drop_nothing,
    hardly_drop,
    lengths,
    with_options,
)
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from tfcourse import layers


def encoder(draw: Draw) -> Case:
    """A layer with random weights, and sequences without padding."""
    b, _, s = lengths(draw)
    state = draw.weights(layers.EncoderLayer(D, H, F))
    return Case({"x": 2 * draw.normal(b, s, D)}, init={"d_model": D, "n_heads": H, "d_ff": F}, state=state)


def single_size(draw: Draw) -> Case:
    """One example and one head, as many tokens as columns: the shapes do not show which axis is which."""
    state = draw.weights(layers.EncoderLayer(4, 1, 4))
    return Case({"x": 2 * draw.normal(1, 4, 4)}, init={"d_model": 4, "n_heads": 1, "d_ff": 4}, state=state)


def padded(draw: Draw) -> Case:
    """The same with padding."""
    case = encoder(draw)
    b, s, _ = case.arguments["x"].shape
    return case.with_arguments(mask=draw.mask(b, s)[:, None])


def padded_pre_norm(draw: Draw) -> Case:
    """Padding and pre-norm."""
    return with_options(padded(draw), pre_norm=True)


def pre_norm(draw: Draw) -> Case:
    """Pre-norm."""
    return with_options(encoder(draw), pre_norm=True)


def with_gelu(draw: Draw) -> Case:
    """With GELU."""
    return with_options(encoder(draw), activation="gelu")


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of what the sublayers say."""
    return drop_everything(encoder(draw))


def all_dropped_pre_norm(draw: Draw) -> Case:
    """The same with pre-norm."""
    return drop_everything(pre_norm(draw))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(encoder(draw))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(encoder(draw))


def without_dropout(draw: Draw) -> Case:
    """Training mode, in which dropout is 0 by default."""
    return replace(encoder(draw), training=True)


ENCODER_LAYER = Exercise(
    reference=layers.EncoderLayer,
    rows=(
        rows.numbers(
            4.75,
            encoder,
            name="post-norm",
            gradients=False,
            title="Post-norm: each sum of input and sublayer is normalised.",
        ),
        rows.numbers(
            2,
            pre_norm,
            padded_pre_norm,
            name="pre-norm",
            gradients=False,
            title="Pre-norm: each sublayer's input is normalised, with padding or without.",
        ),
        rows.numbers(2, padded, name="mask", gradients=False, title="Nobody attends to padding."),
        rows.numbers(
            1,
            all_dropped,
            all_dropped_pre_norm,
            not_training,
            hardly_dropped,
            without_dropout,
            name="dropout",
            gradients=False,
            title="In training, and only then, dropout falls on what the sublayers say.",
        ),
        rows.numbers(
            0.75,
            with_gelu,
            name="activation",
            gradients=False,
            title="The feed-forward network gets the activation.",
        ),
        rows.numbers(
            0.75,
            encoder,
            single_size,
            name="gradients",
            title="Gradients reach every weight, and one example with one head works.",
        ),
        inputs_and_device(0.75, encoder, padded),
    ),
    forbidden=ATTENTION,
    rule_case=(encoder, padded),
)
