"""Scaled dot-product attention: lookup, masks, variants, gradients and cost.

Shapes: B batch, T query length, S key/value length, D model width, Dh head width, Dv
value width; `...` stands for any number of leading dimensions. Boolean masks are True
where a query may attend. This is the convention of
`torch.nn.functional.scaled_dot_product_attention`; `torch.nn.MultiheadAttention` uses
the opposite one.

Products are written with `@`, which contracts the last axis of the left factor with the
last but one of the right. `torch.einsum` would name the axes; the trailing comments do.

Half precision: the largest float16 number is 65504, and bfloat16 has 8 significant
bits. Scores and their softmax are therefore computed in float32 or wider
(`torch.promote_types`), and the result is rounded to the dtype of the inputs.
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

__all__ = [  # noqa: RUF022 - in the order of the syllabus
    "soft_lookup",
    "masked_attention_weights",
    "scaled_dot_product_attention",
    "causal_mask",
    "padding_mask",
    "attention_projections",
    "projected_attention",
    "cosine_attention",
    "score_variance",
    "merge_query_key",
    "attention_backward",
    "tiled_attention",
    "attention_cost",
    "AttentionCost",
]


class AttentionCost(NamedTuple):
    """The cost of one attention call in FLOP and bytes."""

    flops: int
    """Floating-point operations; a multiply-add counts as two."""
    bytes: int
    """Bytes that inputs, weights and output occupy together."""


def _check_inputs(q: Tensor, k: Tensor, v: Tensor | None = None, mask: Tensor | None = None) -> None:
    """Raise a ValueError that names the offending shapes or dtypes if attention cannot be computed."""
    named = {name: x for name, x in (("q", q), ("k", k), ("v", v)) if x is not None}
    seen = ", ".join(f"{name} {tuple(x.shape)}" for name, x in named.items())
    if any(x.ndim < 2 for x in named.values()):
        raise ValueError(f"queries, keys and values need at least 2 dimensions (length, width), got {seen}")
    if not q.is_floating_point() or any(x.dtype != q.dtype for x in named.values()):
        dtypes = ", ".join(f"{name} {x.dtype}" for name, x in named.items())
        raise ValueError(f"queries, keys and values must share one floating-point dtype, got {dtypes}")
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(f"queries and keys must have the same width, got {q.shape[-1]} and {k.shape[-1]} ({seen})")
    if v is not None and k.shape[-2] != v.shape[-2]:
        raise ValueError(f"each key needs one value, got {k.shape[-2]} keys and {v.shape[-2]} values ({seen})")
    try:
        leading = np.broadcast_shapes(*(x.shape[:-2] for x in named.values()))
    except ValueError as error:
        raise ValueError(f"the leading dimensions cannot be broadcast to one shape: {seen}") from error
    if mask is None:
        return
    if mask.dtype != torch.bool:
        raise ValueError(f"mask must be boolean, True where a query may attend, got {mask.dtype}")
    scores = (*leading, q.shape[-2], k.shape[-2])
    pairs = zip(reversed(mask.shape), reversed(scores), strict=False)
    if mask.ndim > len(scores) or any(have not in (1, want) for have, want in pairs):
        raise ValueError(f"mask {tuple(mask.shape)} cannot be broadcast to the scores {scores} ({seen})")


def soft_lookup(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Look up a query in a soft dictionary: average the values by how well keys match.

    The score of an entry is the dot product of its key with the query, not scaled. A
    softmax over the S entries turns the scores into weights, and the answer is the
    weighted sum of the values. Scores and softmax are computed in float32 if the inputs
    are float16 or bfloat16.

    Args:
        query: The query vector, (Dh,).
        keys: One key per entry, (S, Dh).
        values: One value per entry, (S, Dv).

    Returns:
        The weighted average of the values, (Dv,), in the dtype of `values`.

    Source:
        Graves et al. 2014, Neural Turing Machines, section 3.1, equation 2 (reading);
        the weights follow Vaswani et al. 2017, section 3.2, without the scaling.
    """
    if keys.ndim != 2 or query.shape != keys.shape[1:]:
        raise ValueError(f"query (Dh,) and keys (S, Dh) do not fit: {tuple(query.shape)} and {tuple(keys.shape)}")
    if values.ndim != 2 or len(values) != len(keys):
        raise ValueError(f"keys (S, Dh) and values (S, Dv) do not fit: {tuple(keys.shape)} and {tuple(values.shape)}")
    wide = torch.promote_types(query.dtype, torch.float32)
    scores = keys.to(wide) @ query.to(wide)  # (S,)
    weights = torch.softmax(scores, dim=0)
    return weights.to(values.dtype) @ values


