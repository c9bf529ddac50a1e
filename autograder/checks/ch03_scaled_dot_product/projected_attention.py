"""The check of ``projected_attention``: attention behind learned projections."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import (
    inputs_and_device,
    one_example,
    projections,
    single_width,
    two_sequences,
    without_second_row,
)
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from tfcourse import attention


def masked(draw: Draw) -> Case:
    """With a mask in which every query may attend to something."""
    case = two_sequences(draw)
    return case.with_arguments(mask=draw.mask(*case.arguments["x_q"].shape[:-1], case.arguments["x_kv"].shape[-2]))


def empty_row(draw: Draw) -> Case:
    """With a query that may attend to nothing."""
    return without_second_row(masked(draw))


def longer(draw: Draw, size: int) -> Case:
    """More examples, and longer sequences."""
    x_q, x_kv = draw.normal(size, size + 1, 3), draw.normal(size, 2 * size, 3)
    return Case({"x_q": x_q, "x_kv": x_kv, **projections(draw, 3, 5, 2)})


PROJECTED_ATTENTION = Exercise(
    reference=attention.projected_attention,
    rows=(
        rows.numbers(
            3.25,
            two_sequences,
            gradients=False,
            title="Each query receives the values, averaged with its weights.",
        ),
        rows.numbers(
            2,
            masked,
            name="mask",
            gradients=False,
            title="A mask lets a query attend where it is True, and nowhere else.",
        ),
        rows.numbers(
            0.75,
            two_sequences,
            one_example,
            single_width,
            name="gradients",
            title="Gradients are right, and so is a single sequence without a batch.",
        ),
        rows.edge(0.5, empty_row, name="empty row", title="A query that may attend to nothing gets zeros.", dtypes=()),
        rows.precision(0.5, two_sequences),
        inputs_and_device(0.5, two_sequences, masked),
        rows.no_loop(0.5, longer, over="examples, queries or keys"),
    ),
    forbidden=ATTENTION,
    rule_case=(two_sequences, masked),
)
