"""The check of ``DecoderLayer``: causal self-attention, attention to the memory, and a feed-forward network."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checking.rows import Row
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


def equally_long(draw: Draw) -> Case:
    """A memory as long as the target: the shapes do not show which of the two is meant."""
    case = decoder(draw)
    return case.with_arguments(memory=2 * draw.normal(*case.arguments["x"].shape))


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
            2,
            decoder,
            equally_long,
            name="post-norm",
            title="Post-norm: look back, read the source, work on both; later positions change no earlier one.",
        ),
        rows.numbers(2.5, pre_norm, name="pre-norm", title="Pre-norm: each sublayer's input is normalised."),
        rows.numbers(2.5, padded, name="mask", title="Nobody reads padding in the memory."),
        and_none_by_default(
            rows.numbers(
                1.5,
                all_dropped,
                all_dropped_pre_norm,
                not_training,
                hardly_dropped,
                name="dropout",
                title="In training, and only then, dropout falls on what the three sublayers say.",
            )
        ),
        rows.numbers(1.5, with_gelu, name="activation", title="The feed-forward network gets the activation."),
        rows.inputs_kept(1, decoder, padded),
        rows.device(1, decoder),
    ),
    forbidden=ATTENTION,
    rule_case=(decoder, padded),
)