def masked_attention_weights(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """Compute the attention weights: a softmax over the keys of q·k / sqrt(Dh).

    Masked pairs have weight exactly 0, and the weights of each query sum to 1. A fully
    masked row gives zeros, and its gradients are zeros too, never NaN. Large scores do
    not overflow: float16 and bfloat16 inputs are scored in float32.

    Args:
        q: Queries, (..., T, Dh).
        k: Keys, (..., S, Dh).
        mask: Boolean, broadcastable to (..., T, S), True where a query may attend; None
            permits every pair.

    Returns:
        Weights, (..., T, S), in the dtype of `q`.

    Raises:
        ValueError: If `mask` is not boolean.

    Source:
        Vaswani et al. 2017, Attention Is All You Need, section 3.2.1, equation 1; the
        mask: section 3.2.3.
    """
    _check_inputs(q, k, mask=mask)
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, S)
    if mask is None:
        return torch.softmax(scores, dim=-1).to(q.dtype)
    # The lowest finite number rather than -inf: beside any permitted score its exponential is exactly 0 as well, but a
    # row of -inf alone would pass through 0/0 = NaN. Filled with the lowest number such a row comes out uniform, so the
    # forbidden pairs are set to 0 once more. No gradient flows through either fill.
    scores = scores.masked_fill(~mask, torch.finfo(wide).min)
    return torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0).to(q.dtype)


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Compute scaled dot-product attention: a weighted average of the values per query.

    A fully masked query gives zeros, and its gradients are zeros.

    Args:
        q: Queries, (..., T, Dh).
        k: Keys, (..., S, Dh).
        v: Values, (..., S, Dv).
        mask: Boolean, broadcastable to (..., T, S), True where a query may attend; None
            permits every pair.

    Returns:
        Outputs, (..., T, Dv), in the dtype of the inputs.

    Source:
        Vaswani et al. 2017, section 3.2.1, equation 1.
    """
    _check_inputs(q, k, v, mask)
    return masked_attention_weights(q, k, mask) @ v


def causal_mask(T: int, device: torch.device | str | None = None) -> Tensor:
    """Return the causal mask: position i may attend to itself and to earlier positions.

    Args:
        T: Length of the sequence.
        device: Device of the mask; None means PyTorch's default device.

    Returns:
        Boolean, (T, T), True on and below the diagonal.

    Source:
        Vaswani et al. 2017, section 3.2.3, third point.
    """
    return torch.ones(T, T, dtype=torch.bool, device=device).tril()


def padding_mask(lengths: Tensor, S: int | None = None) -> Tensor:
    """Return the mask of a padded batch: no query may attend to padding.

    Args:
        lengths: Number of real positions of each sequence, (B,), of an integer dtype. A
            length of 0 or less permits no key; a length of S or more permits every key.
        S: Length to which the batch is padded; None means the largest of `lengths`.
            None needs the values of `lengths`, so it does not work on the `meta`
            device.

    Returns:
        Boolean, (B, 1, S), on the device of `lengths`, True where the index of the key
        is smaller than the length. The middle dimension broadcasts over the queries.

    Raises:
        ValueError: If `lengths` does not have an integer dtype or does not have the
            shape (B,).

    Source:
        Vaswani et al. 2017, section 3.2.3 (illegal connections are masked before the
        softmax; here also padding).
    """
    if lengths.ndim != 1 or lengths.is_floating_point() or lengths.dtype == torch.bool:
        raise ValueError(f"lengths must be integers of shape (B,), got {lengths.dtype} of shape {tuple(lengths.shape)}")
    if S is None:
        S = int(lengths.max())
    keys = torch.arange(S, device=lengths.device)
    return keys < lengths[:, None, None]  # (B, 1, S)


def attention_projections(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Project inputs to queries, keys and values, without biases.

    Inputs are rows, one per position. Queries come from `x_q`, keys and values from
    `x_kv`; in self-attention both are the same sequence.

    Args:
        x_q: Sequence for the queries, (..., T, D).
        x_kv: Sequence for the keys and values, (..., S, D).
        w_q: Query matrix, (D, Dk).
        w_k: Key matrix, (D, Dk).
        w_v: Value matrix, (D, Dv).

    Returns:
        The tuple (q, k, v) with shapes (..., T, Dk), (..., S, Dk) and (..., S, Dv).

    Source:
        Vaswani et al. 2017, section 3.2.2 (the projections of one head).
    """
    for x, w, name in ((x_q, w_q, "w_q"), (x_kv, w_k, "w_k"), (x_kv, w_v, "w_v")):
        if w.ndim != 2 or x.shape[-1] != w.shape[0]:
            raise ValueError(f"{name} {tuple(w.shape)} cannot project inputs of shape {tuple(x.shape)}")
    return x_q @ w_q, x_kv @ w_k, x_kv @ w_v


