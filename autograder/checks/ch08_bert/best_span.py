"""The check of ``best_span``: the best pair of a first and a last token."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch08_bert.bert_cases import no_loop_on_any_device
from autograder.checks.combined_rows import also_asking
from tfcourse import bert


def turned_round(draw: Draw) -> Case:
    """In each row the best end stands before the best beginning, and a product of scores finds another pair."""
    b, t = 3, 7
    arguments = {"max_length": t}
    while True:
        start, end = 2 * draw.normal(b, t), 2 * draw.normal(b, t)
        first, last = bert.best_span(start, end, **arguments)
        behind = torch.ones(t, t, dtype=torch.bool).triu()
        products = (start[:, :, None] * end[:, None, :]).where(behind, -torch.inf).flatten(1).argmax(dim=1)
        between = last - first
        if (
            bool((end.argmax(dim=1) < start.argmax(dim=1)).all())
            and bool((products != first * t + last).any())
            and bool((first != start.argmax(dim=1)).any())
            and int(between.min()) == 0
            and 0 < int(between.max()) < t - 1
        ):
            return Case({"start": start, "end": end, **arguments})


def far_apart(draw: Draw) -> Case:
    """In each row the two best tokens are just too far apart."""
    b, t, longest = 4, 9, 2 + int(draw.integers(0, 3))
    start, end = draw.normal(b, t), draw.normal(b, t)
    for row in range(b):
        first = int(draw.integers(0, t - longest))
        start[row, first], end[row, first + longest] = 5.0, 5.0
        # The second best is as long as an answer may be, and does not begin at the best beginning.
        start[row, first + 1] = 4.5
        end[row, first : first + longest] -= 3.0
    return Case({"start": start, "end": end, "max_length": longest})


def single_tokens(draw: Draw) -> Case:
    """Answers of one token."""
    return Case({"start": draw.normal(3, 6), "end": draw.normal(3, 6), "max_length": 1})


def equals(draw: Draw) -> Case:
    """Several answers are equally good, and some tokens are excluded."""
    start = torch.tensor([[1.0, 2, 0, 2, 1], [0.0, 3, 3, 3, 0], [-torch.inf, -torch.inf, 1, 1, -torch.inf]])
    end = torch.tensor([[1.0, 0, 2, 0, 2], [0.0, 1, 1, 1, 0], [-torch.inf, -torch.inf, 0, 0, -torch.inf]])
    order = draw.permutation(3)
    # Excluded tokens before and behind, so that the places are others each time.
    around = (draw.unseen(0, 6), int(draw.integers(0, 3)))
    start, end = (nn.functional.pad(scores[order], around, value=-torch.inf) for scores in (start, end))
    return Case({"start": start, "end": end, "max_length": 5})


def equals_of_other_lengths(draw: Draw) -> Case:
    """Two answers are equally good: the first one is the longer of the two."""
    impossible = -torch.inf
    start = torch.tensor([[2.0, impossible, 0, 3]])
    end = torch.tensor([[-1.0, impossible, 1, 0]])
    around = (draw.unseen(0, 6), int(draw.integers(0, 3)))
    start, end = (nn.functional.pad(scores, around, value=-torch.inf) for scores in (start, end))
    return Case({"start": start, "end": end, "max_length": 12})


def more(draw: Draw, size: int) -> Case:
    """More and longer texts."""
    return Case({"start": draw.normal(size, 3 * size), "end": draw.normal(size, 3 * size), "max_length": 3})


def as_long_as_you_like(draw: Draw) -> Case:
    """An answer may be longer than the text."""
    return single_tokens(draw).with_arguments(max_length=7 + int(draw.integers(0, 9)))


def below_zero(draw: Draw) -> Case:
    """A negative length."""
    return single_tokens(draw).with_arguments(max_length=-1 - int(draw.integers(0, 3)))


def no_length(draw: Draw) -> Case:
    """An answer without tokens."""
    return single_tokens(draw).with_arguments(max_length=0)


def _scores(draw: Draw) -> tuple[Tensor, Tensor]:
    b, t = int(draw.integers(1, 4)), int(draw.integers(1, 8))
    return draw.normal(b, t, scale=2.0), draw.normal(b, t, scale=2.0)


def any_scores(draw: Draw) -> Case:
    """Scores of short texts, in which an answer may have any length."""
    start, end = _scores(draw)
    return Case({"start": start, "end": end, "max_length": start.shape[1]})


def any_length(draw: Draw) -> Case:
    """Scores of short texts, and a longest answer."""
    start, end = _scores(draw)
    return Case({"start": start, "end": end, "max_length": 1 + int(draw.integers(0, start.shape[1] + 1))})


def any_equals(draw: Draw) -> Case:
    """Integers, so that many answers are equally good, and excluded tokens."""
    b, t = int(draw.integers(1, 4)), int(draw.integers(2, 7))
    start, end = draw.integers(0, 3, b, t).float(), draw.integers(0, 3, b, t).float()
    excluded = (draw.integers(0, 4, b, t) == 0) & (torch.arange(t) != int(draw.integers(0, t)))
    start, end = (scores.masked_fill(excluded, -torch.inf) for scores in (start, end))
    return Case({"start": start, "end": end, "max_length": t})


BEST_SPAN = Exercise(
    reference=bert.best_span,
    rows=(
        rows.numbers(
            2.5,
            turned_round,
            gradients=False,
            title="The largest sum of two scores is found, and no answer ends before it begins.",
        ),
        rows.many(0.25, any_scores, title="It is found in many random texts, including very short ones."),
        also_asking(
            rows.numbers(
                1.25,
                far_apart,
                single_tokens,
                as_long_as_you_like,
                name="length",
                gradients=False,
                title="An answer has at most `max_length` tokens, for many values of `max_length`.",
            ),
            rows.many(0, any_length, count=48, title=""),
        ),
        also_asking(
            rows.edge(
                0.5,
                equals,
                equals_of_other_lengths,
                name="equals",
                gradients=False,
                title="Of equally good answers the one that begins first is taken, then the one that ends first.",
            ),
            rows.many(0, any_equals, count=32, title=""),
        ),
        no_loop_on_any_device(0.5, more, far_apart, over="texts or tokens"),
        rows.inputs_kept(0.5, far_apart),
        rows.errors(
            0.5,
            far_apart,
            single_tokens,
            no_length,
            below_zero,
            title="A length of less than one token is a ValueError.",
        ),
    ),
)
