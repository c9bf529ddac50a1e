"""The check of ``min_p``: keep tokens that are not much less probable than the best."""

from __future__ import annotations

from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import exact, filter_rows, fixed, on_the_threshold, shares
from tfcourse import sampling

MIN_P = Exercise(
    reference=sampling.min_p,
    rows=filter_rows(
        sampling.min_p,
        {"p": 0.13},
        {"p": 0.3},
        fixed([[0.3, -1.2, 2.1, 0.9, 2.1]], p=1.0),
        fixed([[0.3, -1.2, 2.1, 0.9]], p=0.0),
        exact(0, 1, 2, 2, p=0.5),
        drawn=shares("p"),
        tied=on_the_threshold("p", 0.0, 0.25, 0.5, 1.0),
        title="Tokens that are at least p times as probable as the best one stay as they are, all others become -inf.",
        refused=({"p": -0.1}, {"p": 1.1}),
        errors="A p that is no share is a ValueError.",
        edge="What was excluded stays so, equal logits share one fate, p = 1 keeps the best and p = 0 everything.",
    ),
)
