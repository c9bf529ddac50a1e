"""The check of ``linear_warmup_rate``: a linear increase, and a linear decrease."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.combined_rows import also_asking
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


def any_step(draw: Draw) -> Case:
    """Any step before the end; the first, the peak and its neighbours and the last are as likely as all others together."""
    warmup = 1 + int(draw.integers(0, (2, 12)[int(draw.integers(0, 2))]))
    total = warmup + 1 + int(draw.integers(0, (2, 30)[int(draw.integers(0, 2))]))
    steps = (0, 1, warmup - 1, warmup, warmup + 1, total - 1, *draw.integers(0, total, 6).tolist())
    step = min(steps[int(draw.integers(0, 12))], total - 1)
    return Case({"step": step, "peak": 0.05 * int(draw.integers(1, 40)), "warmup": warmup, "total": total})


def any_end(draw: Draw) -> Case:
    """The end and beyond, without a warm-up or with nothing else."""
    total = 1 + int(draw.integers(0, 9))
    warmup = (0, 0, total // 2, total)[int(draw.integers(0, 4))]
    step = total + int(draw.integers(0, 3)) if warmup else int(draw.integers(0, total + 3))
    return Case({"step": step, "peak": 0.05 * int(draw.integers(1, 40)), "warmup": warmup, "total": total})


LINEAR_WARMUP_RATE = Exercise(
    reference=bert.linear_warmup_rate,
    rows=(
        rows.numbers(
            1.75,
            rising,
            falling,
            gradients=False,
            title="It rises linearly from 0 and falls linearly to 0.",
        ),
        rows.numbers(
            1,
            beginning,
            peak,
            last,
            falling_at_once,
            name="peak",
            gradients=False,
            title="It starts at 0, reaches the peak at step `warmup`, and reaches 0 at step `total`.",
        ),
        rows.many(0.75, any_step, title="Any step of many random schedules is right."),
        also_asking(
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
            rows.many(0, any_end, count=24, title=""),
        ),
    ),
)
