"""The check of ``rms_norm``: every row divided by its root mean square, then stretched."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch05_transformer.ready_made import NORMS
from tfcourse import t5


def _apart(draw: Draw, *shape: int) -> Tensor:
    """Rows whose numbers lie apart, with a mean far from 0."""
    grid = torch.linspace(-1.0, 2.0, shape[-1])
    return grid[draw.permutation(shape[-1])] + draw.normal(*shape, scale=0.5)


def plain(draw: Draw) -> Case:
    """Rows with a mean far from 0."""
    b, t, d = draw.sizes(3)
    return Case({"x": _apart(draw, b, t, d), "gamma": draw.normal(d) + 1.5})


def one_row(draw: Draw) -> Case:
    """A single row."""
    (d,) = draw.sizes(1, low=4)
    return Case({"x": _apart(draw, d), "gamma": draw.normal(d)})


def large_eps(draw: Draw) -> Case:
    """An eps that is seen in the numbers."""
    return plain(draw).with_arguments(eps=0.3)


def zeros(draw: Draw) -> Case:
    """A row of zeros, and one that is close to zero."""
    case = plain(draw)
    x = case.arguments["x"].clone()
    x[0, 0], x[0, 1] = 0.0, 1e-3 * x[0, 1]
    return case.with_arguments(x=x)


def large_numbers(draw: Draw) -> Case:
    """Numbers whose squares half precision does not hold; where eps is belongs to another row."""
    case = plain(draw)
    return case.with_arguments(x=300 * case.arguments["x"], eps=0.0)


def many_rows(draw: Draw, size: int) -> Case:
    """More of everything."""
    return Case({"x": _apart(draw, size, size + 1, 4 * size), "gamma": draw.normal(4 * size)})


def equal_sizes(draw: Draw) -> Case:
    """As many examples as positions and columns."""
    return Case({"x": _apart(draw, 3, 3, 3), "gamma": draw.normal(3) + 1.5})


RMS_NORM = Exercise(
    reference=t5.rms_norm,
    rows=(
        rows.numbers(2, plain, gradients=False, title="Every row gets root mean square 1, then its factors."),
        rows.numbers(
            1,
            large_eps,
            zeros,
            name="eps",
            gradients=False,
            title="eps stands under the root, beside the mean square.",
        ),
        rows.numbers(
            0.25,
            plain,
            one_row,
            equal_sizes,
            name="gradients",
            title="Gradients reach rows and factors; a single row, and as many rows as columns, work too.",
        ),
        rows.precision(0.5, large_numbers),
        rows.inputs_kept(0.25, plain),
        rows.no_loop(0.25, many_rows, over="examples, positions or columns"),
    ),
    forbidden=NORMS,
    rule_case=plain,
)
