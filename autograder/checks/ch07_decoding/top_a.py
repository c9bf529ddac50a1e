"""The check of ``top_a``: a threshold that grows with the square of the largest probability."""

from __future__ import annotations

from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import exact, filter_rows, fixed, on_the_threshold, shares
from tfcourse import sampling

TOP_A = Exercise(
    reference=sampling.top_a,
    rows=filter_rows(
        sampling.top_a,
        {"a": 0.3},
        {"a": 0.6},
        fixed([[0.3, -1.2, 2.1, -190.0]], a=0.0),
        exact(0, 1, 1, a=1.0),
        drawn=shares("a"),
        tied=on_the_threshold("a", 0.0, 0.25, 1.0),
        title="Tokens with a probability of at least a times the square of the largest stay as they are, all others become -inf.",
        refused=({"a": -0.1}, {"a": 1.1}),
        errors="An a outside of 0 to 1 is a ValueError.",
        edge="What was excluded stays so, equal logits share one fate, a = 0 keeps everything, a = 1 what reaches the square.",
    ),
)
