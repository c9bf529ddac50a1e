"""The check of ``merge_value_output``: one matrix for the value matrices of all heads and the output matrix."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import multihead


def matrices(draw: Draw) -> Case:
    """One value matrix for each head, and the output matrix."""
    h, d, dv, do = draw.sizes(4)
    return Case({"w_v": draw.normal(h, d, dv), "w_o": draw.normal(h * dv, do)})


def single_size(draw: Draw) -> Case:
    """As many heads as rows and columns: the shapes do not show which axis is which."""
    return Case({"w_v": draw.normal(3, 3, 3), "w_o": draw.normal(9, 3)})


def one_head(draw: Draw) -> Case:
    """A single head."""
    d, dv, do = draw.sizes(3)
    return Case({"w_v": draw.normal(1, d, dv), "w_o": draw.normal(dv, do)})


def many_matrices(draw: Draw, size: int) -> Case:
    """More heads."""
    return Case({"w_v": draw.normal(2 * size, 4, 3), "w_o": draw.normal(6 * size, 5)})


def of_shapes(w_v: tuple[int, ...], w_o: tuple[int, ...]) -> rows.Maker:
    """Make matrices of these shapes, which do not fit each other."""

    def unfit(draw: Draw) -> Case:
        return Case({"w_v": draw.normal(*w_v), "w_o": draw.normal(*w_o)})

    return unfit


MERGE_VALUE_OUTPUT = Exercise(
    reference=multihead.merge_value_output,
    rows=(
        rows.numbers(
            2,
            matrices,
            gradients=False,
            title="Below each other stand the products of each head's two matrices.",
        ),
        rows.numbers(
            0.5,
            matrices,
            single_size,
            one_head,
            name="gradients",
            title="Gradients are right, and so are square matrices and a single head.",
        ),
        rows.precision(0.5, matrices, half=False),
        rows.device(0.5, matrices),
        rows.no_loop(0.5, many_matrices, over="heads"),
        rows.errors(
            0.5,
            matrices,
            of_shapes((2, 5, 3), (5, 4)),  # a row of w_o too few
            of_shapes((2, 5, 3), (12, 4)),  # twice as many rows
            of_shapes((5, 3), (3, 4)),
            of_shapes((2, 5, 3), (6,)),
            of_shapes((2, 5, 3), (6, 4, 2)),
            title="Matrices of other dimensions, and an output matrix without H·Dv rows, are a ValueError.",
        ),
    ),
)
