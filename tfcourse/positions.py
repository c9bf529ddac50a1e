"""Positions: how a Transformer, which by itself sees a set, is told in which order things stand.

Shapes: B batch, T length, N rows of a table of positions, D model width. Positions are counted from 0.
"""

import torch
from torch import Tensor

__all__ = ["sinusoidal_positions", "add_positions"]  # noqa: RUF022 - in the order of the syllabus


def sinusoidal_positions(length: int, d_model: int, device: torch.device | str | None = None) -> Tensor:
    """One row of sines and cosines for every position: clock hands that turn at D / 2 different speeds.

    Row t holds, for every i from 0 to D / 2 - 1, sin(t / 10000^(2i / D)) in column 2i and the cosine of the same angle
    in column 2i + 1. The wavelengths grow from 2π in the first pair of columns towards 10000 · 2π in the last. Angles
    are computed in float64, so that far positions are as exact as near ones.

    Args:
        length: Number of positions T.
        d_model: Width D, an even number.
        device: Where to make the rows; None means PyTorch's current default.

    Returns:
        Positions in float32, (T, D).

    Raises:
        ValueError: If `d_model` is not even.

    Source:
        Vaswani et al. 2017, section 3.5.
    """
    if d_model % 2:
        raise ValueError(f"every sine needs its cosine, so d_model must be even, got {d_model}")
    if length < 0 or d_model < 0:
        raise ValueError(f"sizes are not negative, got length={length}, d_model={d_model}")
    position = torch.arange(length, dtype=torch.float64, device=device)  # (T,)
    even = torch.arange(0, d_model, 2, dtype=torch.float64, device=device)  # (D / 2,): the numbers 2i
    angles = position[:, None] / 10_000.0 ** (even / d_model)  # (T, D / 2)
    pairs = torch.stack([angles.sin(), angles.cos()], dim=-1)  # (T, D / 2, 2)
    return pairs.flatten(1).to(torch.float32)  # (T, D)


def add_positions(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """Add to every row of a sequence the row of a table that belongs to its place.

    The table may be given (sinusoids) or learned: then gradients flow back to the rows that were used. Every example
    of the batch gets the same rows. `start` is the place of the first row of `x`, for a sequence that comes in pieces.

    Args:
        x: Sequences, (B, T, D).
        positions: A table of positions, (N, D); its first N places are all that it knows.
        start: The place of the first row of `x`, not negative.

    Returns:
        Sequences with their positions, (B, T, D), in the dtype of `x`.

    Raises:
        ValueError: If the table is not D wide, or has no row for one of the places (`start` + T > N, or `start` < 0).

    Source:
        Vaswani et al. 2017, section 3.5 (given); Gehring et al. 2017, Convolutional Sequence to Sequence Learning,
        section 3.1 (learned).
    """
    if x.ndim != 3 or positions.ndim != 2 or x.shape[-1] != positions.shape[-1]:
        raise ValueError(f"x (B, T, D) and positions (N, D) do not fit: {tuple(x.shape)} and {tuple(positions.shape)}")
    if not x.is_floating_point():
        raise ValueError(f"sequences are floating-point numbers, got {x.dtype}")
    end = start + x.shape[1]
    if start < 0 or end > len(positions):
        raise ValueError(f"the places {start} … {end - 1} are asked for, the table knows 0 … {len(positions) - 1}")
    return x + positions[start:end].to(x.dtype)  # (B, T, D)
