"""The check of ``top_n_sigma``: keep tokens within a few standard deviations below the best."""

from __future__ import annotations

import math

import torch

from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import filter_rows, fixed, shares
from tfcourse import sampling


def _exactly(draw: Draw) -> Case:
    """Two logits, each equally often, are two deviations apart; some tokens are excluded."""
    gap, often = 2.0 ** int(draw.integers(-1, 3)), int(draw.integers(1, 4))
    logits = torch.tensor([0.0] * often + [-gap] * often + [-math.inf] * int(draw.integers(0, 3)))
    order = torch.tensor(draw.order(len(logits)))
    return Case(
        {"logits": (logits + int(draw.integers(-3, 4)))[order][None], "n": (0.0, 1.0, 2.0)[int(draw.integers(0, 3))]}
    )


TOP_N_SIGMA = Exercise(
    reference=sampling.top_n_sigma,
    rows=filter_rows(
        sampling.top_n_sigma,
        {"n": 1.0},
        {"n": 1.4},
        fixed([[0.3, -1.2, 2.1, 0.9, 2.1]], n=0.0),
        fixed([[0.0, -3.0, -1.0, -4.0, -2.0, -torch.inf]], n=1.35),
        drawn=shares("n", 0.05, 2.2),
        tied=_exactly,
        also=[fixed([[0.0, -3.0, -1.0, -4.0, -2.0], [-4.2, -1.4, -2.8, 0.0, -5.6]], n=1.35)],
        title="Logits at most n deviations below the largest stay as they are, all others become -inf.",
        refused=({"n": -0.1},),
        errors="An n below 0 is a ValueError.",
        edge="What was excluded stays so and does not count, equal logits share one fate, and n = 0 keeps the best.",
    ),
)
