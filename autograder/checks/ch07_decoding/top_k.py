"""The check of ``top_k``: the k most probable tokens."""

from __future__ import annotations

from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import (
    Parameters,
    filter_rows,
    fixed,
    logits_for,
    with_ties,
)
from tfcourse import sampling


def _some(draw: Draw, v: int) -> Parameters:
    return {"k": 1 + int(draw.integers(0, v))}


def _any_number(draw: Draw, v: int) -> Parameters:
    return {"k": 1 + int(draw.integers(0, v + 3))}


def unseen_k(draw: Draw) -> Case:
    """A k that no visible test has: a recorded answer, fitted by rank, keeps another number of tokens."""
    b, more = draw.sizes(2, low=3)
    parameters = {"k": draw.unseen(2, 6)}
    return Case({"logits": logits_for(draw, sampling.top_k, parameters, b, 6 + more, part=True), **parameters})


TOP_K = Exercise(
    reference=sampling.top_k,
    rows=filter_rows(
        sampling.top_k,
        {"k": 3},
        {"k": 5},
        fixed([[0.3, -1.2, 2.1, 0.9]], k=50),
        fixed([[0.3, -1.2, 2.1, 0.9], [1.5, 0.2, -0.4, 0.1]], k=1),
        drawn=_some,
        also=[unseen_k],
        tied=with_ties(sampling.top_k, _any_number),
        title="The k most probable tokens stay as they are, all others become -inf.",
        refused=({"k": 0}, {"k": -2}),
        errors="A k below 1 is a ValueError.",
        edge="What was excluded stays so, equal logits share one fate, k = 1 keeps the best, and a k larger than V everything.",
    ),
)
