"""The check of ``attention_parameters``: what the matrices of all heads count, apart and merged."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import multihead


def any_widths(draw: Draw) -> Case:
    """Five sizes, pairwise distinct."""
    names = ("d_model", "n_heads", "d_k", "d_v", "d_out")
    return Case(dict(zip(names, draw.sizes(5, low=3), strict=True)))


def widths_of_the_paper(draw: Draw) -> Case:
    """Head widths D / H, and D columns out."""
    h, dh = draw.sizes(2)
    return Case({"d_model": h * dh, "n_heads": h, "d_k": dh, "d_v": dh, "d_out": h * dh})


def _count(points: float, place: int, name: str, title: str) -> rows.Row:
    return rows.part(points, any_widths, widths_of_the_paper, output=f"output[{place}]", name=name, title=title)


ATTENTION_PARAMETERS = Exercise(
    reference=multihead.attention_parameters,
    rows=(
        _count(1, 0, "query_key", "The query and key matrices of all heads are counted."),
        _count(0.5, 1, "merged_query_key", "The matrices that would replace them are counted."),
        _count(1, 2, "value_output", "The value matrices of all heads and the output matrix are counted."),
        _count(0.5, 3, "merged_value_output", "The matrix that would replace them is counted."),
    ),
)
