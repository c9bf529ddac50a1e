"""The check of ``locally_typical``: the tokens that are about as surprising as expected."""

from __future__ import annotations

from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import exact, filter_rows, fixed, shares
from tfcourse import sampling

LOCALLY_TYPICAL = Exercise(
    reference=sampling.locally_typical,
    rows=filter_rows(
        sampling.locally_typical,
        {"mass": 0.35},
        {"mass": 0.6},
        fixed([[-0.916, -1.386, -1.897, -2.303, -2.813, -3.219]], mass=0.2),
        exact(0, 1, 2, 2, mass=0.25),
        drawn=shares("mass"),
        title="The most typical tokens that it takes to reach the mass stay as they are, all others become -inf.",
        points=4,
        refused=({"mass": 0.0}, {"mass": 1.0}),
        errors="A mass of 0 or 1 is a ValueError.",
        edge="What was excluded stays so, equal logits share one fate, a sum of exactly the mass is enough, and the best token may go.",
    ),
)
