"""Position encodings: sinusoidal, learned and relative.

Shapes: B batch, T length, S key/value length, N rows of a position table, D model
width, Dh and Dv widths of a head's keys and values. Positions count from 0; an offset
is the key's position minus the query's position.
"""

import math

import torch
from torch import Tensor

from tfcourse.alignment import masked_softmax
from tfcourse.dtypes import widest_float

__all__ = ["sinusoidal_positions", "add_positions", "relative_attention"]  # noqa: RUF022 - in the order of the syllabus


def sinusoidal_positions(length: int, d_model: int, device: torch.device | str | None = None) -> Tensor:
    """Compute sinusoidal position encodings: sines and cosines with D / 2 wavelengths.

    Row t contains, for every i from 0 to D / 2 - 1, sin(t / 10000^(2i / D)) in column
    2i and the cosine of the same angle in column 2i + 1. The wavelengths grow from 2π
    in the first pair of columns towards 10000 · 2π in the last. Angles are computed in
    `widest_float(device)`: in float64, large positions are as accurate as small ones.

    Args:
        length: Number of positions T.
        d_model: Width D, an even number.
        device: Device of the result; None means PyTorch's current default.

    Returns:
        Position encodings in float32, (T, D).

    Raises:
        ValueError: If `d_model` is not even, or a size is negative.

    Source:
        Vaswani et al. 2017, section 3.5.
    """
    if d_model % 2:
        raise ValueError(f"every sine needs its cosine, so d_model must be even, got {d_model}")
    if min(length, d_model) < 0:
        raise ValueError(f"sizes are not negative, got length={length}, d_model={d_model}")
    position = torch.arange(length, device=device)  # (T,)
    even = torch.arange(0, d_model, 2, dtype=widest_float(device), device=device)  # (D / 2,): the numbers 2i
    angles = position[:, None] / 10_000.0 ** (even / d_model)  # (T, D / 2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1).to(torch.float32)  # (T, D / 2, 2) -> (T, D)


def add_positions(x: Tensor, positions: Tensor, start: int = 0) -> Tensor:
    """Add to every row of a sequence the table row of its position.

    The table is fixed (sinusoids) or learned; gradients flow into the rows that are
    used. All examples of the batch get the same rows. `start` allows a sequence to be
    processed in pieces.

    Args:
        x: Sequences, (B, T, D).
        positions: Position table, (N, D), for the positions 0 to N - 1.
        start: Position of the first row of `x`, not negative.

    Returns:
        Sequences with their positions, (B, T, D), in the dtype of `x`.

    Raises:
        ValueError: If `x` is not a floating-point tensor (B, T, D), the table is not
            (N, D), or it lacks a row for a position (`start` + T > N, or `start` < 0).

    Source:
        Vaswani et al. 2017, section 3.5 (fixed); Gehring et al. 2017, Convolutional
        Sequence to Sequence Learning, section 3.1 (learned).
    """
    if x.ndim != 3 or positions.ndim != 2 or x.shape[-1] != positions.shape[-1]:
        raise ValueError(f"x (B, T, D) and positions (N, D) do not fit: {tuple(x.shape)} and {tuple(positions.shape)}")
    if not x.is_floating_point():
        raise ValueError(f"sequences are floating-point numbers, got {x.dtype}")
    end = start + x.shape[1]
    if start < 0 or end > len(positions):
        raise ValueError(f"the positions {start} … {end - 1} are asked for, the table has 0 … {len(positions) - 1}")
    return x + positions[start:end].to(x.dtype)  # (B, T, D)


def relative_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    key_offsets: Tensor,
    value_offsets: Tensor | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """Compute attention with a vector per offset, for keys and for values.

    Query i and key j have the offset j - i, clipped to -K … K; its vector is row K +
    offset of a table. The two tables may have different numbers of rows; each then has
    its own K. The scores are (q_i · k_j + q_i · r_offset) / sqrt(Dh) with the vectors r
    of `key_offsets`. Output i is the sum over j of the weight times (v_j + u_offset)
    with the vectors u of `value_offsets`. Queries and keys both count from 0. A fully
    masked row gives zeros.

    Args:
        q: Queries, (..., T, Dh).
        k: Keys, (..., S, Dh).
        v: Values, (..., S, Dv).
        key_offsets: One vector per offset, from -K to K, (2K + 1, Dh); all heads share
            them.
        value_offsets: The same for the values, (2K' + 1, Dv), where K' may differ from
            K; None adds nothing to them.
        mask: Boolean, True where a query may attend, broadcastable to (..., T, S); None
            permits every pair.

    Returns:
        Outputs, (..., T, Dv), in the dtype of `q`. Half precision is computed in
        float32 and rounded once.

    Raises:
        ValueError: If the number of rows of a table is even, or its width is not that
            of the keys or values.

    Source:
        Shaw et al. 2018, Self-Attention with Relative Position Representations, section
        3 (equations 3 and 4).
    """
    for name, table, width in (
        ("key_offsets", key_offsets, k.shape[-1]),
        ("value_offsets", value_offsets, v.shape[-1]),
    ):
        if table is not None and (len(table) % 2 == 0 or table.shape[-1] != width):
            raise ValueError(f"{name} is (2K + 1, {width}), got {tuple(table.shape)}")
    wide = torch.promote_types(q.dtype, torch.float32)
    q_wide, T, S = q.to(wide), q.shape[-2], k.shape[-2]
    row = _rows(key_offsets, T, S)
    # One product for each offset and not for each pair: (..., T, 2K + 1), spread to the pairs afterwards.
    by_offset = (q_wide @ key_offsets.to(wide).mT).gather(-1, row.expand(*q.shape[:-2], T, S))  # (..., T, S)
    scores = (q_wide @ k.to(wide).mT + by_offset) / math.sqrt(q.shape[-1])  # (..., T, S)
    weights = masked_softmax(scores, mask)
    output = weights @ v.to(wide)  # (..., T, Dv)
    if value_offsets is not None:
        row = _rows(value_offsets, T, S).expand_as(weights)
        share = weights.new_zeros(*weights.shape[:-1], len(value_offsets))  # (..., T, 2K + 1): weight of each offset
        share = share.scatter_add(-1, row, weights)
        output = output + share @ value_offsets.to(wide)
    return output.to(q.dtype)


def _rows(table: Tensor, T: int, S: int) -> Tensor:
    """Return the row of a table of 2K + 1 offsets for every query and key, (T, S)."""
    furthest = len(table) // 2
    offset = torch.arange(S, device=table.device) - torch.arange(T, device=table.device)[:, None]
    return offset.clamp(-furthest, furthest) + furthest
