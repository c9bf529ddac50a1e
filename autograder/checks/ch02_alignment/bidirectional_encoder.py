"""The check of ``BidirectionalEncoder``: an annotation for every place, of what stands before it and behind it."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch02_alignment.source_masks import prefix_mask
from tfcourse import alignment

V, E = 9, 5


def _encoder(draw: Draw, d: int) -> Case:
    b, s = draw.sizes(2, low=3)
    init = {"vocab_size": V, "d_embedding": E, "d_model": d}
    return Case(
        {"source": draw.integers(1, V, b, s + 1)},
        init=init,
        state=draw.weights(alignment.BidirectionalEncoder(V, E, d)),
    )


def _masked(draw: Draw, case: Case) -> Case:
    return case.with_arguments(source_mask=prefix_mask(draw, *case.arguments["source"].shape))


def whole(draw: Draw) -> Case:
    """No mask: all tokens are real."""
    return _encoder(draw, 6)


def narrow(draw: Draw) -> Case:
    """Annotations of another width."""
    return _encoder(draw, 4)


def padded(draw: Draw) -> Case:
    """Sources of several lengths, with any tokens in their padding."""
    return _masked(draw, _encoder(draw, 6))


def one_source(draw: Draw) -> Case:
    """A batch of one, as long as it is wide."""
    return narrow(draw).with_arguments(source=draw.integers(1, V, 1, 4))


def odd_width(draw: Draw) -> Case:
    """A width that two directions cannot share."""
    return replace(whole(draw), init={"vocab_size": V, "d_embedding": E, "d_model": 5}, state=None)


def number_mask(draw: Draw) -> Case:
    """A mask of zeros and ones that are not truth values."""
    case = padded(draw)
    return case.with_arguments(source_mask=case.arguments["source_mask"].to(torch.int64))


BIDIRECTIONAL_ENCODER = Exercise(
    reference=alignment.BidirectionalEncoder,
    rows=(
        rows.numbers(4, whole, gradients=False, title="Each annotation has its forward half and its backward half."),
        rows.numbers(
            2.5,
            padded,
            name="padded",
            gradients=False,
            title="The backward reading begins at the last real token of each source; padding gets zeros.",
        ),
        rows.numbers(
            0.75,
            narrow,
            one_source,
            name="gradients",
            title="Gradients reach every weight, and another width and a single source work.",
        ),
        rows.precision(0.5, whole),
        rows.device(0.5, padded),
        rows.errors(
            0.75,
            padded,
            odd_width,
            number_mask,
            title="An odd width, or a mask that is not boolean, is a ValueError.",
        ),
    ),
)
