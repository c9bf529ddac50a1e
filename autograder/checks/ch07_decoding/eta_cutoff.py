"""The check of ``eta_cutoff``: a smallest probability that falls with the entropy."""

from __future__ import annotations

from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import exact, filter_rows, fixed, shares
from tfcourse import sampling

ETA_CUTOFF = Exercise(
    reference=sampling.eta_cutoff,
    rows=filter_rows(
        sampling.eta_cutoff,
        {"epsilon": 0.15},
        {"epsilon": 0.2},
        exact(0, 1, 2, 4, 4, 4, 4, epsilon=1 / 32),
        drawn=shares("epsilon", 0.005, 0.7),
        also=[fixed([[0.0, -3.7, -1.49], [-1.49, 0.0, -3.7]], epsilon=0.15)],
        title="Tokens with a probability of at least min(ε, √ε · e^-H) stay as they are, all others become -inf.",
        refused=({"epsilon": 0.0}, {"epsilon": 1.0}),
        errors="An epsilon of 0 or 1 is a ValueError.",
        edge="What was excluded stays so, equal logits share one fate, and the threshold itself is enough.",
    ),
)
