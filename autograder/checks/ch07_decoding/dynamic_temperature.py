"""The check of ``dynamic_temperature``: a temperature for each row, by its entropy."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import share
from autograder.checks.combined_rows import also_asking, joined
from tfcourse import sampling


def plain(draw: Draw, largest: float = 4.0) -> Case:
    """Rows that are sure and rows that are not."""
    b, v = draw.sizes(2, low=4)
    return Case({"logits": draw.normal(b, v) * torch.linspace(0.5, largest, b).unsqueeze(1), "low": 0.4, "high": 2.3})


def of_three_axes(draw: Draw) -> Case:
    """A row for each position of each example, and other temperatures."""
    return Case({"logits": draw.normal(*draw.sizes(3), scale=2.0), "low": 0.7, "high": 1.5})


def with_exponent(draw: Draw) -> Case:
    """The temperature grows late."""
    return plain(draw).with_arguments(exponent=2.6)


def with_small_exponent(draw: Draw) -> Case:
    """The temperature grows early. No row is almost sure: a small power of an entropy near 0 shows how that was rounded."""
    return plain(draw, largest=1.5).with_arguments(exponent=0.4)


def holes(draw: Draw) -> Case:
    """Logits of which some are excluded already, in one row all but one."""
    logits = draw.normal(4, 6)
    for row in range(4):
        logits[row, draw.permutation(6)[: 2 + row]] = -torch.inf
    return Case({"logits": logits, "low": 0.4, "high": 2.3})


def more(draw: Draw, size: int) -> Case:
    """More rows, of more tokens."""
    return Case({"logits": draw.normal(2 * size, 3 + size), "low": 0.4, "high": 2.3})


def swapped(draw: Draw) -> Case:
    """The low temperature is above the high one."""
    return plain(draw).with_arguments(low=2.3, high=0.4)


def zero(draw: Draw) -> Case:
    """A row that is quite sure would be divided by 0."""
    return plain(draw).with_arguments(low=0.0)


def the_same(draw: Draw) -> Case:
    """Both temperatures are the same: every row is divided by it."""
    return plain(draw).with_arguments(low=1.3, high=1.3)


def _with_exponent(value: float) -> rows.Maker:
    return lambda draw: plain(draw).with_arguments(exponent=value)


# An exponent of 0 would forget the entropy, one below 0 would turn it round.
NO_EXPONENTS = tuple(_with_exponent(value) for value in (0.0, -0.5))


def any_temperatures(draw: Draw) -> Case:
    """A small batch, two temperatures, and any exponent: 1 among them."""
    low = share(draw, 0.2, 1.5)
    exponent = (1.0, share(draw, 0.2, 0.9), share(draw, 1.1, 4.0))[int(draw.integers(0, 3))]
    logits = draw.normal(int(draw.integers(1, 4)), int(draw.integers(2, 8)), scale=2.0)
    return Case({"logits": logits, "low": low, "high": round(low + share(draw), 3), "exponent": exponent})


DYNAMIC_TEMPERATURE = Exercise(
    reference=sampling.dynamic_temperature,
    rows=(
        rows.numbers(
            1.5,
            plain,
            plain,
            title="Each row is divided by a temperature of its own, between low and high.",
            gradients=False,
        ),
        also_asking(
            rows.numbers(
                0.75,
                with_exponent,
                with_small_exponent,
                name="exponent",
                title="The exponent changes how the temperature grows, in many random batches.",
                gradients=False,
            ),
            rows.many(0, any_temperatures, title=""),
        ),
        also_asking(
            rows.edge(
                0.5,
                holes,
                the_same,
                name="edges",
                title="Excluded tokens do not count, a single token gets `low`, three axes work, and gradients are right.",
                gradients=False,
                dtypes=(torch.bfloat16,),  # the logarithm of an integer is in single precision
            ),
            rows.numbers(0, plain, of_three_axes),
        ),
        joined(
            "manner",
            "Inputs are left as they were, nothing loops over rows or tokens, and a parameter out of range is a ValueError.",
            0.25,
            rows.inputs_kept(1, plain),
            rows.no_loop(1, more, over="rows or tokens"),
            rows.errors(1, plain, swapped, zero, *NO_EXPONENTS, title=""),
        ),
    ),
)
