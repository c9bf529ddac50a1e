"""The check of ``average_checkpoints``: the mean of several states of one model."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from tfcourse import training


def _states(draw: Draw, count: int = 3, dtype: torch.dtype = torch.float32) -> list[dict[str, Tensor]]:
    """States of one model."""
    out, width = draw.sizes(2)
    return [
        {
            "map.weight": draw.normal(out, width, dtype=dtype),
            "map.bias": draw.normal(out, dtype=dtype),
            "scale": draw.normal(1, dtype=dtype)[0],
        }
        for _ in range(count)
    ]


def checkpoints(draw: Draw) -> Case:
    """Three or four states."""
    return Case({"checkpoints": _states(draw, 3 + int(draw.integers(0, 2)))})


def single(draw: Draw) -> Case:
    """One state."""
    return Case({"checkpoints": _states(draw, 1)})


def with_counts(draw: Draw) -> Case:
    """States with a count of steps, and a mask of truth values."""
    states = _states(draw)
    for number, state in enumerate(states):
        state["steps"] = torch.tensor(100 * number + 7)
        state["used"] = torch.tensor([True, number == 2])
    return Case({"checkpoints": states})


def halves(draw: Draw) -> Case:
    """States in float16 whose sum overflows."""
    states = _states(draw, 4, torch.float16)
    return Case({"checkpoints": [{name: x.abs() * 1000 + 20_000 for name, x in state.items()} for state in states]})


def none_at_all(draw: Draw) -> Case:
    """No state."""
    return Case({"checkpoints": []})


def another_model(draw: Draw) -> Case:
    """A state that lacks a weight."""
    states = _states(draw)
    del states[1]["scale"]
    return Case({"checkpoints": states})


def another_size(draw: Draw) -> Case:
    """A state with a weight of another shape, which would be broadcast."""
    states = _states(draw)
    states[1]["map.bias"] = states[1]["map.bias"][:1]
    return Case({"checkpoints": states})


AVERAGE_CHECKPOINTS = Exercise(
    reference=training.average_checkpoints,
    rows=(
        rows.numbers(2.25, checkpoints, gradients=False, title="Every entry is the mean of the checkpoints' entries."),
        rows.numbers(
            1.25,
            with_counts,
            name="counts",
            gradients=False,
            title="What is not a floating-point number is that of the last checkpoint.",
        ),
        rows.edge(
            0.5,
            halves,
            name="half precision",
            gradients=False,
            dtypes=(),
            title="Means of half precision are computed in float32 and rounded back.",
        ),
        rows.precision(
            0.5,
            checkpoints,
            single,
            half=False,
            title="What goes in as float64 comes out as such, and one checkpoint is its own mean.",
        ),
        rows.inputs_kept(0.5, with_counts),
        rows.errors(
            0.5,
            checkpoints,
            none_at_all,
            another_model,
            another_size,
            title="No checkpoints, or those of different models, are a ValueError.",
        ),
    ),
)
