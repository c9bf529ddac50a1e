"""The check of ``DecoderLayer``: causal self-attention, attention to the memory, and a feed-forward network."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Row
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


def decoder(draw: Draw) -> Case:
    """A layer with random weights, target sequences, and a memory of another length, without padding."""
    b, t, s = lengths(draw)
    state = draw.weights(layers.DecoderLayer(D, H, F))
    arguments = {"x": 2 * draw.normal(b, t, D), "memory": 2 * draw.normal(b, s, D)}
    return Case(arguments, init={"d_model": D, "n_heads": H, "d_ff": F}, state=state)


def single_size(draw: Draw) -> Case:
    """One example and one head, a memory as long as the target, and as wide: the shapes do not show which is which."""
    state = draw.weights(layers.DecoderLayer(4, 1, 4))
    arguments = {"x": 2 * draw.normal(1, 4, 4), "memory": 2 * draw.normal(1, 4, 4)}
    return Case(arguments, init={"d_model": 4, "n_heads": 1, "d_ff": 4}, state=state)


def padded(draw: Draw) -> Case:
    """Padding in the memory."""
    case = decoder(draw)
    b, s, _ = case.arguments["memory"].shape
    return case.with_arguments(memory_mask=draw.mask(b, s)[:, None])


def pre_norm(draw: Draw) -> Case:
    """Pre-norm."""
    return with_options(decoder(draw), pre_norm=True)


def with_gelu(draw: Draw) -> Case:
    """With GELU."""
    return with_options(decoder(draw), activation="gelu")


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of what the sublayers say."""
    return drop_everything(decoder(draw))


def all_dropped_pre_norm(draw: Draw) -> Case:
    """The same with pre-norm."""
    return drop_everything(pre_norm(draw))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(decoder(draw))


def without_dropout(draw: Draw) -> Case:
    """Training mode, in which dropout is 0 by default."""
    return replace(decoder(draw), training=True)


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(decoder(draw))


def and_none_by_default(row: Row) -> Row:
    """Return a row that asks as well for a layer whose dropout is not given; without gradients, which would make the recording large."""

    def probes(draw: Draw) -> list[rows.Probe]:
        return [*row.probes(draw), rows.Probe((draw.case(without_dropout).request(),), "matches")]

    return replace(row, probes=probes)


DECODER_LAYER = Exercise(
    reference=layers.DecoderLayer,
    rows=(
        rows.numbers(
            4.75,
            decoder,
            name="post-norm",
            gradients=False,
            title="Post-norm: look back, read the source, work on both; later positions change no earlier one.",
        ),
        rows.numbers(
            2,
            pre_norm,
            name="pre-norm",
            gradients=False,
            title="Pre-norm: each sublayer's input is normalised.",
        ),
        rows.numbers(2, padded, name="mask", gradients=False, title="Nobody reads padding in the memory."),
        and_none_by_default(
            rows.numbers(
                1,
                all_dropped,
                all_dropped_pre_norm,
                not_training,
                hardly_dropped,
                name="dropout",
                gradients=False,
                title="In training, and only then, dropout falls on what the three sublayers say.",
            )
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
            decoder,
            single_size,
            name="gradients",
            title="Gradients reach every weight, and one example with one head and a memory as long as the target works.",
        ),
        inputs_and_device(0.75, decoder, padded),
    ),
    forbidden=ATTENTION,
    rule_case=(decoder, padded),
)
