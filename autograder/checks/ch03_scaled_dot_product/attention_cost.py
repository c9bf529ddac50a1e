"""The check of ``attention_cost``: operations and bytes of one head on one sequence."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import attention


def lengths_and_widths(draw: Draw) -> Case:
    """Four different sizes."""
    t, s, dh, dv = draw.sizes(4, low=5)
    return Case({"T": 3 * t, "S": 3 * s, "Dh": dh, "Dv": dv})


def half_sized_numbers(draw: Draw) -> Case:
    """Numbers of two bytes."""
    return lengths_and_widths(draw).with_arguments(itemsize=2)


def book(draw: Draw) -> Case:
    """The sizes of a long text: more operations and bytes than 32 bits can count."""
    rest = {"Dh": 63, "Dv": 127, "itemsize": 8}
    return Case({"T": 65_521 + 2 * draw.unseen(0, 20), "S": 70_001 + 2 * draw.unseen(0, 20), **rest})


ATTENTION_COST = Exercise(
    reference=attention.attention_cost,
    rows=(
        rows.part(
            1.5,
            lengths_and_widths,
            output="output[0]",
            name="flops",
            title="The operations of both matrix products are counted.",
        ),
        rows.part(
            1.25,
            lengths_and_widths,
            output="output[1]",
            name="bytes",
            title="The bytes of queries, keys, values, weights and output are counted.",
        ),
        rows.numbers(
            0.75,
            half_sized_numbers,
            name="itemsize",
            title="Both counts are right in half precision, where a number has two bytes.",
            gradients=False,
        ),
        rows.numbers(
            0.5,
            book,
            name="book",
            title="Both counts are right to the last digit for the text of a whole book.",
            gradients=False,
        ),
    ),
)
