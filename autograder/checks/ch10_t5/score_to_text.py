"""The check of ``score_to_text``: the nearest multiple of a step, as text."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import t5

# Multiples of 0.2 that binary numbers do not hold exactly.
INEXACT = tuple(multiple for multiple in range(1, 300) if 0.2 * multiple != multiple / 5)


def between(draw: Draw) -> Case:
    """A score between two multiples, nearer to the upper one."""
    return Case({"score": 0.2 * INEXACT[draw.unseen(0, len(INEXACT))] - 0.07})


def below(draw: Draw) -> Case:
    """A score a little above a multiple, which is an integer."""
    return Case({"score": 2.0 + draw.unseen(0, 4) + 0.04})


def lowest(draw: Draw) -> Case:
    """A score a little above 0, the lowest label."""
    return Case({"score": 0.01 * (1 + draw.unseen(0, 8))})


def half_way(draw: Draw) -> Case:
    """A score half way between two multiples, of which the lower one is an even one."""
    return Case({"score": (1.3, 3.3, 3.7, 4.5)[draw.unseen(0, 4)]})


def half_way_to_whole(draw: Draw) -> Case:
    """A score half way to an integer, which is an odd multiple."""
    return Case({"score": (0.9, 2.9, 4.9, 6.9)[draw.unseen(0, 4)]})


def half_way_to_even(draw: Draw) -> Case:
    """A score half way between two multiples, of which the upper one is an even one."""
    return Case({"score": (1.1, 1.5, 2.7, 3.5)[draw.unseen(0, 4)]})


def half_way_not_in_binary(draw: Draw) -> Case:
    """A score half way between two multiples, whose quotient in binary is a little less."""
    return Case({"score": (0.3, 0.7, 1.9, 2.3, 4.1, 4.3, 5.1, 5.3)[draw.unseen(0, 8)]})


def other_step(draw: Draw) -> Case:
    """Another step; the upper multiple is nearer."""
    return Case({"score": 1.1 + draw.unseen(0, 4) + 0.21, "step": 0.5})


def other_step_below(draw: Draw) -> Case:
    """Another step; the lower multiple is nearer."""
    return Case({"score": 1.6 + draw.unseen(0, 4), "step": 0.5})


def no_step(draw: Draw) -> Case:
    """A step of nothing."""
    return Case({"score": 3.0, "step": 0.0})


def backwards(draw: Draw) -> Case:
    """A step backwards."""
    return Case({"score": 3.0, "step": -0.2})


SCORE_TO_TEXT = Exercise(
    reference=t5.score_to_text,
    rows=(
        rows.numbers(
            1.25, between, below, lowest, title="The nearest multiple of 0.2, with one decimal.", gradients=False
        ),
        rows.numbers(
            0.75,
            half_way,
            half_way_to_whole,
            half_way_to_even,
            half_way_not_in_binary,
            name="half way",
            gradients=False,
            title="Half way, the upper one is taken.",
        ),
        rows.numbers(
            0.75,
            other_step,
            other_step_below,
            name="step",
            gradients=False,
            title="The step may be another one.",
        ),
        rows.errors(0.25, between, no_step, backwards, title="A step that is not above 0 is a ValueError."),
    ),
)