def projected_attention(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Compute attention from inputs: softmax(X_Q W_Q (X_KV W_K)ᵀ / sqrt(Dk)) X_KV W_V.

    Args:
        x_q: Sequence for the queries, (..., T, D).
        x_kv: Sequence for the keys and values, (..., S, D).
        w_q: Query matrix, (D, Dk).
        w_k: Key matrix, (D, Dk).
        w_v: Value matrix, (D, Dv).
        mask: Boolean, broadcastable to (..., T, S), True where a query may attend; None
            permits every pair. A fully masked query gives zeros.

    Returns:
        Outputs, (..., T, Dv), in the dtype of the inputs.

    Source:
        Vaswani et al. 2017, sections 3.2.1 and 3.2.2 (one head, before the output
        projection).
    """
    q, k, v = attention_projections(x_q, x_kv, w_q, w_k, w_v)
    return scaled_dot_product_attention(q, k, v, mask)


def cosine_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """Compute attention with cosine scores: weights softmax(scale · cos(q_i, k_j)).

    The cosine is between -1 and 1, so it is not divided by sqrt(Dh); `scale` sharpens
    the weights instead. The zero vector has cosine 0 with every vector, never NaN. A
    fully masked query gives zeros.

    Args:
        q: Queries, (..., T, Dh).
        k: Keys, (..., S, Dh).
        v: Values, (..., S, Dv).
        mask: Boolean, broadcastable to (..., T, S), True where a query may attend; None
            permits every pair.
        scale: Factor before the softmax (an inverse temperature, "key strength" in the
            source).

    Returns:
        Outputs, (..., T, Dv), in the dtype of the inputs.

    Source:
        Graves et al. 2014, Neural Turing Machines, section 3.3.1, equations 5 and 6.
    """
    _check_inputs(q, k, v, mask)
    wide = torch.promote_types(q.dtype, torch.float32)
    q_norm = torch.linalg.vector_norm(q, dim=-1, keepdim=True, dtype=wide)
    k_norm = torch.linalg.vector_norm(k, dim=-1, keepdim=True, dtype=wide)
    # Divided by infinity, a zero vector stays zero and so does its gradient; divided by 0 or by a tiny epsilon it
    # would give NaN or a gradient that explodes.
    q_unit = q / q_norm.masked_fill(q_norm == 0, math.inf)
    k_unit = k / k_norm.masked_fill(k_norm == 0, math.inf)
    # masked_attention_weights divides by sqrt(Dh): put it back, a cosine is not to be scaled by it.
    weights = masked_attention_weights(scale * math.sqrt(q.shape[-1]) * q_unit, k_unit, mask)
    return weights.to(v.dtype) @ v


def score_variance(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """Compute the variance of the scores, the reason for the factor 1 / sqrt(Dh).

    If the components of q and k are independent with mean 0 and variance 1, the
    variance is about Dh without scaling and about 1 with it. It is the population
    variance (divided by the number of scores, without Bessel's correction) of the T·S
    scores of each leading index. float16 and bfloat16 inputs are computed in float32.

    Args:
        q: Queries, (..., T, Dh).
        k: Keys, (..., S, Dh).
        scaled: Divide the dot products by sqrt(Dh) first.

    Returns:
        Variances, one per leading index, (...), in the dtype of `q`.

    Source:
        Vaswani et al. 2017, section 3.2.1, footnote 4.
    """
    _check_inputs(q, k)
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = q.to(wide) @ k.to(wide).transpose(-2, -1)  # (..., T, S)
    if scaled:
        scores = scores / math.sqrt(q.shape[-1])
    return scores.var(dim=(-2, -1), correction=0).to(q.dtype)


def merge_query_key(w_q: Tensor, w_k: Tensor) -> Tensor:
    """Merge the query and key matrices into W; x_q W x_kᵀ are the unscaled scores.

    The scores depend on the two matrices only through this product. Its rank is at most
    Dk, and it has D·D parameters instead of 2·D·Dk: four times as many for D = 512 and
    Dk = 64. Inputs are rows: a query is x_q @ w_q.

    Args:
        w_q: Query matrix, (D, Dk).
        w_k: Key matrix, (D, Dk).

    Returns:
        The merged matrix W, (D, D).

    Source:
        Elhage et al. 2021, A Mathematical Framework for Transformer Circuits, the
        query-key circuit; the sizes: Vaswani et al. 2017, section 3.2.2.
    """
    if w_q.ndim != 2 or w_k.ndim != 2 or w_q.shape[1] != w_k.shape[1]:
        raise ValueError(f"w_q and w_k must have the same width Dk, got {tuple(w_q.shape)} and {tuple(w_k.shape)}")
    return w_q @ w_k.transpose(0, 1)


def attention_backward(
    q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the gradients of scaled dot-product attention without autograd.

    Given the gradient of a loss with respect to the output of
    `scaled_dot_product_attention(q, k, v, mask)`, compute the gradients with respect to
    q, k and v. Masked pairs contribute nothing; a fully masked query has gradient 0 and
    adds 0 to the gradients of keys and values. float16 and bfloat16 inputs are computed
    in float32.

    Args:
        q: Queries, (..., T, Dh).
        k: Keys, (..., S, Dh).
        v: Values, (..., S, Dv).
        grad_output: Gradient of the loss with respect to the output, (..., T, Dv).
        mask: Boolean, broadcastable to (..., T, S), True where a query may attend; None
            permits every pair.

    Returns:
        The tuple (grad_q, grad_k, grad_v), with the shapes and the dtype of q, k and v.

    Source:
        The chain rule; Dao et al. 2022, FlashAttention, appendix B.2 has the same
        equations.
    """
    _check_inputs(q, k, v, mask)
    if not q.shape[:-2] == k.shape[:-2] == v.shape[:-2] or grad_output.shape != (*q.shape[:-1], v.shape[-1]):
        shapes = ", ".join(str(tuple(x.shape)) for x in (q, k, v, grad_output))
        raise ValueError(f"q, k, v and grad_output do not fit together: {shapes}")
    dtype, wide = q.dtype, torch.promote_types(q.dtype, torch.float32)
    q, k, v, grad_output = q.to(wide), k.to(wide), v.to(wide), grad_output.to(wide)
    weights = masked_attention_weights(q, k, mask)  # (..., T, S)
    grad_v = weights.transpose(-2, -1) @ grad_output
    grad_weights = grad_output @ v.transpose(-2, -1)  # (..., T, S)
    # Through the softmax: its weights sum to 1, so the weighted mean of grad_weights has no effect and is taken out.
    grad_scores = weights * (grad_weights - (weights * grad_weights).sum(dim=-1, keepdim=True))
    grad_scores = grad_scores / math.sqrt(q.shape[-1])
    grad_q = grad_scores @ k
    grad_k = grad_scores.transpose(-2, -1) @ q
    return grad_q.to(dtype), grad_k.to(dtype), grad_v.to(dtype)


def tiled_attention(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """Compute scaled dot-product attention tile by tile, without storing all weights.

    The output equals that of `scaled_dot_product_attention(q, k, v)`, but no
    intermediate tensor has T·S elements: the largest has T·tile_size, so memory grows
    linearly with the length. Each query keeps three running quantities (an online
    softmax), which are corrected when a tile contains a larger score. Large scores do
    not overflow. Autograd works but stores every tile; training in linear memory would
    need to recompute the tiles in the backward pass.

    Args:
        q: Queries, (..., T, Dh).
        k: Keys, (..., S, Dh).
        v: Values, (..., S, Dv).
        tile_size: Number of keys per tile; the last tile may be smaller.

    Returns:
        Outputs, (..., T, Dv), in the dtype of the inputs.

    Raises:
        ValueError: If `tile_size` is less than 1, if there are no keys, or if keys and
            values differ in number.

    Source:
        Milakov and Gimelshein 2018, algorithm 3 (online softmax); Rabe and Staats 2021,
        section 2; Dao et al. 2022, FlashAttention, section 3.1.
    """
    _check_inputs(q, k, v)
    S = k.shape[-2]
    if tile_size < 1 or S < 1:
        raise ValueError(f"tile_size and the number of keys must be at least 1, got tile_size={tile_size} and S={S}")
    wide = torch.promote_types(q.dtype, torch.float32)
    best = torch.full_like(q[..., :1], -math.inf, dtype=wide)  # (..., T, 1), largest score so far
    total = torch.zeros_like(best)  # (..., T, 1), sum of exp(score - best) so far
    output = torch.zeros_like(best)  # (..., T, Dv) from the first tile on, not yet normalised
    for start in range(0, S, tile_size):
        k_tile, v_tile = (x[..., start : start + tile_size, :].to(wide) for x in (k, v))
        scores = q.to(wide) @ k_tile.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., T, tile)
        # Any reference point gives the same output, so no gradient has to flow through the maximum.
        new_best = torch.maximum(best, scores.amax(dim=-1, keepdim=True)).detach()
        correction = torch.exp(best - new_best)
        weights = torch.exp(scores - new_best)  # (..., T, tile)
        total = total * correction + weights.sum(dim=-1, keepdim=True)
        output = output * correction + weights @ v_tile
        best = new_best
    return (output / total).to(q.dtype)


def attention_cost(T: int, S: int, Dh: int, Dv: int, itemsize: int = 4) -> AttentionCost:
    """Count the FLOP and bytes of attention for one head and one sequence.

    FLOP are counted for the two matrix products (scores, and weights times values), two
    per multiply-add; scaling and softmax are not counted. Bytes are counted for all
    tensors that are in memory at once: queries, keys, values, one matrix of T·S
    weights, and the output.

    Args:
        T: Number of queries.
        S: Number of keys and values.
        Dh: Width of queries and keys.
        Dv: Width of values.
        itemsize: Bytes per number (4 for float32, 2 for float16 and bfloat16).

    Returns:
        An `AttentionCost` with the integers `flops` and `bytes`.

    Source:
        Vaswani et al. 2017, section 4, table 1 (complexity per layer of
        self-attention).
    """
    flops = 2 * T * S * Dh + 2 * T * S * Dv
    numbers = T * Dh + S * Dh + S * Dv + T * S + T * Dv
    return AttentionCost(flops=flops, bytes=itemsize * numbers)
