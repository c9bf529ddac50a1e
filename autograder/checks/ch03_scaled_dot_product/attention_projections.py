"""The check of ``attention_projections``: queries from one sequence, keys and values from another."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import (
    one_example,
    projections,
    single_width,
    two_sequences,
)
from tfcourse import attention


def one_width(draw: Draw) -> Case:
    """Square matrices: a transposition changes no shape here."""
    t, s, d = draw.sizes(3, low=3)
    return Case({"x_q": draw.normal(t, d), "x_kv": draw.normal(s, d), **projections(draw, d, d, d)})


def _one_of_three(place: int, name: str, title: str) -> rows.Row:
    return rows.part(0.5, two_sequences, one_width, output=f"output[{place}]", name=name, title=title)


ATTENTION_PROJECTIONS = Exercise(
    reference=attention.attention_projections,
    rows=(
        rows.numbers(
            2.75,
            two_sequences,
            one_width,
            name="all three",
            gradients=False,
            title="Queries, keys and values are right.",
        ),
        _one_of_three(0, "queries", "Queries come from the sequence that asks, through w_q."),
        _one_of_three(1, "keys", "Keys come from the sequence that is asked, through w_k."),
        _one_of_three(2, "values", "Values come from the sequence that is asked, through w_v."),
        rows.numbers(
            0.75,
            two_sequences,
            one_example,
            single_width,
            name="gradients",
            title="Gradients are right, and so is a single sequence without a batch.",
        ),
        rows.precision(0.5, one_example),
        rows.device(0.5, two_sequences),
    ),
)
