"""Llama: queries that share keys, the norm and the gated network of today's models, and what a token costs in bytes and seconds.

A boolean mask is True where a query may attend. A cache is a list with a pair for each layer: its turned keys and its values so far.

Shapes: B batch, T query length, S key/value length, P length of what is cached, V vocabulary, D model width, H query heads, G
key/value heads, R = H / G query heads that share one, Dh and Dv widths of a head, F feed-forward width, L layers.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfcourse.alignment import masked_softmax
from tfcourse.gpt import KeysAndValues
from tfcourse.multihead import merge_heads, split_heads
from tfcourse.rotary import rotary_embedding, rotary_frequencies, scale_frequencies_llama3

__all__ = [  # noqa: RUF022 - in the order of the lesson
    "grouped_query_attention",
    "pool_key_value_heads",
    "RmsNorm",
    "SwiGlu",
    "GroupedQueryAttention",
    "LlamaLayer",
    "Llama",
    "LlamaParameters",
    "llama_parameters",
    "kv_cache_bytes",
    "DecodeCost",
    "decode_cost",
    "Latency",
    "inference_latency",
    "largest_batch",
]


def grouped_query_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Scaled dot-product attention in which R = H / G query heads in a row share one key/value head.

    Query head h asks key/value head h // R. G = H is multi-head attention, G = 1 multi-query attention. Keys and values are not copied
    for each query head. A fully masked row gives zeros.

    Args:
        q: Queries, (..., H, T, Dh).
        k: Keys, (..., G, S, Dh).
        v: Values, (..., G, S, Dv).
        mask: Boolean, True where a query may attend, broadcastable to (..., H, T, S); None permits every pair.

    Returns:
        Outputs, (..., H, T, Dv), in the dtype of `q`; half precision is computed in float32 and rounded once.

    Raises:
        ValueError: If the H query heads cannot be shared out among G key/value heads.

    Source:
        Ainslie et al. 2023, GQA, section 2.2.
    """
    n_heads, n_kv_heads = q.shape[-3], k.shape[-3]
    if n_heads % n_kv_heads or v.shape[-3] != n_kv_heads:
        raise ValueError(f"{n_heads} query heads cannot share {n_kv_heads} key and {v.shape[-3]} value heads")
    group = n_heads // n_kv_heads
    wide = torch.promote_types(q.dtype, torch.float32)
    # The queries of a group stand below each other, as if they were one longer text: (..., G, R·T, Dh).
    asked = q.to(wide).reshape(*q.shape[:-3], n_kv_heads, group * q.shape[-2], q.shape[-1])
    scores = asked @ k.to(wide).mT / math.sqrt(q.shape[-1])  # (..., G, R·T, S)
    scores = scores.reshape(*q.shape[:-1], k.shape[-2])  # (..., H, T, S)
    weights = masked_softmax(scores, mask)
    shared = weights.reshape(*q.shape[:-3], n_kv_heads, group * q.shape[-2], k.shape[-2])  # (..., G, R·T, S)
    return (shared @ v.to(wide)).reshape(*q.shape[:-1], v.shape[-1]).to(q.dtype)  # (..., H, T, Dv)


