"""The check of ``restore_spans``: the spans back in their places."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch10_t5.spans import SENTINELS, noise, runs, text
from tfcourse import t5


def in_order(draw: Draw) -> Case:
    """What `corrupt_spans` has made."""
    lengths = runs(draw)
    source, target = t5.corrupt_spans(text(draw, sum(lengths)), noise(lengths), SENTINELS)
    return Case({"source": source, "target": target, "sentinels": list(SENTINELS)})


def _written(source: list[int], target: list[int]) -> Case:
    return Case({"source": torch.tensor(source), "target": torch.tensor(target), "sentinels": list(SENTINELS)})


def in_another_order(draw: Draw) -> Case:
    """A model has written the spans in another order."""
    a, b, c, d, e, f = text(draw, 6).tolist()
    return _written([a, 90, b, 91, c], [91, d, 90, e, f, 92])


def one_missing(draw: Draw) -> Case:
    """A model has left out a span."""
    a, b, c, d = text(draw, 4).tolist()
    return _written([90, a, 91, b, 92], [90, c, 92, d, 93])


def more_than_asked(draw: Draw) -> Case:
    """A model has begun without a sentinel, and has written a span that nobody asked for."""
    a, b, c, d, e = text(draw, 5).tolist()
    return _written([a, 90, b], [c, 90, d, 91, e])


RESTORE_SPANS = Exercise(
    reference=t5.restore_spans,
    rows=(
        rows.numbers(2.25, in_order, in_order, gradients=False, title="What was corrupted is whole again."),
        rows.numbers(1, in_another_order, name="order", gradients=False, title="The spans may come in any order."),
        rows.edge(
            0.5,
            one_missing,
            more_than_asked,
            name="missing",
            gradients=False,
            dtypes=(),
            title="A span may be missing, and there may be more than was asked for.",
        ),
        rows.inputs_kept(0.25, in_order),
    ),
)
