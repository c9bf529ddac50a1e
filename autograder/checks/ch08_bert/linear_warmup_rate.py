"""The check of ``linear_warmup_rate``: up in a straight line, and down in another one."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import bert


def _case(draw: Draw, where: str) -> Case:
    warmup = 4 + int(draw.integers(0, 5))
    total = 3 * warmup + 2
    steps = {
        "rise": 1 + int(draw.integers(0, warmup - 2)),
        "beginning": 0,
        "peak": warmup,
        "fall": warmup + 1 + int(draw.integers(0, warmup)),
        "last": total - 1,
        "end": total,
        "beyond": total + 3,
    }
    return Case({"step": steps[where], "peak": 0.01 * draw.unseen(20, 90), "warmup": warmup, "total": total})


def rising(draw: Draw) -> Case:
    """On the way up."""
    return _case(draw, "rise")


def beginning(draw: Draw) -> Case:
    """The first step, 0."""
    return _case(draw, "beginning")


def peak(draw: Draw) -> Case:
    """At the peak."""
    return _case(draw, "peak")


def falling(draw: Draw) -> Case:
    """On the way down."""
    return _case(draw, "fall")


def last(draw: Draw) -> Case:
    """One step before the end."""
    return _case(draw, "last")


def end(draw: Draw) -> Case:
    """The end."""
    return _case(draw, "end")


def beyond(draw: Draw) -> Case:
    """Behind the end."""
    return _case(draw, "beyond")


def falling_at_once(draw: Draw) -> Case:
    """The peak is one step before the end."""
    case = peak(draw)
    return case.with_arguments(total=case.arguments["warmup"] + 1)


def no_warmup(draw: Draw) -> Case:
    """No warm-up: the rate begins at its peak."""
    return beginning(draw).with_arguments(warmup=0)


def always_warming(draw: Draw) -> Case:
    """A warm-up as long as the training, at its end."""
    case = end(draw)
    return case.with_arguments(warmup=case.arguments["total"])


LINEAR_WARMUP_RATE = Exercise(
    reference=bert.linear_warmup_rate,
    rows=(
        rows.numbers(1, rising, beginning, name="rise", gradients=False, title="It rises from 0 in a straight line."),
        rows.numbers(
            1.5, falling, last, name="fall", gradients=False, title="It falls to 0 at `total` in a straight line."
        ),
        rows.numbers(
            1, peak, falling_at_once, name="peak", gradients=False, title="The peak is reached at step `warmup`."
        ),
        rows.edge(
            0.5,
            end,
            beyond,
            no_warmup,
            always_warming,
            name="ends",
            gradients=False,
            title="At `total` and behind it the rate is 0; there may be no warm-up, or nothing else.",
        ),
    ),
)