def pool_key_value_heads(weight: Tensor, n_old: int, n_new: int) -> Tensor:
    """Make few key or value heads of many: each new one is the mean of neighbours.

    Args:
        weight: Weights of `k_proj` or `v_proj`, (G_old·Dh, D).
        n_old: Heads that there are, G_old.
        n_new: Heads that are wanted, G_new; divides G_old.

    Returns:
        Weights, (G_new·Dh, D).

    Raises:
        ValueError: If G_new does not divide G_old, or G_old does not divide the rows.

    Source:
        Ainslie et al. 2023, section 2.1.
    """
    if n_new < 1 or n_old % n_new or len(weight) % n_old:
        raise ValueError(f"{len(weight)} rows of {n_old} heads cannot be pooled into {n_new}")
    groups = weight.reshape(n_new, n_old // n_new, len(weight) // n_old, *weight.shape[1:])  # (G_new, R, Dh, D)
    return groups.mean(dim=1).flatten(0, 1)  # (G_new·Dh, D)


class RmsNorm(nn.Module):
    """Divide each row by its root mean square, as Llama does it: round first, then stretch.

    The normalised row is computed in float32, rounded to the dtype of `x`, and then multiplied with `weight`, (D,), which begins as
    ones. In half precision this rounds twice; checkpoints were trained with it.

    Args:
        d_model: Width D.
        eps: Added to the mean square.

    Source:
        Zhang and Sennrich 2019, Root Mean Square Layer Normalization, equation 4; the order is that of Llama's code.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalise every row.

        Args:
            x: Rows, (..., D).

        Returns:
            Rows, (..., D), in the dtype that `x` and `weight` have together.
        """
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        mean_square = wide.square().mean(dim=-1, keepdim=True)  # (..., 1)
        return self.weight * (wide * torch.rsqrt(mean_square + self.eps)).to(x.dtype)


class SwiGlu(nn.Module):
    """The gated feed-forward network: one map decides how much of another passes.

    Three maps without biases: `gate_proj` and `up_proj` (D -> F), `down_proj` (F -> D). The output is down(silu(gate(x)) · up(x)), with
    silu(z) = z · sigmoid(z).

    Args:
        d_model: Width D.
        d_ff: Inner width F.

    Source:
        Shazeer 2020, GLU Variants Improve Transformer, equation 6.
    """

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = (nn.Linear(d_model, d_ff, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Think about every row by itself.

        Args:
            x: Rows, (..., D).

        Returns:
            Rows, (..., D).
        """
        narrowed: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return narrowed


class GroupedQueryAttention(nn.Module):
    """Causal self-attention of Llama: H query heads, G key/value heads, rotations, and a cache.

    Its maps have no biases: `q_proj` (D -> H·Dh), `k_proj` and `v_proj` (D -> G·Dh), `o_proj` (H·Dh -> D). Queries and keys are turned
    by their places, half-split; keys are kept turned. The attributes `n_heads`, `n_kv_heads` and `d_head` are kept.

    Args:
        d_model: Width D.
        n_heads: Query heads H.
        n_kv_heads: Key/value heads G; divides H.
        d_head: Width of a head Dh; None means D / H.

    Raises:
        ValueError: If G does not divide H, or, without `d_head`, H does not divide D.

    Source:
        Ainslie et al. 2023, section 2.2; Touvron et al. 2023, Llama 2, section 2.2.
    """

    def __init__(self, d_model: int, n_heads: int, n_kv_heads: int, *, d_head: int | None = None) -> None:
        super().__init__()
        if n_kv_heads < 1 or n_heads % n_kv_heads:
            raise ValueError(f"{n_heads} query heads cannot share {n_kv_heads} key/value heads")
        if d_head is None and d_model % n_heads:
            raise ValueError(f"d_model={d_model} cannot be divided into n_heads={n_heads}")
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.d_head = d_model // n_heads if d_head is None else d_head
        self.q_proj = nn.Linear(d_model, n_heads * self.d_head, bias=False)
        self.k_proj = nn.Linear(d_model, n_kv_heads * self.d_head, bias=False)
        self.v_proj = nn.Linear(d_model, n_kv_heads * self.d_head, bias=False)
        self.o_proj = nn.Linear(n_heads * self.d_head, d_model, bias=False)

    def forward(
        self, x: Tensor, frequencies: Tensor, past: KeysAndValues | None = None
    ) -> tuple[Tensor, KeysAndValues]:
        """Let T new tokens attend to the P before them and to themselves, each up to its own place.

        Args:
            x: New tokens, (B, T, D).
            frequencies: Angle for each place, (Dh / 2,).
            past: Turned keys and values of the tokens before, (B, G, P, Dh) each; None means that there are none. It is left as it was.

        Returns:
            Outputs, (B, T, D), and the keys and values to keep, (B, G, P + T, Dh) each, the new ones last.
        """
        q = split_heads(self.q_proj(x), self.n_heads)  # (B, H, T, Dh)
        k, v = (split_heads(project(x), self.n_kv_heads) for project in (self.k_proj, self.v_proj))  # (B, G, T, Dh)
        start = 0 if past is None else past[0].shape[-2]
        places = start + torch.arange(x.shape[1], device=x.device)  # (T,)
        q, k = rotary_embedding(q, places, frequencies), rotary_embedding(k, places, frequencies)
        if past is not None:
            k, v = torch.cat([past[0], k], dim=-2), torch.cat([past[1], v], dim=-2)  # (B, G, P + T, Dh)
        mask = places[:, None] >= torch.arange(k.shape[-2], device=x.device)  # (T, P + T)
        output: Tensor = self.o_proj(merge_heads(grouped_query_attention(q, k, v, mask)))
        return output, (k, v)


class LlamaLayer(nn.Module):
    """A layer of Llama: attention and a gated network, each with a norm before it and a residual connection.

    Its parts are `self_attention_norm`, `self_attention`, `feed_forward_norm` and `feed_forward`.

    Args:
        d_model: Width D.
        n_heads: Query heads H.
        n_kv_heads: Key/value heads G.
        d_ff: Inner width F of the feed-forward network.
        eps: That of both norms.

    Source:
        Touvron et al. 2023, LLaMA, section 2.2.
    """

    def __init__(self, d_model: int, n_heads: int, n_kv_heads: int, d_ff: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.self_attention_norm = RmsNorm(d_model, eps=eps)
        self.self_attention = GroupedQueryAttention(d_model, n_heads, n_kv_heads)
        self.feed_forward_norm = RmsNorm(d_model, eps=eps)
        self.feed_forward = SwiGlu(d_model, d_ff)

    def forward(
        self, x: Tensor, frequencies: Tensor, past: KeysAndValues | None = None
    ) -> tuple[Tensor, KeysAndValues]:
        """Let T new tokens look back, and think about what they saw.

        Args:
            x: New tokens, (B, T, D).
            frequencies: Angle for each place, (Dh / 2,).
            past: Keys and values of the tokens before, (B, G, P, Dh) each; None means that there are none.

        Returns:
            New tokens, (B, T, D), and the keys and values to keep, (B, G, P + T, Dh) each.
        """
        seen, cache = self.self_attention(self.self_attention_norm(x), frequencies, past)
        x = x + seen
        return x + self.feed_forward(self.feed_forward_norm(x)), cache


class Llama(nn.Module):
    """Llama: embeddings, layers, a norm, and an output matrix; chapter 09's `generate` runs it.

    Its parts are `embedding`, `layers`, `norm` and `output`, a map without a bias. When `tie_weights` is asked for there is no
    `output`, and logits are products with the embedding. Embeddings are not scaled. All matrices begin as normal numbers of standard
    deviation 0.02.

    Args:
        vocabulary: V.
        d_model: Width D.
        n_heads: Query heads H; divides D.
        n_kv_heads: Key/value heads G; divides H.
        d_ff: Inner width F.
        n_layers: Layers L.
        theta: Base of the rotations.
        eps: That of all norms.
        tie_weights: Whether the embedding is the output matrix, too.
        rope_scaling: Arguments of `scale_frequencies_llama3`; None means that frequencies are not scaled.

    Source:
        Grattafiori et al. 2024, The Llama 3 Herd of Models, section 3.2.
    """

    def __init__(
        self,
        vocabulary: int,
        *,
        d_model: int,
        n_heads: int,
        n_kv_heads: int,
        d_ff: int,
        n_layers: int,
        theta: float = 500_000.0,
        eps: float = 1e-5,
        tie_weights: bool = False,
        rope_scaling: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.theta = theta
        self.rope_scaling = rope_scaling
        self.embedding = nn.Embedding(vocabulary, d_model)
        self.layers = nn.ModuleList(LlamaLayer(d_model, n_heads, n_kv_heads, d_ff, eps=eps) for _ in range(n_layers))
        self.norm = RmsNorm(d_model, eps=eps)
        self.output = None if tie_weights else nn.Linear(d_model, vocabulary, bias=False)
        self.d_head = d_model // n_heads
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(
        self, tokens: Tensor, cache: Sequence[KeysAndValues] | None = None
    ) -> tuple[Tensor, list[KeysAndValues]]:
        """Predict the token after each place.

        Args:
            tokens: New tokens, integers (B, T).
            cache: What the tokens before them have left; None means that there are none. It is left as it was.

        Returns:
            Logits, (B, T, V), and the cache with the new tokens in it. Any cut of a text into pieces gives the logits of one pass.
        """
        # Made here: a stored tensor would stay behind when the model moves.
        frequencies = rotary_frequencies(self.d_head, self.theta, tokens.device)
        if self.rope_scaling is not None:
            frequencies = scale_frequencies_llama3(frequencies, **self.rope_scaling)
        x = self.embedding(tokens)  # (B, T, D)
        kept = []
        for number, layer in enumerate(self.layers):
            x, keys_and_values = layer(x, frequencies, None if cache is None else cache[number])
            kept.append(keys_and_values)
        x = self.norm(x)
        logits: Tensor = x @ self.embedding.weight.mT if self.output is None else self.output(x)  # (B, T, V)
        return logits, kept


class LlamaParameters(NamedTuple):
    """How many parameters the parts of a Llama have."""

    embedding: int
    """The matrix of embeddings."""
    attention: int
    """The four maps of all layers."""
    feed_forward: int
    """The three maps of all layers."""
    norms: int
    """Two for each layer, and the last."""
    output: int
    """The output matrix; 0 if it is the embedding."""


def llama_parameters(
    vocabulary: int, d_model: int, n_heads: int, n_kv_heads: int, d_ff: int, n_layers: int, *, tied: bool = False
) -> LlamaParameters:
    """Count the parameters of a Llama.

    Args:
        vocabulary: V, all rows of the embedding.
        d_model: Width D.
        n_heads: Query heads H; divides D.
        n_kv_heads: Key/value heads G.
        d_ff: Inner width F.
        n_layers: Layers L.
        tied: Whether the embedding is the output matrix, too.

    Returns:
        A `LlamaParameters`: whole numbers that add up to the whole model.

    Source:
        Grattafiori et al. 2024, table 3.
    """
    kv_width = d_model // n_heads * n_kv_heads
    return LlamaParameters(
        embedding=vocabulary * d_model,
        attention=n_layers * 2 * (d_model * d_model + d_model * kv_width),
        feed_forward=n_layers * 3 * d_model * d_ff,
        norms=(2 * n_layers + 1) * d_model,
        output=0 if tied else vocabulary * d_model,
    )


def kv_cache_bytes(
    n_layers: int, n_kv_heads: int, d_head: int, length: int, *, batch: int = 1, bytes_per_number: int = 2
) -> int:
    """What the keys and values of a text weigh.

    Args:
        n_layers: Layers L.
        n_kv_heads: Key/value heads G.
        d_head: Width of a head Dh.
        length: Tokens of each text.
        batch: Texts.
        bytes_per_number: 2 for half precision.

    Returns:
        Bytes.

    Source:
        Pope et al. 2022, Efficiently Scaling Transformer Inference, section 2.1.
    """
    return 2 * n_layers * n_kv_heads * d_head * length * batch * bytes_per_number


class DecodeCost(NamedTuple):
    """What the next token of every text of a batch costs."""

    flops: int
    """Multiplications and additions."""
    weight_bytes: int
    """Bytes of weights that are read, once for the whole batch."""
    cache_bytes: int
    """Bytes of keys and values that are read, for each text its own."""


def decode_cost(
    weights: int,
    n_layers: int,
    n_heads: int,
    n_kv_heads: int,
    d_head: int,
    length: int,
    *,
    batch: int = 1,
    bytes_per_number: int = 2,
) -> DecodeCost:
    """What one step of generation costs: sums to do and bytes to read.

    Each text takes two operations for each weight, and for each of the tokens so far 4·L·H·Dh more for scores and sums of values.

    Args:
        weights: Parameters that are multiplied: attention, feed-forward and output matrices, all layers.
        n_layers: Layers L.
        n_heads: Query heads H.
        n_kv_heads: Key/value heads G.
        d_head: Width of a head Dh.
        length: Tokens so far.
        batch: Texts.
        bytes_per_number: 2 for half precision, of weights and cache alike.

    Returns:
        A `DecodeCost` of whole numbers.

    Source:
        Pope et al. 2022, section 2.1.
    """
    return DecodeCost(
        flops=batch * (2 * weights + 4 * n_layers * n_heads * d_head * length),
        weight_bytes=weights * bytes_per_number,
        cache_bytes=kv_cache_bytes(
            n_layers, n_kv_heads, d_head, length, batch=batch, bytes_per_number=bytes_per_number
        ),
    )


class Latency(NamedTuple):
    """How long a step takes, and what it waits for."""

    seconds: float
    """Seconds."""
    bound: Literal["compute", "bandwidth"]
    """The slower of the two clocks."""


def inference_latency(
    flops: float, bytes_moved: float, *, peak_flops: float, bandwidth: float, n_devices: int = 1
) -> Latency:
    """The least time for some sums and some bytes: both run at once, and the slower clock counts.

    Args:
        flops: Operations.
        bytes_moved: Bytes read and written.
        peak_flops: Operations a second, of one device.
        bandwidth: Bytes a second, of one device.
        n_devices: Devices that share both kinds of work evenly.

    Returns:
        A `Latency`; where both clocks take equally long, its bound is "compute".

    Raises:
        ValueError: If a rate or the number of devices is not positive.

    Source:
        Williams et al. 2009, Roofline, section 3.
    """
    if peak_flops <= 0 or bandwidth <= 0 or n_devices < 1:
        raise ValueError(f"rates are positive, got {peak_flops} and {bandwidth} on {n_devices} devices")
    computing = flops / (peak_flops * n_devices)
    moving = bytes_moved / (bandwidth * n_devices)
    return Latency(computing, "compute") if computing >= moving else Latency(moving, "bandwidth")


def largest_batch(memory_bytes: int, weight_bytes: int, cache_bytes_per_sequence: int) -> int:
    """How many texts fit beside the weights.

    Args:
        memory_bytes: Memory of all devices together.
        weight_bytes: The weights, which are there once.
        cache_bytes_per_sequence: Keys and values of one text, more than 0.

    Returns:
        A whole number; 0 if nothing fits.

    Raises:
        ValueError: If a text has no bytes.

    Source:
        Kwon et al. 2023, Efficient Memory Management for Large Language Model Serving with PagedAttention, section 1.
    """
    if cache_bytes_per_sequence < 1:
        raise ValueError(f"keys and values of a text have at least one byte, got {cache_bytes_per_sequence}")
    return max(0, (memory_bytes - weight_bytes) // cache_bytes_per_sequence)
