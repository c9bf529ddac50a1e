"""The check of ``tail_free``: what comes before the curve of the sorted probabilities flattens."""

from __future__ import annotations

from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import filter_rows, fixed
from tfcourse import sampling

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
        title="The tokens up to the place where the bending reaches z stay as they are, all others become -inf.",
        points=(2.5, 0.5, 0.5, 0.5),
        refused=({"z": -0.1}, {"z": 1.1}),
        errors="A z that is no share is a ValueError.",
        edge="What was excluded stays so, equal logits share one fate; z = 1, a flat row and a V of 2 change nothing.",
    ),
)
