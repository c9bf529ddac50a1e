"""The check of ``layer_norm``: every row to mean 0 and variance 1, then stretched and shifted."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product.attention_inputs import inputs_and_device
from autograder.checks.ch05_transformer.ready_made import NORMS
from tfcourse import layers


def _apart(draw: Draw, *shape: int) -> Tensor:
    """Rows with distinct numbers: for nearly equal ones, rounding decides their variance and so the right answer."""
    grid = torch.linspace(-2.0, 2.0, shape[-1])
    return grid[draw.permutation(shape[-1])] + draw.normal(*shape, scale=0.5)


def plain(draw: Draw) -> Case:
    """Rows with a mean far from 0 and a variance far from 1."""
    b, t, d = draw.sizes(3)
    x = _apart(draw, b, t, d) + draw.normal(b, t, 1)
    return Case({"x": x, "gamma": draw.normal(d) + 1.5, "beta": draw.normal(d)})


def one_row(draw: Draw) -> Case:
    """A single row, without an example or a position."""
    (d,) = draw.sizes(1, low=4)
    return Case({"x": _apart(draw, d), "gamma": draw.normal(d), "beta": draw.normal(d)})


def images(draw: Draw) -> Case:
    """Rows on three leading axes."""
    b, h, w, d = draw.sizes(4)
    return Case({"x": _apart(draw, b, h, w, d), "gamma": draw.normal(d), "beta": draw.normal(d)})


def large_eps(draw: Draw) -> Case:
    """An eps that is seen in the numbers."""
    return plain(draw).with_arguments(eps=0.3)


def constant_row(draw: Draw) -> Case:
    """Rows of which one holds the same number everywhere, and one is close to zero."""
    case = plain(draw)
    x = case.arguments["x"].clone()
    x[0, 0], x[0, 1] = 3.0, 1e-2 * x[0, 1]
    return case.with_arguments(x=x)


def large_numbers(draw: Draw) -> Case:
    """Numbers whose squares half precision does not hold; where eps is belongs to another row."""
    case = plain(draw)
    return case.with_arguments(x=300 * case.arguments["x"], eps=0.0)


def many_rows(draw: Draw, size: int) -> Case:
    """More of everything."""
    d = 4 * size
    return Case({"x": _apart(draw, size, size + 1, d), "gamma": draw.normal(d), "beta": draw.normal(d)})


def single_factor(draw: Draw) -> Case:
    """One factor for all columns: it would be broadcast without a word."""
    case = plain(draw)
    return case.with_arguments(gamma=case.arguments["gamma"][:1])


def shift_per_position(draw: Draw) -> Case:
    """As many shifts as numbers in an example: it would be broadcast as well."""
    case = plain(draw)
    return case.with_arguments(beta=draw.normal(*case.arguments["x"].shape[1:]))


def integers(draw: Draw) -> Case:
    """Rows of integers."""
    return Case({"x": draw.integers(0, 9, 2, 4), "gamma": draw.normal(4), "beta": draw.normal(4)})


LAYER_NORM = Exercise(
    reference=layers.layer_norm,
    rows=(
        rows.numbers(
            3.25, plain, gradients=False, title="Every row gets mean 0 and variance 1, then its factors and shifts."
        ),
        rows.numbers(
            2,
            large_eps,
            constant_row,
            name="eps",
            gradients=False,
            title="eps stands under the root, beside the variance.",
        ),
        rows.numbers(
            0.75,
            plain,
            images,
            one_row,
            name="axes",
            title="Gradients are right, and so is any number of leading axes.",
        ),
        rows.precision(0.5, large_numbers),
        inputs_and_device(0.5, plain),
        rows.no_loop(0.5, many_rows, over="examples, positions or columns"),
        rows.errors(
            0.5,
            plain,
            single_factor,
            shift_per_position,
            integers,
            title="Rows of integers, and factors or shifts that are not one for each column, are a ValueError.",
        ),
    ),
    forbidden=NORMS,
    rule_case=plain,
)
