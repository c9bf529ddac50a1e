"""Relative positions: ALiBi, RoPE in both layouts (interleaved and half-split), and context-window extension for RoPE.

An offset is the key's position minus the query's position. In `rotary_score` the sign
is opposite, as in its source.

Shapes: B batch, T query length, S key length, H heads, D model width, Dh width of a
head, V vocabulary, F frequencies.
"""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from tfcourse.attention import causal_mask, scaled_dot_product_attention
from tfcourse.dtypes import widest_float
from tfcourse.multihead import merge_heads, split_heads

__all__ = [  # noqa: RUF022 - in the order of the lesson
    "alibi_slopes",
    "alibi_bias",
    "rotary_frequencies",
    "rotary_embedding",
    "rotary_score",
    "convert_rotary_weight",
    "RotaryAttention",
    "interpolate_positions",
    "ntk_theta",
    "scale_frequencies_llama3",
    "loss_by_position",
]


def alibi_slopes(n_heads: int) -> Tensor:
    """Return the slopes of ALiBi: how fast each head's attention falls with distance.

    If H is a power of two, head h, counted from 0, has the slope 2^(-8 (h + 1) / H).
    For any other H, let p be the largest power of two below it: take the slopes of p
    heads, then every second slope of 2p heads, beginning with the first, until there
    are H.

    Args:
        n_heads: Number of heads H, at least 1.

    Returns:
        Slopes, (H,), float32.

    Raises:
        ValueError: If `n_heads` is below 1.

    Source:
        Press et al. 2022, Train Short, Test Long, section 3; the rule for other numbers
        of heads is that of the paper's code.
    """
    if n_heads < 1:
        raise ValueError(f"there is at least one head, got {n_heads}")
    power = 2 ** (n_heads.bit_length() - 1)
    own = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    between = [2 ** (-8 * (head + 1) / (2 * power)) for head in range(0, 2 * power, 2)]
    return torch.tensor((own + between)[:n_heads], dtype=torch.float32)


def alibi_bias(slopes: Tensor, T: int, S: int, *, start: int = 0) -> Tensor:
    """Return what ALiBi adds to the scores: minus slope times distance, for each head.

    Query t has position i = `start` + t, and key s has position j = s. The bias is
    -slope · abs(i - j).

    Args:
        slopes: One per head, (H,).
        T: Number of queries.
        S: Number of keys.
        start: Position of the first query, for queries that follow cached tokens.

    Returns:
        Biases, (H, T, S), in the dtype and on the device of `slopes`.

    Source:
        Press et al. 2022, section 3.
    """
    query = start + torch.arange(T, device=slopes.device)  # (T,)
    key = torch.arange(S, device=slopes.device)  # (S,)
    distance = (query[:, None] - key).abs()  # (T, S), integers: the product takes the dtype of the slopes
    return -slopes[:, None, None] * distance  # (H, T, S)


def rotary_frequencies(d_head: int, theta: float = 10_000.0, device: torch.device | str | None = None) -> Tensor:
    """Return the angle in radians by which each pair of columns turns per position.

    Pair j of the Dh / 2 pairs, counted from 0, has the frequency theta^(-2j / Dh). The
    first pair turns by one radian per position, the last by little more than 1 / theta.

    Args:
        d_head: Width of a head Dh, an even number.
        theta: The base; Llama 3 uses 500,000.
        device: Device of the result; None means PyTorch's current default.

    Returns:
        Frequencies, (Dh / 2,), in float64, or in float32 on a device without float64.

    Raises:
        ValueError: If `d_head` is odd.

    Source:
        Su et al. 2021, RoFormer, section 3.2.2.
    """
    if d_head % 2:
        raise ValueError(f"columns are turned in pairs, so d_head must be even, got {d_head}")
    even = torch.arange(0, d_head, 2, dtype=widest_float(device), device=device)  # (Dh / 2,): the numbers 2j
    return theta ** (-even / d_head)


