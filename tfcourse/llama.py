"""Llama: grouped-query attention, RMS norm, gated feed-forward network, model, and bytes and seconds per token.

Boolean masks are True where a query may attend. A cache is a list with one pair per
layer: its rotated keys and its values so far.

Shapes: B batch, T query length, S key/value length, P tokens in the cache, V
vocabulary, D model width. H is the number of query heads, G of key/value heads, and
R = H / G query heads share one of these. Dh and Dv are head widths, F feed-forward
width, L layers.
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
    """Compute attention in which each key/value head serves R = H / G query heads.

    Query head h uses key/value head h // R. G = H is multi-head attention, G = 1
    multi-query attention. Keys and values are not copied for each query head.
    A fully masked row gives zeros.

    Args:
        q: Queries, (..., H, T, Dh).
        k: Keys, (..., G, S, Dh).
        v: Values, (..., G, S, Dv).
        mask: Boolean, True where a query may attend, broadcastable to
            (..., H, T, S); None permits every pair.

    Returns:
        Outputs, (..., H, T, Dv), in the dtype of `q`.

    Raises:
        ValueError: If G does not divide H, or keys and values differ in G.

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
    """Reduce the number of key or value heads: each new head is the mean of neighbours.

    Args:
        weight: Weights of `k_proj` or `v_proj`, (G_old·Dh, D).
        n_old: Heads before, G_old.
        n_new: Heads after, G_new; divides G_old.

    Returns:
        Weights, (G_new·Dh, D).

    Raises:
        ValueError: If G_new does not divide G_old.

    Source:
        Ainslie et al. 2023, section 2.1.
    """
    if n_old % n_new:
        raise ValueError(f"{len(weight)} rows of {n_old} heads cannot be pooled into {n_new}")
    groups = weight.reshape(n_new, n_old // n_new, len(weight) // n_old, *weight.shape[1:])  # (G_new, R, Dh, D)
    return groups.mean(dim=1).flatten(0, 1)  # (G_new·Dh, D)


class RmsNorm(nn.Module):
    """Divide each row by its root mean square and multiply by a weight, as Llama does.

    The row is normalised in float32, or in float64 if `x` is float64. It is rounded
    to the dtype of `x` and then multiplied by `weight`, (D,), which starts as ones.
    In half precision this rounds twice, as when the published weights were trained.

    Args:
        d_model: Width D.
        eps: Added to the mean square.

    Source:
        Zhang and Sennrich 2019, Root Mean Square Layer Normalization, equation 4.
        The order of rounding is that of Llama's code.
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
            Rows, (..., D), in the dtype to which `x` and `weight` promote.
        """
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        mean_square = wide.square().mean(dim=-1, keepdim=True)  # (..., 1)
        return self.weight * (wide * torch.rsqrt(mean_square + self.eps)).to(x.dtype)


class SwiGlu(nn.Module):
    """The gated feed-forward network: one map decides how much of another passes.

    It has three maps without biases: `gate_proj` and `up_proj` (D -> F), and
    `down_proj` (F -> D). The output is down(silu(gate(x)) · up(x)), with
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
        """Apply the network to every row.

        Args:
            x: Rows, (..., D).

        Returns:
            Rows, (..., D).
        """
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class GroupedQueryAttention(nn.Module):
    """Llama's causal self-attention: grouped queries, RoPE, and a cache.

    Its maps have no biases: `q_proj` (D -> H·Dh), `k_proj` and `v_proj` (D -> G·Dh),
    `o_proj` (H·Dh -> D). Queries and keys are rotated by their positions, half-split,
    and keys are cached after the rotation. The object has the attributes `n_heads`,
    `n_kv_heads` and `d_head`.

    Args:
        d_model: Width D.
        n_heads: Query heads H.
        n_kv_heads: Key/value heads G; divides H.
        d_head: Head width Dh; None means D / H.

    Raises:
        ValueError: If G does not divide H, or, without `d_head`, H does not divide D.

    Source:
        Ainslie et al. 2023, section 2.2; Touvron et al. 2023, Llama 2, section 2.2.
    """

    def __init__(self, d_model: int, n_heads: int, n_kv_heads: int, *, d_head: int | None = None) -> None:
        super().__init__()
        if n_heads % n_kv_heads:
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
        """Let T new tokens attend to the P before them and to themselves, causally.

        Args:
            x: New tokens, (B, T, D).
            frequencies: Angle per position, (Dh / 2,).
            past: Rotated keys, and values, of the previous tokens, (B, G, P, Dh) each;
                None means an empty cache. It is left unchanged.

        Returns:
            Outputs, (B, T, D), and the keys and values to cache, (B, G, P + T, Dh)
            each, the new ones last.
        """
        q = split_heads(self.q_proj(x), self.n_heads)  # (B, H, T, Dh)
        k, v = (split_heads(project(x), self.n_kv_heads) for project in (self.k_proj, self.v_proj))  # (B, G, T, Dh)
        start = 0 if past is None else past[0].shape[-2]
        places = start + torch.arange(x.shape[1], device=x.device)  # (T,)
        q, k = rotary_embedding(q, places, frequencies), rotary_embedding(k, places, frequencies)
        if past is not None:
            # A new tensor for each token, so that `past` stays unchanged; servers write into a preallocated one.
            k, v = torch.cat([past[0], k], dim=-2), torch.cat([past[1], v], dim=-2)  # (B, G, P + T, Dh)
        mask = places[:, None] >= torch.arange(k.shape[-2], device=x.device)  # (T, P + T)
        output = self.o_proj(merge_heads(grouped_query_attention(q, k, v, mask)))
        return output, (k, v)


class LlamaLayer(nn.Module):
    """A pre-norm layer of Llama: attention and a gated network, each with a residual.

    Its parts are `self_attention_norm`, `self_attention`, `feed_forward_norm` and
    `feed_forward`.

    Args:
        d_model: Width D.
        n_heads: Query heads H.
        n_kv_heads: Key/value heads G.
        d_ff: Inner width F of the feed-forward network.
        eps: Passed to both norms.

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
        """Apply both sublayers to T new tokens.

        Args:
            x: New tokens, (B, T, D).
            frequencies: Angle per position, (Dh / 2,).
            past: Keys and values of the previous tokens, (B, G, P, Dh) each; None means
                an empty cache.

        Returns:
            New tokens, (B, T, D), and the keys and values to cache, (B, G, P + T, Dh)
            each.
        """
        seen, cache = self.self_attention(self.self_attention_norm(x), frequencies, past)
        x = x + seen
        return x + self.feed_forward(self.feed_forward_norm(x)), cache


class Llama(nn.Module):
    """The model: an embedding, layers, a norm and an output matrix.

    Chapter 09's `generate` runs it. Its parts are `embedding`, `layers`, `norm` and
    `output`, a map without a bias.
    With `tie_weights`, `output` is None and the embedding gives the logits.
    Embeddings are not scaled. All matrices are initialised from a normal
    distribution with standard deviation 0.02.

    Args:
        vocab_size: V.
        d_model: Width D.
        n_heads: Query heads H; divides D.
        n_kv_heads: Key/value heads G; divides H.
        d_ff: Inner width F.
        n_layers: Layers L.
        theta: Base of the rotations.
        eps: Passed to all norms.
        tie_weights: Whether the embedding is also the output matrix.
        rope_scaling: Arguments of `scale_frequencies_llama3`; None means that the
            frequencies are not scaled.

    Source:
        Grattafiori et al. 2024, The Llama 3 Herd of Models, section 3.2.
    """

    def __init__(
        self,
        vocab_size: int,
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
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(LlamaLayer(d_model, n_heads, n_kv_heads, d_ff, eps=eps) for _ in range(n_layers))
        self.norm = RmsNorm(d_model, eps=eps)
        self.output = None if tie_weights else nn.Linear(d_model, vocab_size, bias=False)
        self.d_head = d_model // n_heads
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(
        self, tokens: Tensor, cache: Sequence[KeysAndValues] | None = None
    ) -> tuple[Tensor, list[KeysAndValues]]:
        """Predict the token after each position.

        Args:
            tokens: New tokens, integers (B, T).
            cache: One pair of keys and values per layer, of the previous tokens; None
                means an empty cache. It is left unchanged.

        Returns:
            Logits, (B, T, V), and the cache with the new tokens in it. A sequence
            processed in pieces gets the same logits as in one pass.
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
        logits = x @ self.embedding.weight.mT if self.output is None else self.output(x)  # (B, T, V)
        return logits, kept


class LlamaParameters(NamedTuple):
    """The number of parameters in each part of a Llama."""

    embedding: int
    """The embedding matrix."""
    attention: int
    """The four maps of all layers."""
    feed_forward: int
    """The three maps of all layers."""
    norms: int
    """Two per layer, and the final one."""
    output: int
    """The output matrix; 0 if it is the embedding."""


def llama_parameters(
    vocab_size: int, d_model: int, n_heads: int, n_kv_heads: int, d_ff: int, n_layers: int, *, tied: bool = False
) -> LlamaParameters:
    """Count the parameters of a Llama.

    Args:
        vocab_size: V, all rows of the embedding.
        d_model: Width D.
        n_heads: Query heads H; divides D.
        n_kv_heads: Key/value heads G.
        d_ff: Inner width F.
        n_layers: Layers L.
        tied: Whether the embedding is also the output matrix.

    Returns:
        A `LlamaParameters` of integers whose sum is the size of the model.

    Source:
        Grattafiori et al. 2024, table 3.
    """
    kv_width = d_model // n_heads * n_kv_heads
    return LlamaParameters(
        embedding=vocab_size * d_model,
        attention=n_layers * 2 * (d_model * d_model + d_model * kv_width),
        feed_forward=n_layers * 3 * d_model * d_ff,
        norms=(2 * n_layers + 1) * d_model,
        output=0 if tied else vocab_size * d_model,
    )


def kv_cache_bytes(
    n_layers: int, n_kv_heads: int, d_head: int, length: int, *, batch: int = 1, bytes_per_number: int = 2
) -> int:
    """Count the bytes of the KV cache of a batch of sequences.

    Args:
        n_layers: Layers L.
        n_kv_heads: Key/value heads G.
        d_head: Head width Dh.
        length: Tokens per sequence.
        batch: Sequences.
        bytes_per_number: 2 for half precision.

    Returns:
        Bytes.

    Source:
        Pope et al. 2022, Efficiently Scaling Transformer Inference, section 2.1.
    """
    return 2 * n_layers * n_kv_heads * d_head * length * batch * bytes_per_number


class DecodeCost(NamedTuple):
    """The cost of the next token of every sequence in a batch."""

    flops: int
    """Floating-point operations: multiplications and additions."""
    weight_bytes: int
    """Bytes of weights, read once for the whole batch."""
    cache_bytes: int
    """Bytes of keys and values, read for each text."""


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
    """Count the FLOP and the bytes of one step of generation.

    Each sequence takes 2 FLOP per weight, and 4·L·H·Dh FLOP per token so far for scores
    and weighted values.

    Args:
        weights: Parameters that are multiplied: attention, feed-forward and output
            matrices of all layers.
        n_layers: Layers L.
        n_heads: Query heads H.
        n_kv_heads: Key/value heads G.
        d_head: Head width Dh.
        length: Tokens so far.
        batch: Sequences.
        bytes_per_number: 2 for half precision, of weights and cache alike.

    Returns:
        A `DecodeCost` of integers.

    Source:
        Pope et al. 2022, section 2.1.
    """
    return DecodeCost(
        flops=batch * (2 * weights + 4 * n_layers * n_heads * d_head * length),
        weight_bytes=weights * bytes_per_number,
        cache_bytes=kv_cache_bytes(
            n_layers=n_layers,
            n_kv_heads=n_kv_heads,
            d_head=d_head,
            length=length,
            batch=batch,
            bytes_per_number=bytes_per_number,
        ),
    )


class Latency(NamedTuple):
    """The time of a step and its bottleneck."""

    seconds: float
    """Seconds."""
    bound: Literal["compute", "bandwidth"]
    """The larger of the two times."""


def inference_latency(
    flops: float, bytes_moved: float, *, peak_flops: float, bandwidth: float, n_devices: int = 1
) -> Latency:
    """Compute the least time if arithmetic and transfers overlap: the longer of the two.

    Args:
        flops: Floating-point operations.
        bytes_moved: Bytes read and written.
        peak_flops: FLOP per second of one device.
        bandwidth: Bytes per second of one device.
        n_devices: Devices that share both kinds of work evenly.

    Returns:
        A `Latency`. If both take equally long, its bound is "compute".

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
    """Compute how many sequences fit into memory together with the weights.

    Args:
        memory_bytes: Memory of all devices together.
        weight_bytes: The weights, which are stored once.
        cache_bytes_per_sequence: Bytes of the keys and values of one sequence, at least
            1.

    Returns:
        An integer; 0 if nothing fits.

    Raises:
        ValueError: If `cache_bytes_per_sequence` is less than 1.

    Source:
        Kwon et al. 2023, Efficient Memory Management for Large Language Model Serving
        with PagedAttention, section 1.
    """
    if cache_bytes_per_sequence < 1:
        raise ValueError(f"keys and values of a text have at least one byte, got {cache_bytes_per_sequence}")
    return max(0, (memory_bytes - weight_bytes) // cache_bytes_per_sequence)
