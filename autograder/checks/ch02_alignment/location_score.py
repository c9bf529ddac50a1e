"""The check of ``location_score``: from the query alone, a score for each place of the source."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch02_alignment.scores import lengths
from tfcourse import alignment


def columns_left_over(draw: Draw) -> Case:
    """A matrix with more columns than the source has places."""
    b, t, s, d = draw.sizes(4)
    return Case({"queries": draw.normal(b, t, d), "w": draw.normal(d, s + 3), "S": s})


def every_column(draw: Draw) -> Case:
    """A source that needs every column of the matrix."""
    b, t, s, d = draw.sizes(4)
    return Case({"queries": draw.normal(b, t, d), "w": draw.normal(d, s), "S": s})


def square_matrix(draw: Draw) -> Case:
    """A matrix with as many rows as columns."""
    b, t, d = draw.sizes(3, low=3)
    return Case({"queries": draw.normal(b, t, d), "w": draw.normal(d, d), "S": d - 1})


def too_long(draw: Draw) -> Case:
    """A source with more places than the matrix has columns."""
    case = every_column(draw)
    return case.with_arguments(S=case.arguments["S"] + 1)


def more_queries(draw: Draw, size: int) -> Case:
    """More examples, queries and places."""
    b, t, s = lengths(size)
    return Case({"queries": draw.normal(b, t, 5), "w": draw.normal(5, s + 2), "S": s})


LOCATION_SCORE = Exercise(
    reference=alignment.location_score,
    rows=(
        rows.numbers(
            1.75,
            columns_left_over,
            every_column,
            square_matrix,
            name="scores",
            title="Every query gets a score for each of the first S places, (B, T, S).",
        ),
        rows.precision(0.25, columns_left_over),
        rows.no_loop(0.5, more_queries, over="examples, queries or places"),
        rows.errors(
            0.5,
            columns_left_over,
            too_long,
            title="A source with more places than the matrix has columns is a ValueError.",
        ),
    ),
)
