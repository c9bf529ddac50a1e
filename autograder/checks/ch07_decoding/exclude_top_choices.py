"""The check of ``exclude_top_choices``: now and then the obvious is excluded."""

from __future__ import annotations

from dataclasses import replace

import torch

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.filters import exact, is_robust, share
from autograder.checks.combined_rows import joined
from tfcourse import sampling

# Three tokens reach the threshold of 0.12, or two, or one; their order is shuffled in each row.
KINDS = torch.tensor([[0.4, 0.25, 0.16, 0.09, 0.06, 0.04], [0.5, 0.3, 0.09, 0.06, 0.03, 0.02]]).log()
ONE = torch.tensor([0.8, 0.08, 0.06, 0.03, 0.02, 0.01]).log()


def _case(draw: Draw, *shape: int, probability: float) -> Case:
    kinds = [KINDS[int(draw.integers(0, 2))] + draw.normal(1) for _ in range(int(torch.tensor(shape).prod()))]
    logits = torch.stack([kind[draw.permutation(6)] for kind in kinds]).view(*shape, 6)
    prop = {"kind": "Generator", "init": {"seed": int(draw.integers(1, 10**6))}}
    arguments = {"logits": logits, "threshold": 0.12, "probability": probability}
    return Case(arguments, props={"generator": prop})


def always(draw: Draw) -> Case:
    """Something is excluded in every row, as every number drawn is below 1."""
    return _case(draw, 9, probability=1.0)


def of_three_axes(draw: Draw) -> Case:
    """A row for each position of each example."""
    return _case(draw, 2, 3, probability=1.0)


def by_chance(draw: Draw) -> Case:
    """Something is excluded in some rows and not in others."""
    while True:
        case = _case(draw, 4, 5, probability=0.4)
        seed = case.props["generator"]["init"]["seed"] if case.props else 0
        coins = torch.rand(4, 5, generator=torch.Generator().manual_seed(seed))
        # Nobody's coin is near the threshold, and rows differ within each example and each position.
        mixed = all(
            bool((coins < 0.4).any(dim)[i]) and not bool((coins < 0.4).all(dim)[i]) for dim in (0, 1) for i in range(4)
        )
        if mixed and bool(((coins - 0.4).abs() > 0.01).all()):
            return case


def holes_and_equals(draw: Draw) -> Case:
    """Logits of which some are excluded already; two that are the least probable obvious ones; one obvious token alone."""
    case = always(draw)
    logits = case.arguments["logits"].clone()
    logits[0] = torch.tensor([2.0, 1.0, 1.0, -torch.inf, -2.0, -torch.inf])
    logits[1] = torch.tensor([1.0, 2.0, -3.0, 2.0, -torch.inf, 1.0])
    logits[2] = ONE
    return case.with_arguments(logits=logits)


def without_generator(draw: Draw) -> Case:
    """PyTorch's own generator draws: something is excluded in every row all the same."""
    return replace(always(draw), props=None)


def exactly(draw: Draw) -> Case:
    """Two tokens have exactly the probability of the threshold."""
    return replace(exact(0, 1, 1, threshold=0.25, probability=1.0)(draw), props=always(draw).props)


def never(draw: Draw) -> Case:
    """With a probability of 0 nothing is excluded."""
    return always(draw).with_arguments(probability=0.0)


def nothing_obvious(draw: Draw) -> Case:
    """No token has a probability of 1."""
    return always(draw).with_arguments(threshold=1.0)


def more(draw: Draw, size: int) -> Case:
    """More rows."""
    return _case(draw, 2 * size, probability=1.0)


def no_threshold(draw: Draw) -> Case:
    """A threshold of 0 would exclude everything but one token."""
    return always(draw).with_arguments(threshold=0.0)


def too_high(draw: Draw) -> Case:
    """No token can have a probability above 1."""
    return always(draw).with_arguments(threshold=1.5)


def improbable(draw: Draw) -> Case:
    """A probability below 0."""
    return always(draw).with_arguments(probability=-0.5)


def too_probable(draw: Draw) -> Case:
    """A probability above 1."""
    return always(draw).with_arguments(probability=1.5)


def any_threshold(draw: Draw) -> Case:
    """A small batch and any threshold that no token meets exactly; something is excluded wherever there is a choice."""
    while True:
        logits = draw.normal(int(draw.integers(1, 4)), int(draw.integers(2, 8)), scale=1.5)
        options = {"threshold": share(draw, 0.02, 0.6), "probability": 1.0}
        if is_robust(sampling.exclude_top_choices, options, logits):
            return Case({"logits": logits, **options})


EXCLUDE_TOP_CHOICES = Exercise(
    reference=sampling.exclude_top_choices,
    rows=(
        rows.numbers(
            1.75,
            always,
            always,
            title="Tokens that reach the threshold become -inf, but for the least probable of them.",
            gradients=False,
        ),
        rows.numbers(
            1.25,
            by_chance,
            never,
            name="coin",
            title="In each row the number drawn for it decides whether anything happens; with probability 0 nothing does.",
            gradients=False,
        ),
        rows.many(0.25, any_threshold, title="Many small random batches with other thresholds are right as well."),
        rows.edge(
            0.25,
            holes_and_equals,
            without_generator,
            exactly,
            nothing_obvious,
            of_three_axes,
            name="edges",
            title="Excluded tokens stay excluded, ties are treated alike, a single top choice stays, limits work, and gradients are right.",
        ),
        joined(
            "manner",
            "The inputs are left as they were, it runs on their device, and there is no Python loop over rows.",
            0.25,
            rows.inputs_kept(1, always),
            rows.device(1, without_generator),
            rows.no_loop(1, more, over="rows"),
        ),
        rows.errors(
            0.25,
            always,
            no_threshold,
            too_high,
            improbable,
            too_probable,
            title="A threshold of 0 or above 1, and a probability outside of 0 to 1, are a ValueError.",
        ),
    ),
)
