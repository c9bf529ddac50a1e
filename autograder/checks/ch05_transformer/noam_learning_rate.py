"""The check of ``noam_learning_rate``: the rate rises while warming up, and falls afterwards."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.variants import changed
from tfcourse import training


def warming_up(draw: Draw) -> Case:
    """A step in the middle of warm-up."""
    warmup = 20 + int(draw.integers(0, 20))
    return Case({"step": 3 + int(draw.integers(0, 12)), "d_model": 17 + int(draw.integers(0, 8)), "warmup": warmup})


def first_step(draw: Draw) -> Case:
    """The very first step."""
    return warming_up(draw).with_arguments(step=1)


def afterwards(draw: Draw) -> Case:
    """A step behind warm-up."""
    case = warming_up(draw)
    return case.with_arguments(step=100 + case.arguments["step"])


def at_the_top(draw: Draw) -> Case:
    """The step at which the rate is largest."""
    case = warming_up(draw)
    return case.with_arguments(step=case.arguments["warmup"])


def of_the_paper(draw: Draw) -> Case:
    """The warm-up of the paper, which is the default."""
    return Case({"step": 1000 + int(draw.integers(0, 9000)), "d_model": 512})


def other_factor(draw: Draw) -> Case:
    """Another factor, while warming up."""
    return warming_up(draw).with_arguments(factor=2.5)


def other_factor_afterwards(draw: Draw) -> Case:
    """Another factor, behind warm-up."""
    return afterwards(draw).with_arguments(factor=0.3)


def step_zero(draw: Draw) -> Case:
    """A step before the first."""
    return warming_up(draw).with_arguments(step=0)


def no_warmup(draw: Draw) -> Case:
    """A warm-up of no steps."""
    return warming_up(draw).with_arguments(warmup=0)


NOAM_LEARNING_RATE = Exercise(
    reference=training.noam_learning_rate,
    rows=(
        rows.numbers(
            1.5,
            warming_up,
            afterwards,
            of_the_paper,
            gradients=False,
            title="The rate rises in a straight line, meets the falling root at the end of warm-up, and follows it.",
        ),
        rows.numbers(
            0.75,
            other_factor,
            other_factor_afterwards,
            name="factor",
            gradients=False,
            title="The factor multiplies every rate.",
        ),
        rows.edge(
            0.5,
            first_step,
            at_the_top,
            changed(warming_up, warmup=1),
            changed(warming_up, d_model=1),
            name="ends",
            gradients=False,
            dtypes=(),
            title="It holds at the first step and at the last of warm-up, and for a width and a warm-up of 1.",
        ),
        rows.errors(
            0.25,
            warming_up,
            step_zero,
            no_warmup,
            changed(warming_up, d_model=0),
            title="Steps, warm-up and width begin at 1: less is a ValueError.",
        ),
    ),
)
