"""The check of ``general_score``: a dot product with a matrix in between."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch02_alignment.scores import FORBIDDEN, OVER, lengths, matrices_fit, of_other_batch, scores
from tfcourse import alignment


def _general(draw: Draw, b: int, t: int, s: int, dq: int, dk: int) -> Case:
    return Case({"queries": draw.normal(b, t, dq), "keys": draw.normal(b, s, dk), "w": draw.normal(dq, dk, scale=0.5)})


def two_widths(draw: Draw) -> Case:
    """Queries and keys of two widths."""
    return _general(draw, *draw.sizes(5))


def one_width(draw: Draw) -> Case:
    """Queries and keys of one width, and as many: the shapes do not show what changed places."""
    b, t, d = draw.sizes(3)
    return _general(draw, b, t, t, d, d)


def one_example(draw: Draw) -> Case:
    """A batch of one."""
    return _general(draw, 1, *draw.sizes(4))


def more_of_all(draw: Draw, size: int) -> Case:
    """More examples, queries and keys."""
    return _general(draw, *lengths(size), 4, 3)


def wide_matrix(draw: Draw) -> Case:
    """A matrix with a column too many for the keys."""
    case = two_widths(draw)
    dq, dk = case.arguments["w"].shape
    return case.with_arguments(w=draw.normal(dq, dk + 1))


def tall_matrix(draw: Draw) -> Case:
    """A matrix with a row too many for the queries."""
    case = two_widths(draw)
    dq, dk = case.arguments["w"].shape
    return case.with_arguments(w=draw.normal(dq + 1, dk))


GENERAL_SCORE = Exercise(
    reference=alignment.general_score,
    rows=(
        *scores((2, 0.5), two_widths, one_width, one_example),
        rows.precision(0.5, two_widths),
        rows.no_loop(0.5, more_of_all, over=OVER),
        matrices_fit(0.5, two_widths, wide_matrix, tall_matrix, of_other_batch(two_widths)),
    ),
    forbidden=FORBIDDEN,
    rule_case=two_widths,
)
