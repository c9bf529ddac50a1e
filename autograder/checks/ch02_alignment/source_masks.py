"""Masks of padded sources, for the checks of encoder, decoder and translator."""

from __future__ import annotations

import torch
from torch import Tensor

from autograder.checking.draw import Draw


def prefix_mask(draw: Draw, b: int, s: int) -> Tensor:
    """True at the real tokens: the last source is whole, the first has two places of padding at least, and none is empty."""
    lengths = 1 + draw.integers(0, s - 1, b)
    lengths[0], lengths[-1] = 1 + int(draw.integers(0, s - 2)), s
    return torch.arange(s) < lengths[:, None]


def first_is_empty(b: int, s: int) -> Tensor:
    """No token in the first source, and no padding in the others."""
    return (torch.arange(b) > 0)[:, None].expand(b, s).clone()
