"""The check of ``slanted_triangular_rate``: quickly up, slowly down."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.combined_rows import also_asking
from tfcourse import gpt


def _case(draw: Draw, *, whole: bool = True) -> Case:
    """A number of steps of which a tenth and a quarter are integers, or are not."""
    total = 20 * (2 + int(draw.integers(0, 4))) + (0 if whole else 3 + int(draw.integers(0, 6)))
    return Case({"step": 0, "total": total})


def _at(case: Case, step: int) -> Case:
    return case.with_arguments(step=step)


def beginning(draw: Draw) -> Case:
    """The first step."""
    return _case(draw)


def rising(draw: Draw) -> Case:
    """On the way up."""
    return _at(_case(draw), 1 + int(draw.integers(0, 3)))


def falling(draw: Draw) -> Case:
    """On the way down."""
    case = _case(draw)
    return _at(case, case.arguments["total"] // 2 + int(draw.integers(0, 5)))


def end(draw: Draw) -> Case:
    """The last step."""
    case = _case(draw)
    return _at(case, case.arguments["total"])


def falling_unevenly(draw: Draw) -> Case:
    """On the way down, where the peak is not at a tenth."""
    case = _case(draw, whole=False)
    return _at(case, case.arguments["total"] // 2)


def end_unevenly(draw: Draw) -> Case:
    """The end of the same."""
    case = _case(draw, whole=False)
    return _at(case, case.arguments["total"])


def another_triangle(draw: Draw) -> Case:
    """Another peak, another place for it, other ends."""
    return rising(draw).with_arguments(peak=0.3, cut=0.25, ratio=8.0)


def another_way_down(draw: Draw) -> Case:
    """The same, on the way down."""
    return falling(draw).with_arguments(peak=0.3, cut=0.25, ratio=8.0)


def no_way_up(draw: Draw) -> Case:
    """It begins at the peak."""
    return rising(draw).with_arguments(cut=0.0)


def no_way_up_at_the_beginning(draw: Draw) -> Case:
    """The first step of the same: it is the peak."""
    return beginning(draw).with_arguments(cut=0.0)


def a_single_step(draw: Draw) -> Case:
    """As short as it may be."""
    return beginning(draw).with_arguments(total=1)


def before_the_beginning(draw: Draw) -> Case:
    """A step before the first one, and nothing else is wrong."""
    return beginning(draw).with_arguments(step=-1)


def no_way_down(draw: Draw) -> Case:
    """A rise that takes all steps."""
    return beginning(draw).with_arguments(cut=1.0)


def less_than_no_way_up(draw: Draw) -> Case:
    """A share of the steps that is negative."""
    return beginning(draw).with_arguments(cut=-0.1)


def behind_the_end(draw: Draw) -> Case:
    """A step behind the last one."""
    case = _case(draw)
    return _at(case, case.arguments["total"] + 1)


def any_step(draw: Draw) -> Case:
    """Any step of a schedule whose peak is at a whole step; the borders are as likely as all others together."""
    cut = 1 + int(draw.integers(0, 6))
    steps = (0, 1, cut - 1, cut, cut + 1, 10 * cut, *draw.integers(0, 10 * cut + 1, 6).tolist())
    return Case({"step": steps[int(draw.integers(0, 12))], "total": 10 * cut})


SLANTED_TRIANGULAR_RATE = Exercise(
    reference=gpt.slanted_triangular_rate,
    rows=(
        rows.numbers(
            2.25,
            rising,
            falling,
            gradients=False,
            title="It rises linearly to the peak and falls linearly.",
        ),
        rows.numbers(
            1.25,
            falling_unevenly,
            end_unevenly,
            name="whole steps",
            gradients=False,
            title="It ends at peak / ratio also where total · cut is no whole number.",
        ),
        rows.numbers(
            1,
            another_triangle,
            another_way_down,
            name="options",
            gradients=False,
            title="Peak, its position and the ends may be others.",
        ),
        also_asking(
            rows.numbers(
                0.25,
                beginning,
                end,
                no_way_up,
                no_way_up_at_the_beginning,
                name="borders",
                gradients=False,
                title="It starts and ends at peak / ratio, many random schedules are right, and a `cut` of 0 works.",
            ),
            rows.many(0, any_step, title=""),
        ),
        rows.errors(
            0.25,
            a_single_step,
            behind_the_end,
            before_the_beginning,
            no_way_down,
            less_than_no_way_up,
            title="A step or a share outside its range is a ValueError.",
        ),
    ),
)
