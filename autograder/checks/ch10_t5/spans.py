"""Share texts, masks of hidden spans and sentinels among the checks of spans."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking.draw import Draw

SENTINELS = (90, 91, 92, 93, 94, 95)
DESCENDING = (99, 98, 97, 96, 95)


def text(draw: Draw, length: int) -> Tensor:
    """Tokens that are no sentinels, pairwise different."""
    return 10 + draw.permutation(60)[:length]


def noise(lengths: list[int]) -> Tensor:
    """A mask of alternating runs, beginning with a kept one (which may be empty)."""
    return torch.cat([torch.full((length,), bool(index % 2)) for index, length in enumerate(lengths)])


def runs(draw: Draw) -> list[int]:
    """Kept and hidden runs of different lengths; a hidden one at the end."""
    a, b, c, d = (1 + draw.permutation(4)).tolist()
    return [a, 2 + int(draw.integers(0, 3)), b, 1, c, 2 + d]
