"""The check of ``tail_free``: what comes before the curve of the sorted probabilities flattens."""

from __future__ import annotations

import math

import torch

from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import filter_rows, fixed, on_the_threshold, shares
from tfcourse import sampling


def _exactly(draw: Draw) -> Case:
    """The bends sum to a power of 1/2, so z may be met exactly."""
    while True:
        case = on_the_threshold("z", 0.0, 0.5, 1.0)(draw)
        probability = torch.softmax(case.arguments["logits"], dim=-1).sort(dim=-1, descending=True).values
        if math.frexp(float(probability.diff(n=2, dim=-1).abs().sum(dim=-1)[0]))[0] in (0, 0.5):
            return case


TAIL_FREE = Exercise(
    reference=sampling.tail_free,
    rows=filter_rows(
        sampling.tail_free,
        {"z": 0.9},
        {"z": 0.6},
        fixed([[0.3, -1.2, 2.1, 0.9, -0.7]], z=1.0),
        fixed([[0.3, -1.2, 2.1, 0.9, -0.7]], z=0.0),
        fixed([[0.7, 0.7, 0.7, 0.7, 0.7], [0.3, -1.2, 2.1, 0.9, -0.7]], z=0.5),
        fixed([[0.7, 0.7, 0.7, 0.7]], z=0.5),
        fixed([[0.3, -1.2]], z=0.5),
        drawn=shares("z"),
        tied=_exactly,
        title="The tokens up to the position where the bending reaches z stay as they are, all others become -inf.",
        points=4,
        refused=({"z": -0.1}, {"z": 1.1}),
        errors="A z that is no share is a ValueError.",
        edge="What was excluded stays so, equal logits share one fate; z = 1, a flat row and a V of 2 change nothing.",
    ),
)
