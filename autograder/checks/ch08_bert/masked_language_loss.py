"""The check of ``masked_language_loss``: the mean surprisal at the labelled positions."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.training_targets import READY_LOSSES
from autograder.checks.combined_rows import also_asking
from tfcourse import bert

IGNORED = -100


def some_places(draw: Draw) -> Case:
    """Few places count, of other numbers in each row; in one row none."""
    b, t, v = 4, 6, 5 + int(draw.integers(0, 3))
    labels = draw.integers(1, v, b, t)
    numbers = draw.permutation(4)
    for row in range(b):
        labels[row, draw.permutation(t)[int(numbers[row]) :]] = IGNORED
    return Case({"logits": 2 * draw.normal(b, t, v), "labels": labels})


def one_axis(draw: Draw) -> Case:
    """The chosen places alone, in a row."""
    n, v = draw.sizes(2, low=5)
    labels = draw.integers(1, v, n)
    labels[int(draw.integers(1, n))] = IGNORED
    return Case({"logits": draw.normal(n, v), "labels": labels})


def one_place(draw: Draw) -> Case:
    """A single place counts, of all rows together."""
    case = some_places(draw)
    labels = torch.full_like(case.arguments["labels"], IGNORED)
    labels[int(draw.integers(0, 4)), int(draw.integers(0, 6))] = int(draw.integers(1, 5))
    return case.with_arguments(labels=labels)


def token_zero(draw: Draw) -> Case:
    """Token 0 is also a label."""
    case = some_places(draw)
    labels = case.arguments["labels"]
    return case.with_arguments(labels=torch.where(labels == labels.max(), 0, labels))


def nothing_asked(draw: Draw) -> Case:
    """No place counts."""
    case = some_places(draw)
    return case.with_arguments(labels=torch.full_like(case.arguments["labels"], IGNORED))


def large_logits(draw: Draw) -> Case:
    """Logits whose exponentials overflow."""
    case = some_places(draw)
    return case.with_arguments(logits=100 * case.arguments["logits"])


def more(draw: Draw, size: int) -> Case:
    """More and longer texts."""
    labels = draw.integers(1, 5, size, 3 * size)
    labels[:, ::2] = IGNORED
    return Case({"logits": draw.normal(size, 3 * size, 5), "labels": labels})


def any_labels(draw: Draw) -> Case:
    """Sizes that are all equal, or differ, or are 1, and places that count or do not; the token 0 is not asked for."""
    b, t, v = (
        (3, 3, 3) if int(draw.integers(0, 4)) == 0 else (draw.integers(1, 5, 3) + torch.tensor([0, 0, 1])).tolist()
    )
    labels = draw.integers(1, v, b, t).masked_fill(draw.integers(0, 2, b, t) == 0, IGNORED)
    return Case({"logits": 2 * draw.normal(b, t, v), "labels": labels})


MASKED_LANGUAGE_LOSS = Exercise(
    reference=bert.masked_language_loss,
    rows=(
        rows.numbers(
            2.75,
            some_places,
            some_places,
            gradients=False,
            title="The mean of -log p over the positions that count, of all rows together.",
        ),
        rows.numbers(1, token_zero, name="token 0", gradients=False, title="Token 0 counts like any other."),
        also_asking(
            rows.edge(
                0.75,
                nothing_asked,
                large_logits,
                some_places,
                one_axis,
                one_place,
                name="edges",
                title="A batch without labels has loss and gradients of 0; large logits, one axis, many sizes and gradients are right.",
            ),
            rows.many(0, any_labels, count=32, title=""),
        ),
        rows.inputs_kept(0.5, some_places),
        rows.no_loop(0.5, more, over="texts or positions"),
        rows.device(0.5, some_places),
    ),
    forbidden=READY_LOSSES,
    rule_case=(some_places, nothing_asked),
)
