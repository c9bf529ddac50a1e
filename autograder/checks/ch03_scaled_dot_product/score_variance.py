"""The check of ``score_variance``: how widely scores are spread."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch03_scaled_dot_product import attention_inputs as inputs
from autograder.checks.ch05_transformer.ready_made import ATTENTION
from tfcourse import attention


def heads(draw: Draw) -> Case:
    """Two leading dimensions."""
    return _without_values(inputs.qkv(draw))


def batch(draw: Draw) -> Case:
    """One leading dimension."""
    return _without_values(inputs.batch(draw))


def off_centre(draw: Draw) -> Case:
    """Queries and keys whose scores do not scatter about zero; no leading dimension."""
    case = _without_values(inputs.unbatched(draw))
    return Case({"q": case.arguments["q"] + 1.0, "k": case.arguments["k"] + 1.5})


def unscaled(draw: Draw) -> Case:
    """Asking for the variance of the dot products as they are."""
    return batch(draw).with_arguments(scaled=False)


def large_mean(draw: Draw) -> Case:
    """Scores whose mean is thousands of times their spread.

    The numbers are whole and the root of the width is 4, so that each score is exact in float32: only what is done with
    the scores can lose digits.
    """
    t, s = draw.sizes(2, low=4)
    return Case({"q": _around(draw, 200.0, t), "k": _around(draw, 200.0, s)})


def longer(draw: Draw, size: int) -> Case:
    """Queries and keys whose leading and length axes grow with a size."""
    return _without_values(inputs.longer(draw, size))


def _around(draw: Draw, offset: float, length: int) -> Tensor:
    """Rows of small integers after a large number that all rows share."""
    return torch.cat([torch.full((length, 1), offset), draw.integers(-3, 4, length, 15).float()], dim=-1)


def _without_values(case: Case) -> Case:
    return Case({name: case.arguments[name] for name in ("q", "k")})


SCORE_VARIANCE = Exercise(
    reference=attention.score_variance,
    rows=(
        rows.numbers(2.5, batch, gradients=False, title="The variance of all T·S scores, for each example."),
        rows.numbers(
            1.5,
            unscaled,
            name="scaled=False",
            gradients=False,
            title="With scaled=False the dot products are taken as they are.",
        ),
        rows.numbers(
            0.5,
            batch,
            heads,
            off_centre,
            name="axes",
            title="Gradients are right, and so is any number of leading dimensions, for each head.",
        ),
        rows.edge(
            0.5,
            large_mean,
            name="large mean",
            title="A mean that is far larger than the spread costs no digits.",
            gradients=False,
            dtypes=(),
        ),
        rows.precision(0.5, batch),
        inputs.manners(0.5, (batch,), longer, over="examples, heads, queries or keys"),
    ),
    forbidden=ATTENTION,
    rule_case=batch,
)
