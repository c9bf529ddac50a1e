"""The check of ``top_p``: the most probable tokens that reach a probability together."""

from __future__ import annotations

from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import exact, filter_rows, fixed
from tfcourse import sampling

TOP_P = Exercise(
    reference=sampling.top_p,
    rows=filter_rows(
        sampling.top_p,
        {"p": 0.7},
        {"p": 0.9},
        fixed([[40.0, 3.0, 0.0, 12.0, -5.0], [0.5, 60.0, 0.5, -9.0, 9.0]], p=1.0),
        fixed([[0.3, 2.1, -0.4, 0.9]], p=0.01),
        exact(0, 1, 2, 2, p=0.5),
        exact(0, 1, 2, 2, p=0.75),
        title="The most probable tokens that it takes to reach p stay as they are, all others become -inf.",
        points=(2.5, 0.5, 0.5, 0.5),
        refused=({"p": 0.0}, {"p": 1.1}),
        errors="A p of 0, or of more than 1, is a ValueError.",
        edge="What was excluded stays so, equal logits share one fate, a sum of p is enough, a tiny p keeps the best, p = 1 everything.",
    ),
)
