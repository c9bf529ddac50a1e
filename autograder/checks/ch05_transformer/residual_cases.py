"""Cases for the two residual connections: rows, a small network as the sublayer, and a norm's factors and shifts."""

from __future__ import annotations

import torch

from autograder.checking.draw import Case, Draw
from autograder.checking.props import Perceptron

# So small that almost nothing is dropped; in float64 the division of the other values by 1 - p still shows.
NEXT_TO_NOTHING = 1e-7


def wrapped(draw: Draw) -> Case:
    """Rows whose mean is far from 0, and a sublayer."""
    b, t, d, hidden = draw.sizes(4, low=3)
    sublayer = {"kind": "Perceptron", "init": {"inputs": d, "hidden": hidden, "outputs": d}}
    state = draw.weights(Perceptron(d, hidden, d))
    x = 2 * draw.normal(b, t, d) + draw.normal(b, t, 1)
    arguments = {"x": x, "gamma": draw.normal(d) + 1.5, "beta": draw.normal(d)}
    return Case(arguments, props={"sublayer": {**sublayer, "state": state}})


def one_row(draw: Draw) -> Case:
    """A single row."""
    case = wrapped(draw)
    return case.with_arguments(x=case.arguments["x"][0, 0])


def all_dropped(draw: Draw) -> Case:
    """A dropout of 1: the remaining values show where it was applied."""
    return wrapped(draw).with_arguments(dropout=1.0)


def hardly_dropped(draw: Draw) -> Case:
    """A dropout that drops almost nothing, and divides the other values."""
    return wrapped(draw).to(torch.float64).with_arguments(dropout=NEXT_TO_NOTHING)


def large_eps(draw: Draw) -> Case:
    """An eps that shows in the numbers."""
    return wrapped(draw).with_arguments(eps=0.5)
