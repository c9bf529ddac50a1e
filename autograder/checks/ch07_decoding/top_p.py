"""The check of ``top_p``: the most probable tokens that reach a probability together.

There are several right ways to sum and to cut. No question depends on which one is taken: no sum is close to p, and the cut never separates
equal tokens.
"""

from __future__ import annotations

import torch

from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import filter_rows, fixed, shares, with_ties
from tfcourse import sampling


def _cuts_between_equals(case: Case) -> bool:
    """Return whether a solution that counts the kept tokens would keep only some of several equal ones."""
    logits, p = case.arguments["logits"], case.arguments["p"]
    probability = torch.softmax(logits.double(), dim=-1).sort(dim=-1, descending=True).values
    counted = (probability.cumsum(dim=-1) - probability < p).sum(dim=-1)
    return not torch.equal(counted, (sampling.top_p(logits, p) > -torch.inf).sum(dim=-1))


def _ties(draw: Draw) -> Case:
    """Logits that come again and again, and a cut that does not separate equals."""
    maker = with_ties(sampling.top_p, shares("p"))
    case = maker(draw)
    while _cuts_between_equals(case):
        case = maker(draw)
    return case


TOP_P = Exercise(
    reference=sampling.top_p,
    rows=filter_rows(
        sampling.top_p,
        {"p": 0.7},
        {"p": 0.9},
        fixed([[4.0, 3.0, 0.0, 1.2, -1.0], [0.5, 2.0, 0.5, -1.5, 1.4]], p=1.0),
        fixed([[0.3, 2.1, -0.4, 0.9]], p=0.01),
        fixed([[0.0, 1.0, -1.0, 1.0, 0.0, -1.0], [-2.0, 0.0, 0.0, -2.0, 0.0, -1.0]], p=0.6),
        drawn=shares("p"),
        tied=_ties,
        equals=False,
        title="The most probable tokens that it takes to reach p stay as they are, all others become -inf.",
        points=4,
        refused=({"p": 0.0}, {"p": 1.1}),
        errors="A p of 0, or of more than 1, is a ValueError.",
        edge="What was excluded stays so, equal logits on one side of the cut stay together, a tiny p keeps the best, p = 1 everything.",
    ),
)