def rotary_embedding(x: Tensor, positions: Tensor, frequencies: Tensor, *, interleaved: bool = False) -> Tensor:
    """Rotate each pair of columns by an angle proportional to the row's position.

    The angle of pair j at position p is p · frequency_j. The pair (a, b) becomes (a cos
    - b sin, b cos + a sin). With F frequencies the first 2F columns are rotated, and
    the columns after them stay as they are. Half-split, the default: pair j is column j
    and column F + j. Interleaved: pair j is columns 2j and 2j + 1.

    Args:
        x: Queries or keys, (..., T, Dh).
        positions: Position of each row, (T,) or broadcastable to (..., T); integers or
            floating point.
        frequencies: Angle per position, (F,), F at most Dh / 2.
        interleaved: Whether neighbouring columns form a pair.

    Returns:
        Rotated rows, (..., T, Dh), in the dtype of `x`. Angles are computed in float64.
        The rotation is computed in float64 if `x` is float64 and in float32 otherwise,
        and the result is rounded once.

    Raises:
        ValueError: If there are more frequencies than pairs of columns.

    Source:
        Su et al. 2021, section 3.2.2 (interleaved). Half-split is the layout of
        GPT-NeoX and of Llama in Hugging Face's library.
    """
    turned = 2 * len(frequencies)
    if turned > x.shape[-1]:
        raise ValueError(f"{len(frequencies)} frequencies turn {turned} columns, x has {x.shape[-1]}")
    wide = torch.promote_types(x.dtype, torch.float32)
    angles = positions[..., None] * frequencies.to(widest_float(frequencies.device))  # (..., T, F)
    cos, sin = angles.cos().to(wide), angles.sin().to(wide)
    rows = x[..., :turned]
    a, b = (rows[..., 0::2], rows[..., 1::2]) if interleaved else rows.chunk(2, dim=-1)  # (..., T, F) each
    pair = (a * cos - b * sin, b * cos + a * sin)
    new = torch.stack(pair, dim=-1).flatten(-2) if interleaved else torch.cat(pair, dim=-1)  # (..., T, 2F)
    return torch.cat([new.to(x.dtype), x[..., turned:]], dim=-1)  # (..., T, Dh)


def rotary_score(q: Tensor, k: Tensor, offset: Tensor, frequencies: Tensor) -> Tensor:
    """Return the score of a rotated query and a rotated key without rotating either.

    With interleaved pairs (q0, q1) and (k0, k1) and the angle a = offset · frequency,
    each pair gives (q0 k0 + q1 k1) cos a + (q0 k1 - q1 k0) sin a. The score is the sum
    over all pairs. It is not divided by sqrt(Dh).

    Args:
        q: Queries before rotation, (..., Dh).
        k: Keys before rotation, (..., Dh).
        offset: Position of the query minus position of the key, broadcastable to (...).
        frequencies: Angle per position, (Dh / 2,).

    Returns:
        Scores, (...), in the dtype of `q`. Angles are computed in float64, and half
        precision is computed in float32.

    Raises:
        ValueError: If the number of frequencies is not Dh / 2.

    Source:
        Su et al. 2021, section 3.4.2, written out for each pair.
    """
    if 2 * len(frequencies) != q.shape[-1]:
        raise ValueError(f"{q.shape[-1]} columns are {q.shape[-1] / 2:g} pairs, got {len(frequencies)} frequencies")
    wide = torch.promote_types(q.dtype, torch.float32)
    q_wide = q.to(wide)  # products with k are wide, too
    q0, q1 = q_wide[..., 0::2], q_wide[..., 1::2]  # (..., Dh / 2) each
    k0, k1 = k[..., 0::2], k[..., 1::2]
    angle = offset[..., None] * frequencies.to(widest_float(frequencies.device))  # (..., Dh / 2)
    along, across = q0 * k0 + q1 * k1, q0 * k1 - q1 * k0
    return (along * angle.cos().to(wide) + across * angle.sin().to(wide)).sum(dim=-1).to(q.dtype)


