"""The check of ``top_p``: the most probable tokens that reach a probability together."""

from __future__ import annotations

import torch

from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import exact, filter_rows, fixed, on_the_threshold, shares
from tfcourse import sampling

# Probabilities of which the largest sum to 0.8, in decimals that binary numbers do not hold exactly.
_REACHING = (
    (0.5, 0.3, 0.1, 0.06, 0.04),
    (0.4, 0.25, 0.15, 0.14, 0.06),
    (0.6, 0.2, 0.1, 0.07, 0.03),
    (0.7, 0.1, 0.09, 0.06, 0.05),
    (0.3, 0.27, 0.23, 0.11, 0.09),
    (0.35, 0.33, 0.12, 0.11, 0.09),
    (0.45, 0.23, 0.12, 0.11, 0.09),
)


def reaching(draw: Draw) -> Case:
    """The sum of the most probable tokens is 0.8, but for rounding, in every row."""
    logits = torch.tensor(_REACHING, dtype=torch.float64).log()
    order = torch.stack([torch.tensor(draw.order(logits.shape[1])) for _ in _REACHING])
    return Case({"logits": logits.gather(1, order), "p": 0.8})


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
        reaching,
        drawn=shares("p"),
        tied=on_the_threshold("p", 0.25, 0.5, 0.75, 1.0),
        title="The most probable tokens that it takes to reach p stay as they are, all others become -inf.",
        points=4,
        refused=({"p": 0.0}, {"p": 1.1}),
        errors="A p of 0, or of more than 1, is a ValueError.",
        edge="What was excluded stays so, equal logits share one fate, a sum of p is enough, a tiny p keeps the best, p = 1 everything.",
    ),
)
