"""The check of ``CoAttentionLayer``: two streams that read each other."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.layer_cases import drop_everything, drop_nothing, hardly_drop
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch12_rotary.manners import kept_on_any_device
from tfcourse import beyond

D, H, F = 4, 2, 5


def streams(draw: Draw) -> Case:
    """Five words and seven regions."""
    arguments = {"text": draw.normal(2, 5, D) + 0.5, "image": 2 * draw.normal(2, 7, D) - 0.5}
    state = draw.weights(beyond.CoAttentionLayer(D, H, F))
    return Case(arguments, init={"d_model": D, "n_heads": H, "d_ff": F}, state=state)


def padded(draw: Draw) -> Case:
    """Padding in both, in training mode: dropout is 0 by default."""
    case = streams(draw).with_arguments(text_mask=draw.mask(2, 5)[:, None], image_mask=draw.mask(2, 7)[:, None])
    return replace(case, training=True)


def all_dropped(draw: Draw) -> Case:
    """Nothing is left of what the sublayers say."""
    return drop_everything(streams(draw))


def not_training(draw: Draw) -> Case:
    """A dropout that must not be used."""
    return drop_nothing(streams(draw))


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisor alone."""
    return hardly_drop(streams(draw))


def more(draw: Draw, size: int) -> Case:
    """More examples, words and regions."""
    case = streams(draw)
    return replace(case, arguments={"text": draw.normal(size, size + 1, D), "image": draw.normal(size, size + 2, D)})


def equal_sizes(draw: Draw) -> Case:
    """One example, one head, and as many words as regions and columns."""
    state = draw.weights(beyond.CoAttentionLayer(4, 1, 4))
    arguments = {"text": draw.normal(1, 4, 4), "image": draw.normal(1, 4, 4)}
    return Case(arguments, init={"d_model": 4, "n_heads": 1, "d_ff": 4}, state=state)


CO_ATTENTION_LAYER = Exercise(
    reference=beyond.CoAttentionLayer,
    rows=(
        rows.numbers(3.25, streams, gradients=False, title="Each stream reads the other's input."),
        rows.numbers(2, padded, name="mask", gradients=False, title="Nobody reads padding, of text or of images."),
        rows.numbers(
            1.25,
            all_dropped,
            not_training,
            hardly_dropped,
            name="dropout",
            gradients=False,
            title="In training, and only then, dropout falls on what the sublayers say.",
        ),
        rows.numbers(
            0.5,
            streams,
            equal_sizes,
            name="gradients",
            title="Gradients reach both inputs and all weights; all sizes may be equal, and there may be one example.",
        ),
        kept_on_any_device(0.5, streams, padded),
        rows.no_loop(0.5, more, over="examples, words or regions"),
    ),
    forbidden=ATTENTION,
    rule_case=(streams, padded),
)
