"""The check of ``SpanHead``: where an answer begins and where it ends."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch08_bert.bert_cases import B, D, T
from tfcourse import bert


def whole_texts(draw: Draw) -> Case:
    """An answer may lie anywhere."""
    state = draw.weights(bert.SpanHead(D))
    return Case({"hidden": 2 * draw.normal(B, T, D)}, init={"d_model": D}, state=state)


def in_the_passage(draw: Draw) -> Case:
    """An answer lies in the passage, not in the question or in padding."""
    return whole_texts(draw).with_arguments(mask=draw.mask(B, T))


def equal_sizes(draw: Draw) -> Case:
    """As many texts as tokens and as numbers in a vector: a wrong axis has the right length."""
    return Case({"hidden": draw.normal(3, 3, 3)}, init={"d_model": 3}, state=draw.weights(bert.SpanHead(3)))


def one_text(draw: Draw) -> Case:
    """A batch of one text of two tokens."""
    return whole_texts(draw).with_arguments(hidden=draw.normal(1, 2, D))


SPAN_HEAD = Exercise(
    reference=bert.SpanHead,
    rows=(
        rows.numbers(
            2,
            whole_texts,
            title="Each token's scores as the first and as the last one are right.",
            gradients=False,
        ),
        rows.numbers(
            1.25,
            in_the_passage,
            name="mask",
            gradients=False,
            title="Where no answer may lie both scores are minus infinity.",
        ),
        rows.numbers(
            0.25,
            whole_texts,
            equal_sizes,
            one_text,
            name="gradients",
            title="Gradients, equal sizes and a single text are right.",
        ),
        rows.device(0.25, in_the_passage),
        rows.inputs_kept(0.25, in_the_passage),
    ),
)
