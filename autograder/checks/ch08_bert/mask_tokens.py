"""The check of ``mask_tokens``: chosen, masked, replaced, or left as they were."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.combined_rows import also_asking
from tfcourse import bert

V = 13
MASK = 4
B, T = 4, 24


def _has_all_kinds(tokens: Tensor, seen: Tensor, labels: Tensor) -> bool:
    """Return whether some chosen positions are masked, some random and some unchanged, and no two rows are equal."""
    chosen = labels != -100
    masked, unchanged = chosen & (seen == MASK), chosen & (seen == tokens)
    other = chosen & ~masked & ~unchanged
    return bool(masked.sum() > 2 and unchanged.sum() > 2 and other.any()) and len(set(map(tuple, chosen.tolist()))) == B


def _case(draw: Draw, special: Tensor, **options: float) -> Case:
    """Tokens that are never the mask, and a seed with which every kind occurs, and would occur without special places too."""
    tokens = draw.integers(5, V, B, T)
    arguments: dict[str, Any] = {"tokens": tokens, "special": special, "mask_id": MASK, "vocab_size": V, **options}
    while True:
        seed = int(draw.integers(1, 10**6))
        masked, labels = bert.mask_tokens(**arguments, generator=torch.Generator().manual_seed(seed))
        everywhere = {**arguments, "special": torch.zeros_like(special)}
        _, without = bert.mask_tokens(**everywhere, generator=torch.Generator().manual_seed(seed))
        hit = bool(((without != -100) & special).any()) or not bool(special.any())
        if _has_all_kinds(tokens, masked, labels) and hit:
            return Case(arguments, props={"generator": {"kind": "Generator", "init": {"seed": seed}}})


def whole_texts(draw: Draw) -> Case:
    """No place is special."""
    return _case(draw, torch.zeros(B, T, dtype=torch.bool))


def framed_texts(draw: Draw) -> Case:
    """The first and the last tokens are special, and in two rows more of them."""
    ends = 8 + draw.permutation(8)[:B]
    places = torch.arange(T)
    return _case(draw, (places == 0) | (places >= ends[:, None]))


def another_share(draw: Draw) -> Case:
    """Another share of places."""
    return _case(draw, torch.zeros(B, T, dtype=torch.bool), probability=0.4)


def another_width(draw: Draw) -> Case:
    """Integers of 32 bits."""
    case = framed_texts(draw)
    return case.with_arguments(tokens=case.arguments["tokens"].int())


def any_texts(draw: Draw) -> Case:
    """Small batches, one text and one token among them, any share of places, and any special places."""
    b, t = int(draw.integers(1, 4)), int(draw.integers(1, 9))
    vocab_size = 6 + int(draw.integers(0, 9))
    arguments: dict[str, Any] = {
        "tokens": draw.integers(5, vocab_size, b, t),
        "special": draw.integers(0, 4, b, t) == 0,
        "mask_id": MASK,
        "vocab_size": vocab_size,
        "probability": (0.0, 0.15, 0.5, 1.0)[int(draw.integers(0, 4))],
    }
    return Case(arguments, props={"generator": {"kind": "Generator", "init": {"seed": int(draw.integers(1, 10**6))}}})


MASK_TOKENS = Exercise(
    reference=bert.mask_tokens,
    rows=(
        rows.numbers(
            3.5,
            whole_texts,
            gradients=False,
            title="With the draws in the order of the docstring, what the model sees and the labels are right.",
        ),
        rows.numbers(
            2,
            framed_texts,
            name="special",
            gradients=False,
            title="Special positions are neither chosen nor asked for.",
        ),
        rows.numbers(
            1.25, another_share, name="probability", gradients=False, title="Another share of positions may be chosen."
        ),
        also_asking(
            rows.edge(
                0.25,
                another_width,
                name="edges",
                gradients=False,
                dtypes=(),
                title="Integers keep their dtype, and many small random batches with other probabilities are right.",
            ),
            rows.many(0, any_texts, title=""),
        ),
        rows.inputs_kept(0.5, framed_texts),
        rows.device(0.5, framed_texts),
    ),
)
