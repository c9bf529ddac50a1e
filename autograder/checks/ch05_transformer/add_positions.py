"""The check of ``add_positions``: every place of a sequence gets its own row of a table."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import manners
from tfcourse import positions


def placed(draw: Draw) -> Case:
    """A sequence, and a table that is longer."""
    b, t, d, more = draw.sizes(4)
    return Case({"x": draw.normal(b, t, d), "positions": draw.normal(t + more, d)})


def as_many_examples(draw: Draw) -> Case:
    """As many examples as places and rows of the table: the shapes do not show which of the two axes is meant."""
    t, d = draw.sizes(2, low=3)
    return Case({"x": draw.normal(t, t, d), "positions": draw.normal(t, d)})


def one_example(draw: Draw) -> Case:
    """A batch of one, as long as it is wide, and a table that fits exactly."""
    return Case({"x": draw.normal(1, 4, 4), "positions": draw.normal(4, 4)})


def piece(draw: Draw) -> Case:
    """A sequence that begins further back; the last row of the table is its last."""
    b, t, d, start = draw.sizes(4)
    return Case({"x": draw.normal(b, t, d), "positions": draw.normal(start + t, d), "start": start})


def longer(draw: Draw, size: int) -> Case:
    """More of everything."""
    return Case({"x": draw.normal(3 * size, 4 * size, 6), "positions": draw.normal(9 * size, 6)})


def too_long(draw: Draw) -> Case:
    """The table ends one place too early."""
    case = piece(draw)
    return case.with_arguments(positions=case.arguments["positions"][:-1])


def before_the_start(draw: Draw) -> Case:
    """A place before the first."""
    return placed(draw).with_arguments(start=-1)


def too_narrow(draw: Draw) -> Case:
    """A table of one column, which would be added to every column without a word."""
    case = placed(draw)
    return case.with_arguments(positions=case.arguments["positions"][:, :1])


def too_wide(draw: Draw) -> Case:
    """A table with one column more."""
    case = placed(draw)
    rows_of_table, d = case.arguments["positions"].shape
    return case.with_arguments(positions=draw.normal(rows_of_table, d + 1))


def without_examples(draw: Draw) -> Case:
    """A sequence without an axis for the batch, as long as it is wide."""
    return Case({"x": draw.normal(4, 4), "positions": draw.normal(7, 4)})


def in_groups(draw: Draw) -> Case:
    """A batch of batches."""
    return Case({"x": draw.normal(2, 4, 4, 4), "positions": draw.normal(7, 4)})


def a_row(draw: Draw) -> Case:
    """One row instead of a table, which would be added at every position."""
    return Case({"x": draw.normal(2, 4, 4), "positions": draw.normal(4)})


def a_table_for_each(draw: Draw) -> Case:
    """A table for each example."""
    return Case({"x": draw.normal(2, 4, 4), "positions": draw.normal(4, 4, 4)})


def integers(draw: Draw) -> Case:
    """Tokens instead of their vectors."""
    return placed(draw).with_arguments(x=draw.integers(0, 9, 2, 3, 4), positions=draw.normal(5, 4))


def single_precision_table(draw: Draw) -> Case:
    """A sequence in half precision, and a table in single precision, as sinusoids are made."""
    case = placed(draw).to(torch.bfloat16)
    return case.with_arguments(positions=case.arguments["positions"].float())


ADD_POSITIONS = Exercise(
    reference=positions.add_positions,
    rows=(
        rows.numbers(
            2.25,
            placed,
            as_many_examples,
            gradients=False,
            title="Every position gets its own row, the same one in every example.",
        ),
        rows.numbers(1, piece, name="start", gradients=False, title="A sequence may begin further back."),
        rows.numbers(
            0.5,
            placed,
            one_example,
            name="gradients",
            title="Gradients reach the sequence and the table, also where the batch is one and the table no longer than needed.",
        ),
        rows.edge(
            0.5,
            single_precision_table,
            name="precision",
            gradients=False,
            title="The result has the dtype of x, even if the table is more precise.",
        ),
        manners(0.75, (placed,), longer, over="examples or positions"),
        rows.errors(
            0.5,
            placed,
            too_long,
            before_the_start,
            too_narrow,
            too_wide,
            without_examples,
            in_groups,
            a_row,
            a_table_for_each,
            integers,
            title="A position that the table does not have, or anything but (B, T, D) and (N, D), is a ValueError.",
        ),
    ),
)
