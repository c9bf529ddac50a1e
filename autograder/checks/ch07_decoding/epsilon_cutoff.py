"""The check of ``epsilon_cutoff``: a fixed smallest probability."""

from __future__ import annotations

import torch

from autograder.checking.draw import Case
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import exact, filter_rows, fixed, on_the_threshold, shares
from tfcourse import sampling


def _reached(case: Case) -> bool:
    """Whether in each row a token reaches epsilon: rows in which none does are an edge."""
    best = torch.softmax(case.arguments["logits"], dim=-1).amax(dim=-1)
    return bool((best > case.arguments["epsilon"]).all())


EPSILON_CUTOFF = Exercise(
    reference=sampling.epsilon_cutoff,
    rows=filter_rows(
        sampling.epsilon_cutoff,
        {"epsilon": 0.07},
        {"epsilon": 0.09},
        fixed([[0.3, -1.2, 0.5, 0.9, 0.9], [0.8, 0.1, -0.4, 0.3, -2.0]], epsilon=0.8),
        exact(0, 1, 1, epsilon=0.25),
        drawn=shares("epsilon", 0.02, 0.5),
        tied=on_the_threshold("epsilon", 1 / 16, 0.25, 0.5),
        accept=_reached,
        title="Tokens with a probability of at least epsilon stay as they are, all others become -inf.",
        refused=({"epsilon": 0.0}, {"epsilon": 1.0}),
        errors="An epsilon of 0 or 1 is a ValueError.",
        edge="What was excluded stays so, equal logits share one fate, epsilon itself is enough, and each row's best token stays.",
    ),
)
