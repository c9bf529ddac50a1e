"""The check of ``shift_right``: what the decoder is shown while it is trained."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.training_targets import padded_targets
from tfcourse import training


def sentences(draw: Draw) -> Case:
    """Sentences with EOS and padding."""
    b, t = draw.sizes(2, low=3)
    return Case({"targets": padded_targets(draw, b, t, 9)})


def single_tokens(draw: Draw) -> Case:
    """Sentences of one token."""
    return Case({"targets": draw.integers(3, 9, 3, 1)})


def another_beginning(draw: Draw) -> Case:
    """BOS has another number."""
    return sentences(draw).with_arguments(bos=7)


def narrow_integers(draw: Draw) -> Case:
    """Tokens as 32-bit integers."""
    case = sentences(draw)
    return case.with_arguments(targets=case.arguments["targets"].to(torch.int32))


def more_sentences(draw: Draw, size: int) -> Case:
    """More sentences, of more tokens."""
    return Case({"targets": draw.integers(3, 9, size, 2 * size)})


def one_sentence(draw: Draw) -> Case:
    """A sentence without an axis for the batch."""
    case = sentences(draw)
    return case.with_arguments(targets=case.arguments["targets"][0])


def groups(draw: Draw) -> Case:
    """Groups of sentences."""
    return Case({"targets": draw.integers(3, 9, 2, 3, 4)})


SHIFT_RIGHT = Exercise(
    reference=training.shift_right,
    rows=(
        rows.numbers(2, sentences, gradients=False, title="BOS comes first, then every token but the last."),
        rows.numbers(1.25, another_beginning, name="bos", gradients=False, title="BOS may have another number."),
        rows.edge(
            0.25,
            narrow_integers,
            single_tokens,
            name="edges",
            gradients=False,
            title="32-bit tokens stay 32-bit tokens, and sentences of one token become BOS.",
            dtypes=(),
        ),
        rows.inputs_kept(0.25, sentences),
        rows.device(0.25, sentences),
        rows.no_loop(0.25, more_sentences, over="sentences or positions"),
        rows.errors(0.25, sentences, one_sentence, groups, title="Anything but two axes is a ValueError."),
    ),
)