def convert_rotary_weight(weight: Tensor, n_heads: int, *, to: Literal["half", "interleaved"]) -> Tensor:
    """Reorder the rows of a query or key projection for the other pairing of columns.

    The scores stay the same. Within each head, rows 0, 2, 4, … of the interleaved order
    are the first half of the half-split order, and rows 1, 3, 5, … are the second half.

    Args:
        weight: Weight of `q_proj` or `k_proj`, (H·Dh, D), or its bias, (H·Dh,).
        n_heads: Number of heads H.
        to: The pairing to convert to; `weight` is in the order of the other one.

    Returns:
        The same numbers with the rows of each head reordered.

    Raises:
        ValueError: If `to` is unknown, or the rows do not form H heads of even width.

    Source:
        Su et al. 2021, section 3.2.2, and the layout of GPT-NeoX.
    """
    if to not in ("half", "interleaved"):
        raise ValueError(f"to is 'half' or 'interleaved', got {to!r}")
    if len(weight) % (2 * n_heads):
        raise ValueError(f"{len(weight)} rows are not {n_heads} heads of an even width")
    d_head = len(weight) // n_heads
    inner = (d_head // 2, 2) if to == "half" else (2, d_head // 2)
    heads = weight.reshape(n_heads, *inner, *weight.shape[1:])  # (H, Dh / 2, 2, ...) or (H, 2, Dh / 2, ...)
    return heads.transpose(1, 2).reshape(weight.shape)  # (H·Dh, ...)


class RotaryAttention(nn.Module):
    """Causal multi-head self-attention with RoPE, half-split.

    Queries and keys are rotated by their positions, values are not. The projections
    `q_proj`, `k_proj`, `v_proj` and `o_proj` are as in `MultiHeadAttention`, and the
    state dict has no other entries. `n_heads` and `theta` are kept as attributes.

    Args:
        d_model: Width D.
        n_heads: Heads H; D / H is an even number.
        theta: The base of the frequencies.
        bias: Whether the four projections have a bias.

    Raises:
        ValueError: If D cannot be divided into H heads of even width.

    Source:
        Su et al. 2021, section 3.2.2.
    """

    def __init__(self, d_model: int, n_heads: int, *, theta: float = 10_000.0, bias: bool = False) -> None:
        super().__init__()
        if d_model % (2 * n_heads):
            raise ValueError(f"d_model={d_model} cannot be divided into n_heads={n_heads} of an even width")
        self.n_heads = n_heads
        self.theta = theta
        self.q_proj = nn.Linear(d_model, d_model, bias=bias)
        self.k_proj = nn.Linear(d_model, d_model, bias=bias)
        self.v_proj = nn.Linear(d_model, d_model, bias=bias)
        self.o_proj = nn.Linear(d_model, d_model, bias=bias)

    def forward(self, x: Tensor, start: int = 0, frequencies: Tensor | None = None, scale: float = 1.0) -> Tensor:
        """Let every position attend to itself and to earlier positions.

        Args:
            x: The sequence, (B, T, D).
            start: Position of its first row.
            frequencies: Angle per position, (Dh / 2,); None means the frequencies of
                `theta`.
            scale: Factor for the positions, as in `interpolate_positions`.

        Returns:
            Outputs, (B, T, D).
        """
        q, k, v = (split_heads(project(x), self.n_heads) for project in (self.q_proj, self.k_proj, self.v_proj))
        if frequencies is None:
            frequencies = rotary_frequencies(q.shape[-1], self.theta, x.device)
        places = torch.arange(start, start + x.shape[1], dtype=widest_float(x.device), device=x.device)
        places = interpolate_positions(places, scale)  # (T,)
        q, k = rotary_embedding(q, places, frequencies), rotary_embedding(k, places, frequencies)  # (B, H, T, Dh)
        heads = scaled_dot_product_attention(q, k, v, causal_mask(x.shape[1], x.device))
        return self.o_proj(merge_heads(heads))


def interpolate_positions(positions: Tensor, scale: float) -> Tensor:
    """Scale the positions of a long sequence into the range of the training positions.

    Args:
        positions: Integers or floating point, of any shape.
        scale: Training length divided by the new length, above 0 and at most 1.

    Returns:
        The scaled positions, of the same shape: in float64 if `positions` is float64,
        in float32 otherwise.

    Raises:
        ValueError: If `scale` is not above 0 and at most 1.

    Source:
        Chen et al. 2023, Extending Context Window of Large Language Models via
        Positional Interpolation, section 2.3.
    """
    if not 0 < scale <= 1:
        raise ValueError(f"scale is above 0 and at most 1, got {scale}")
    return positions.to(torch.promote_types(positions.dtype, torch.float32)) * scale


def ntk_theta(theta: float, factor: float, d_head: int) -> float:
    """Return the base with which the slowest pair turns `factor` times more slowly.

    The fastest pair keeps its speed.

    Args:
        theta: The base that the model was trained with.
        factor: New length divided by training length, at least 1.
        d_head: Width of a head Dh, an even number above 2.

    Returns:
        theta · factor^(Dh / (Dh - 2)).

    Raises:
        ValueError: If `factor` is below 1, or `d_head` is not an even number above 2.

    Source:
        Peng et al. 2023, YaRN, section 3.1 ("NTK-aware" interpolation).
    """
    if factor < 1:
        raise ValueError(f"a text is stretched by at least 1, got {factor}")
    if d_head <= 2 or d_head % 2:
        raise ValueError(f"d_head is an even number above 2, got {d_head}")
    return theta * float(factor ** (d_head / (d_head - 2)))


def scale_frequencies_llama3(
    frequencies: Tensor,
    *,
    factor: float = 8.0,
    low: float = 1.0,
    high: float = 4.0,
    original_length: int = 8192,
) -> Tensor:
    """Slow down the slow pairs for a longer context and keep the fast ones (Llama 3.1).

    A pair that makes more than `high` turns within the training length keeps its
    frequency f. A pair that makes fewer than `low` turns gets f / factor. Between them,
    with r turns and the weight s = (r - low) / (high - low), the frequency becomes
    s · f + (1 - s) · f / factor.

    Args:
        frequencies: Angle per position, (F,).
        factor: New length divided by training length.
        low: Number of turns below which a pair is fully slowed down.
        high: Number of turns above which a pair is kept.
        original_length: Training length.

    Returns:
        Frequencies, (F,), in the dtype of the old ones.

    Source:
        The released code of Llama 3.1 (Meta 2024).
    """
    turns = original_length * frequencies / (2 * math.pi)  # (F,): how often the pair comes round in the trained length
    share = ((turns - low) / (high - low)).clamp(0, 1)  # 0: wholly stretched, 1: as it was
    return share * frequencies + (1 - share) * frequencies / factor


def loss_by_position(logits: Tensor, targets: Tensor, *, bins: int) -> Tensor:
    """Return the mean loss in each of `bins` equal segments of a sequence.

    The loss of a position is minus the logarithm of the probability of its target.

    Args:
        logits: (B, T, V).
        targets: The token to be predicted at each position, integers (B, T).
        bins: Number of segments; divides T.

    Returns:
        Mean loss in nats over the sequences and the positions of each segment, (bins,),
        in the dtype of `logits`. Half precision is computed in float32.

    Raises:
        ValueError: If T cannot be divided into `bins` segments.

    Source:
        Press et al. 2022, appendix B (loss by position in the window).
    """
    length = targets.shape[1]
    if length % bins:
        raise ValueError(f"{length} positions cannot be divided into {bins} equal segments")
    log_p = torch.log_softmax(logits.to(torch.promote_types(logits.dtype, torch.float32)), dim=-1)  # (B, T, V)
    surprise = -log_p.gather(-1, targets[..., None])[..., 0]  # (B, T)
    stretches = surprise.reshape(len(surprise), bins, -1)  # (B, bins, T / bins)
    return stretches.mean(dim=(0, 2)).to(logits.dtype)  # (bins,)
