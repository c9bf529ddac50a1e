"""The check of ``roberta_positions``: real tokens are counted, padding is not."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.combined_rows import also_asking
from tfcourse import bert


def _texts(draw: Draw, real: Tensor, pad: int) -> Case:
    tokens = draw.integers(0, 9, *real.shape)
    tokens = torch.where(tokens == pad, tokens + 10, tokens)
    return Case({"tokens": torch.where(real, tokens, pad), "pad": pad})


def ends_early(draw: Draw) -> Case:
    """Texts of several lengths, padded at their ends."""
    ends = 2 + draw.permutation(5)[:4]
    return _texts(draw, torch.arange(7) < ends[:, None], pad=1)


def another_padding(draw: Draw) -> Case:
    """The same with another number for padding."""
    ends = 1 + draw.permutation(5)[:3]
    return _texts(draw, torch.arange(6) < ends[:, None], pad=int(draw.integers(2, 6)))


def in_the_middle(draw: Draw) -> Case:
    """Padding before, between and behind the tokens."""
    real = torch.ones(4, 8, dtype=torch.bool)
    early, middle, single, late = draw.integers(1, 4, 4).tolist()
    real[0, :early] = real[1, middle : middle + 2] = real[2, single] = False
    real[2, 8 - late :] = real[3, ::2] = False
    return _texts(draw, real[draw.permutation(4)], pad=1)


def more(draw: Draw, size: int) -> Case:
    """More and longer texts."""
    return _texts(draw, torch.arange(3 * size) < torch.arange(1, 2 * size + 1)[:, None], pad=1)


def any_ends(draw: Draw) -> Case:
    """Texts of any length, none and the whole row among them, and any padding."""
    b, t = int(draw.integers(1, 4)), int(draw.integers(1, 6))
    return _texts(draw, torch.arange(t) < draw.integers(0, t + 1, b)[:, None], pad=int(draw.integers(0, 4)))


def any_gaps(draw: Draw) -> Case:
    """Padding anywhere."""
    b, t = int(draw.integers(1, 4)), int(draw.integers(2, 8))
    return _texts(draw, draw.integers(0, 3, b, t) > 0, pad=int(draw.integers(0, 4)))


ROBERTA_POSITIONS = Exercise(
    reference=bert.roberta_positions,
    rows=(
        rows.numbers(
            1.75,
            ends_early,
            ends_early,
            gradients=False,
            title="Tokens count from pad + 1, and padding at the end has pad.",
        ),
        also_asking(
            rows.many(0.5, any_ends, title="Many random batches with other padding tokens are right as well."),
            rows.numbers(0, another_padding, gradients=False),
        ),
        also_asking(
            rows.numbers(
                1, in_the_middle, name="gaps", gradients=False, title="Padding that stands elsewhere is not counted."
            ),
            rows.many(0, any_gaps, count=32, title=""),
        ),
        rows.no_loop(0.5, more, over="texts or tokens"),
        rows.inputs_kept(0.25, ends_early),
    ),
)
