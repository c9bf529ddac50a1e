"""The check of ``dry_penalty``: what would go on with a repetition is penalised by its length."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.ch07_decoding.texts import one_text_for_all
from tfcourse import sampling

VOCABULARY = 7


def _text(names: list[int]) -> list[int]:
    """The end came three times before, each time a little longer, and went on differently; the longest is neither the first nor the last.

    No repetition overlaps the end.
    """
    a, b, c, x, y, z, once = names
    return [x, b, c, y, z, a, b, c, y, once, b, c, a, y, c, z, c, y, x, a, b, c]


def _repetitive(draw: Draw) -> Tensor:
    return torch.tensor([_text(draw.permutation(VOCABULARY).tolist()) for _ in range(3)])


def _case(draw: Draw, tokens: Tensor, **options: Any) -> Case:
    logits = draw.normal(len(tokens), VOCABULARY)
    return Case({"logits": logits, "tokens": tokens, "multiplier": 0.8, "base": 1.75, "allowed": 2, **options})


def repeated(draw: Draw) -> Case:
    """Repetitions of one, two and three tokens, of which two are allowed."""
    return _case(draw, _repetitive(draw))


def all_of_them(draw: Draw) -> Case:
    """Not even one token is allowed to come again."""
    return _case(draw, _repetitive(draw), allowed=1, base=2.5, multiplier=0.3)


def broken(draw: Draw) -> Case:
    """A breaker within the longest repetition of one row, and one that would go on with it in the other."""
    a, b, c, x, y, z, once = draw.permutation(VOCABULARY).tolist()
    tokens = torch.tensor([_text([a, b, c, x, y, z, once]), _text([x, z, b, c, once, y, a])])
    return _case(draw, tokens, allowed=1, breakers=[a, once])


def overlapping(draw: Draw) -> Case:
    """One token again and again, and two in turns: a repetition may overlap the end of the text."""
    a, b, *_ = draw.permutation(VOCABULARY).tolist()
    return _case(draw, torch.tensor([[a, a, a, a, a], [b, a, b, a, b]]), allowed=1)


def short(draw: Draw) -> Case:
    """A text of one token has not repeated anything."""
    return _case(draw, draw.integers(0, VOCABULARY, 3, 1), allowed=1)


def none_allowed(draw: Draw) -> Case:
    """With an allowed length of 0 every token would be penalised."""
    return _case(draw, _repetitive(draw), allowed=0)


def shrinking(draw: Draw) -> Case:
    """With a base below 1 long repetitions would be cheaper than short ones."""
    return _case(draw, _repetitive(draw), base=0.5)


def free(draw: Draw) -> Case:
    """With a multiplier of 0 nothing is penalised."""
    return _case(draw, _repetitive(draw), multiplier=0.0)


def alike(draw: Draw) -> Case:
    """With a base of 1 long repetitions cost as much as short ones. The tokens are 32-bit integers."""
    return _case(draw, _repetitive(draw).to(torch.int32), base=1.0)


def rewarding(draw: Draw) -> Case:
    """With a multiplier below 0 repetitions would be rewarded."""
    return _case(draw, _repetitive(draw), multiplier=-0.8)


def one_text(draw: Draw) -> Case:
    """One text for all rows."""
    return one_text_for_all(repeated(draw))


def any_text(draw: Draw) -> Case:
    """A text of one to twelve tokens from a few, so that it repeats itself, with one breaker or none."""
    few, length = int(draw.integers(2, 5)), int(draw.integers(1, 13))
    breakers = draw.integers(0, few, int(draw.integers(0, 2))).tolist()
    tokens = draw.integers(0, few, 1 + int(draw.integers(0, 2)), length)
    return _case(draw, tokens, allowed=1 + int(draw.integers(0, 3)), base=1.5, breakers=breakers)


DRY_PENALTY = Exercise(
    reference=sampling.dry_penalty,
    rows=(
        rows.numbers(
            3.75,
            repeated,
            all_of_them,
            title="What would go on with a repetition loses multiplier · base^(m - allowed), for its longest m.",
            gradients=False,
        ),
        rows.numbers(
            2,
            broken,
            name="breakers",
            title="A breaker ends a repetition, and is never penalised itself.",
            gradients=False,
        ),
        rows.many(0.5, any_text, count=40, title="Many random texts are right, with and without a breaker."),
        rows.edge(
            0.5,
            overlapping,
            short,
            free,
            alike,
            name="edges",
            title="A repetition may overlap the end, one token repeats nothing, multiplier 0 and base 1 work.",
            dtypes=(torch.float64, torch.bfloat16),
        ),
        rows.inputs_kept(0.5, repeated, broken),
        rows.device(0.25, repeated, broken),
        rows.errors(
            0.5,
            repeated,
            none_allowed,
            shrinking,
            rewarding,
            one_text,
            title="allowed or base below 1, multiplier below 0, and a text that does not fit the logits, are a ValueError.",
        ),
    ),
)
