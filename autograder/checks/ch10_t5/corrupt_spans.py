"""The check of ``corrupt_spans``: a sentinel for each span, and the spans behind their sentinels."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch10_t5.spans import DESCENDING, SENTINELS, noise, runs, text
from autograder.checks.variants import changed
from tfcourse import t5


def _case(draw: Draw, lengths: list[int], sentinels: tuple[int, ...] = SENTINELS) -> Case:
    return Case({"tokens": text(draw, sum(lengths)), "noise": noise(lengths), "sentinels": list(sentinels)})


def three_spans(draw: Draw) -> Case:
    """Three spans, one of them a single token."""
    return _case(draw, runs(draw))


def descending(draw: Draw) -> Case:
    """Sentinels that count downwards, as T5's do."""
    return _case(draw, runs(draw), DESCENDING)


def at_both_ends(draw: Draw) -> Case:
    """A span at the very beginning and one at the very end."""
    first, second, third = (1 + index for index in draw.order(3))
    between = draw.integers(1, 5, 2).tolist()
    return _case(draw, [0, first, between[0], second, between[1], third])


def ends_with_kept(draw: Draw) -> Case:
    """A kept token at the end."""
    return _case(draw, [1 + index for index in draw.order(5)])


def nothing_hidden(draw: Draw) -> Case:
    """No span."""
    return _case(draw, [5])


def everything_hidden(draw: Draw) -> Case:
    """One span, all of the text."""
    return _case(draw, [0, 5])


def repeated(draw: Draw) -> Case:
    """Two tokens that come again and again, in integers of 32 bits: a hidden one may equal its neighbours, kept and hidden."""
    case = three_spans(draw)
    tokens = 10 + draw.integers(0, 2, len(case.arguments["tokens"]))
    return case.with_arguments(tokens=tokens.to(torch.int32))


def too_few(draw: Draw) -> Case:
    """Sentinels for the spans, and none for the end."""
    return three_spans(draw).with_arguments(sentinels=list(SENTINELS[:3]))


def any_spans(draw: Draw) -> Case:
    """Up to seven runs of few different tokens; sentinels in any order."""
    lengths = draw.integers(1, 4, int(draw.integers(1, 8))).tolist()
    sentinels = [90 + index for index in draw.order(9)][: len(lengths) // 2 + 1 + int(draw.integers(0, 3))]
    tokens = 10 + draw.integers(0, 4, sum(lengths))
    return Case({"tokens": tokens, "noise": noise(lengths), "sentinels": sentinels})


CORRUPT_SPANS = Exercise(
    reference=t5.corrupt_spans,
    rows=(
        rows.numbers(
            2.75,
            three_spans,
            descending,
            gradients=False,
            title="The source has a sentinel for each span; the target has the spans behind theirs, and a last sentinel.",
        ),
        rows.numbers(
            1.25,
            at_both_ends,
            ends_with_kept,
            name="ends",
            gradients=False,
            title="A span may begin or end the text, or do neither.",
        ),
        rows.edge(
            0.5,
            nothing_hidden,
            everything_hidden,
            repeated,
            changed(three_spans, sentinels=list(SENTINELS[:4])),
            changed(nothing_hidden, sentinels=list(SENTINELS[:1])),
            name="extremes",
            gradients=False,
            dtypes=(),
            title="Nothing may be hidden, and everything; tokens may repeat; one sentinel more than there are spans is enough.",
        ),
        rows.many(
            0.5, any_spans, count=40, title="Many short texts with spans anywhere are corrupted as they should be."
        ),
        rows.inputs_kept(0.5, three_spans),
        rows.errors(
            0.5,
            three_spans,
            too_few,
            changed(three_spans, sentinels=list(SENTINELS[:2])),
            changed(nothing_hidden, sentinels=[]),
            title="Too few sentinels are a ValueError.",
        ),
    ),
)
