"""The check of ``distillation_loss``: how far a student is from its teacher."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.combined_rows import also_asking, joined
from tfcourse import bert

DIVERGENCES = ("kl_div", "_kl_div", "KLDivLoss", "kl_divergence", "_kl_categorical_categorical")


def every_place(draw: Draw) -> Case:
    """A batch of texts; all places count."""
    b, t, v = draw.sizes(3, low=3)
    return Case({"student": 2 * draw.normal(b, t, v), "teacher": 2 * draw.normal(b, t, v), "temperature": 2.5})


def one_axis(draw: Draw) -> Case:
    """A class for each text, at a temperature below 1."""
    b, c = draw.sizes(2, low=3)
    return Case({"student": draw.normal(b, c), "teacher": draw.normal(b, c), "temperature": 0.7})


def real_places(draw: Draw) -> Case:
    """Padding does not count."""
    case = every_place(draw)
    return case.with_arguments(mask=draw.mask(*case.arguments["student"].shape[:-1]))


def one_place(draw: Draw) -> Case:
    """A single place counts."""
    case = every_place(draw)
    b, t, _ = case.arguments["student"].shape
    return case.with_arguments(mask=(torch.arange(b * t) == int(draw.integers(0, b * t))).view(b, t))


def nothing_counts(draw: Draw) -> Case:
    """No place counts."""
    case = real_places(draw)
    return case.with_arguments(mask=case.arguments["mask"] & False)


def certain(draw: Draw) -> Case:
    """Logits so far apart that probabilities are rounded to 0."""
    case = every_place(draw)
    return case.with_arguments(student=150 * case.arguments["student"], temperature=1.0)


def more(draw: Draw, size: int) -> Case:
    """More and longer texts."""
    shape = (size, size + 1, 5)
    return Case({"student": draw.normal(*shape), "teacher": draw.normal(*shape), "temperature": 2.0})


def no_temperature(draw: Draw) -> Case:
    """A temperature of 0."""
    return every_place(draw).with_arguments(temperature=0.0)


def negative_temperature(draw: Draw) -> Case:
    """A temperature below 0."""
    return every_place(draw).with_arguments(temperature=-0.5 - int(draw.integers(0, 3)))


def low_temperature(draw: Draw) -> Case:
    """A temperature just above 0 is one."""
    return one_axis(draw).with_arguments(temperature=0.01)


def any_texts(draw: Draw) -> Case:
    """Sizes that are all equal, or differ, or are 1, and any temperature."""
    sizes = (3, 3, 3) if int(draw.integers(0, 4)) == 0 else draw.integers(1, 5, 3).tolist()
    temperature = 0.25 * int(draw.integers(1, 20))
    return Case({"student": draw.normal(*sizes), "teacher": draw.normal(*sizes), "temperature": temperature})


DISTILLATION_LOSS = Exercise(
    reference=bert.distillation_loss,
    rows=(
        rows.numbers(
            2.5,
            every_place,
            gradients=False,
            title="The divergence of softened distributions, times τ²; the mean over positions.",
        ),
        rows.numbers(
            1.5,
            every_place,
            name="gradients",
            title="Gradients reach the student, and not the teacher.",
        ),
        rows.numbers(
            1,
            real_places,
            one_place,
            name="mask",
            gradients=False,
            title="Positions that the mask leaves out do not count.",
        ),
        also_asking(
            rows.edge(
                0.5,
                nothing_counts,
                certain,
                one_axis,
                name="edges",
                gradients=False,
                title="Without positions that count the loss is 0; probabilities near 0 work, and many sizes and temperatures.",
            ),
            rows.many(0, any_texts, count=32, title=""),
        ),
        joined(
            "manner",
            "There is no Python loop over texts or positions, and a temperature of 0 or below raises a ValueError.",
            0.5,
            rows.no_loop(1, more, over="texts or positions"),
            rows.errors(1, every_place, low_temperature, no_temperature, negative_temperature, title=""),
        ),
    ),
    forbidden=DIVERGENCES,
    rule_case=(every_place, real_places),
)
