"""The check of ``merge_query_key``: one matrix for the query and the key matrix."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import attention


def narrow_head(draw: Draw) -> Case:
    """The matrices of one head, narrower than its inputs."""
    dk, d = sorted(draw.sizes(2, low=3))
    return Case({"w_q": draw.normal(d, dk), "w_k": draw.normal(d, dk)})


def wide_head(draw: Draw) -> Case:
    """A head that is wider than its inputs."""
    d, dk = sorted(draw.sizes(2, low=3))
    return Case({"w_q": draw.normal(d, dk), "w_k": draw.normal(d, dk)})


def square_head(draw: Draw) -> Case:
    """A head as wide as its inputs: a transposition changes no shape here."""
    return Case({"w_q": draw.normal(4, 4), "w_k": draw.normal(4, 4)})


def many_columns(draw: Draw, size: int) -> Case:
    """More inputs and more columns."""
    return Case({"w_q": draw.normal(2 * size, size + 1), "w_k": draw.normal(2 * size, size + 1)})


MERGE_QUERY_KEY = Exercise(
    reference=attention.merge_query_key,
    rows=(
        rows.numbers(2, narrow_head, gradients=False, title="A row of queries times the matrix gives the scores."),
        rows.numbers(
            0.5,
            narrow_head,
            wide_head,
            square_head,
            name="gradients",
            title="Gradients are right, and a head may be wider than its inputs.",
        ),
        rows.precision(0.5, narrow_head),
        rows.device(0.5, narrow_head),
        rows.no_loop(0.5, many_columns, over="inputs or columns"),
    ),
)
