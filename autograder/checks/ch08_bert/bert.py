"""The check of ``Bert``: embeddings, layers that look both ways, and a pooled state."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from autograder.checks.ch08_bert.bert_cases import (
    MODEL,
    all_dropped,
    encoder,
    hardly_dropped,
    longer,
    nobody_looks_at_padding,
    padding,
    three_texts,
    two_texts,
    with_zeros,
)
from autograder.checks.combined_rows import joined
from tfcourse import bert


def whole_texts(draw: Draw) -> Case:
    """One text in each row."""
    return encoder(draw, bert.Bert, MODEL)


def pairs(draw: Draw) -> Case:
    """Two texts in each row."""
    return whole_texts(draw).with_arguments(segments=two_texts(draw))


def padded(draw: Draw) -> Case:
    """Texts of several lengths."""
    return whole_texts(draw).with_arguments(mask=padding(draw))


def of_three_texts(draw: Draw) -> Case:
    """Three texts in each row."""
    return three_texts(draw, bert.Bert, MODEL)


def zeros_among_real(draw: Draw) -> Case:
    """Texts of several lengths, in which the token 0 is real."""
    return with_zeros(draw, padded(draw))


def zeros_without_mask(draw: Draw) -> Case:
    """Whole texts with the token 0: without a mask all tokens are real."""
    return with_zeros(draw, whole_texts(draw))


def everything_dropped(draw: Draw) -> Case:
    """Nothing is left of the embeddings, and of what the sublayers say."""
    return all_dropped(whole_texts(draw))


def hardly_anything_dropped(draw: Draw) -> Case:
    """A dropout that shows by its divisors alone."""
    return hardly_dropped(whole_texts(draw))


def too_long(draw: Draw) -> Case:
    """A text that is longer than the table of positions."""
    return longer(draw, whole_texts(draw))


BERT = Exercise(
    reference=bert.Bert,
    rows=(
        rows.part(
            4.75,
            whole_texts,
            output="output[0]",
            name="hidden",
            title="The hidden states are right: every token looks at the whole text.",
        ),
        rows.part(
            1.75, pairs, of_three_texts, output="output[0]", name="segments", title="Segments reach the embeddings."
        ),
        nobody_looks_at_padding(2.75, padded, zeros_among_real, zeros_without_mask),
        rows.part(0.25, whole_texts, output="output[1]", name="pooled", title="The pooled states are right."),
        rows.part(
            1.75,
            everything_dropped,
            hardly_anything_dropped,
            output="output[0]",
            name="dropout",
            title="In training dropout falls on the embeddings and in every layer.",
        ),
        joined(
            "manner",
            "It runs on the device of its inputs, and a text that is too long raises a ValueError.",
            0.75,
            rows.device(1, whole_texts),
            rows.errors(1, whole_texts, too_long, title=""),
        ),
    ),
    forbidden=ATTENTION,
    rule_case=(whole_texts, padded),
)
