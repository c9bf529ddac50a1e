"""The check of ``location_score``: from the query alone, a score for each place of the source."""

from __future__ import annotations

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch02_alignment.scores import lengths
from autograder.checks.variants import changed
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


def no_places(draw: Draw) -> Case:
    """An empty source."""
    return changed(columns_left_over, S=0)(draw)


def unfit_matrix(more: int) -> rows.Maker:
    """Make a case whose matrix has so many rows more than the queries have columns."""

    def unfit(draw: Draw) -> Case:
        case = columns_left_over(draw)
        height, longest = case.arguments["w"].shape
        return case.with_arguments(w=draw.normal(height + more, longest))

    return unfit


def more_queries(draw: Draw, size: int) -> Case:
    """More examples, queries and places."""
    b, t, s = lengths(size)
    return Case({"queries": draw.normal(b, t, 5), "w": draw.normal(5, s + 2), "S": s})


LOCATION_SCORE = Exercise(
    reference=alignment.location_score,
    rows=(
        rows.numbers(
            1.5,
            columns_left_over,
            name="scores",
            gradients=False,
            title="Every query gets a score for each of the first S positions, (B, T, S).",
        ),
        rows.edge(
            0.5,
            columns_left_over,
            every_column,
            square_matrix,
            no_places,
            name="gradients",
            dtypes=(torch.float64, torch.bfloat16, torch.float16),
            title="Gradients and every precision are right, also where no column is left over, or no position asked for.",
        ),
        rows.no_loop(0.5, more_queries, over="examples, queries or positions"),
        rows.errors(
            0.5,
            columns_left_over,
            too_long,
            changed(columns_left_over, S=-1),
            unfit_matrix(1),
            unfit_matrix(-1),
            title="A source of more positions than columns, or of fewer than none, and a matrix that does not fit are a ValueError.",
        ),
    ),
)
