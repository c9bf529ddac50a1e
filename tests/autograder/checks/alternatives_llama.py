"""The exercises of chapter 13 solved in other ways than the reference: right, so each must get all the points."""

import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tfcourse.gpt import KeysAndValues
from tfcourse.rotary import rotary_embedding, rotary_frequencies, scale_frequencies_llama3

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function or class as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


def _softmax(scores: Tensor, mask: Tensor | None) -> Tensor:
    if mask is None:
        return scores.softmax(-1)
    filled = scores.masked_fill(~mask, -1e30)
    powers = (filled - filled.amax(-1, keepdim=True)).exp() * mask
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-30)


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@alternative("grouped_query_attention")
def grouped_by_einsum(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Groups and members as two axes."""
    if q.shape[-3] % k.shape[-3] or k.shape[-3] != v.shape[-3]:
        raise ValueError("groups")
    members = (k.shape[-3], q.shape[-3] // k.shape[-3])
    split = _wide(q).unflatten(-3, members)
    scores = torch.einsum("...grtd,...gsd->...grts", split, _wide(k)) / math.sqrt(q.shape[-1])
    weights = _softmax(scores.flatten(-4, -3), mask).unflatten(-3, members)
    return torch.einsum("...grts,...gsd->...grtd", weights, _wide(v)).flatten(-4, -3).to(q.dtype)


@alternative("grouped_query_attention")
def grouped_by_broadcasting(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The masks are grouped, too; keys have an axis of one for the members."""
    heads, groups = q.shape[-3], k.shape[-3]
    if heads % groups or v.shape[-3] != groups:
        raise ValueError("groups")
    split = _wide(q).reshape(*q.shape[:-3], groups, heads // groups, *q.shape[-2:])
    scores = torch.stack([split[..., member, :, :] @ _wide(k).mT for member in range(heads // groups)], dim=-3)
    scores = scores * q.shape[-1] ** -0.5
    if mask is not None and mask.ndim >= 3:
        mask = mask.unsqueeze(-4) if mask.shape[-3] == 1 else mask.unflatten(-3, (groups, -1))
    weights = _softmax(scores, mask)
    mixed = torch.stack([weights[..., member, :, :] @ _wide(v) for member in range(heads // groups)], dim=-3)
    return mixed.flatten(-4, -3).to(q.dtype)


@alternative("pool_key_value_heads")
def pooled_by_unflatten(weight: Tensor, n_old: int, n_new: int) -> Tensor:
    """Axes for groups, members and columns."""
    if n_old % n_new:
        raise ValueError("groups")
    return weight.unflatten(0, (n_new, n_old // n_new, -1)).mean(1).reshape(-1, weight.shape[1])


@alternative("pool_key_value_heads")
def pooled_by_a_matrix(weight: Tensor, n_old: int, n_new: int) -> Tensor:
    """A matrix that averages heads."""
    if n_new < 1 or n_old % n_new:
        raise ValueError("groups")
    average = torch.eye(n_new, dtype=weight.dtype, device=weight.device).repeat_interleave(n_old // n_new, 1)
    average = average * (n_new / n_old)
    return torch.einsum("no,odm->ndm", average, weight.unflatten(0, (n_old, -1))).flatten(0, 1)


class _Norm(nn.Module):
    def __init__(self, d_model: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.eps = eps


@alternative("RmsNorm")
class NormByPower(_Norm):
    def forward(self, x: Tensor) -> Tensor:
        wide = _wide(x)
        return (wide / (wide.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()).to(x.dtype) * self.weight


@alternative("RmsNorm")
class NormByProduct(_Norm):
    def forward(self, x: Tensor) -> Tensor:
        wide = _wide(x)
        square = torch.einsum("...d,...d->...", wide, wide)[..., None] / x.shape[-1]
        return self.weight * (wide * (square + self.eps) ** -0.5).to(x.dtype)


@alternative("RmsNorm")
class NormBySum(_Norm):
    def forward(self, x: Tensor) -> Tensor:
        wide = _wide(x)
        mean = (wide * wide).sum(-1, keepdim=True) / x.shape[-1]
        return torch.mul(self.weight, torch.div(wide, torch.sqrt(mean + self.eps)).type_as(x))


class _Glu(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        for name, sizes in (("gate", (d_model, d_ff)), ("up", (d_model, d_ff)), ("down", (d_ff, d_model))):
            setattr(self, f"{name}_proj", nn.Linear(*sizes, bias=False))


@alternative("SwiGlu")
class GluBySigmoid(_Glu):
    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate_proj(x)
        return self.down_proj(gate * torch.sigmoid(gate) * self.up_proj(x))


@alternative("SwiGlu")
class GluByModule(_Glu):
    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.up_proj(x) * nn.SiLU()(self.gate_proj(x)))


@alternative("SwiGlu")
class GluByExponential(_Glu):
    def forward(self, x: Tensor) -> Tensor:
        gate = self.gate_proj(x)
        return self.down_proj(self.up_proj(x) * gate / (1 + torch.exp(-gate)))


@alternative("SwiGlu")
class GluByMatrices(_Glu):
    def forward(self, x: Tensor) -> Tensor:
        gate, up = x @ self.gate_proj.weight.T, x @ self.up_proj.weight.T
        return (F.silu(gate) * up) @ self.down_proj.weight.T


class _Shared(nn.Module):
    """What all solutions of the attention share: its maps; keys are copied for the query heads."""

    def __init__(self, d_model: int, n_heads: int, n_kv_heads: int, *, d_head: int | None = None) -> None:
        super().__init__()
        if n_heads % n_kv_heads or (d_head is None and d_model % n_heads):
            raise ValueError("heads")
        width = d_head or d_model // n_heads
        self.n_heads, self.n_kv_heads, self.d_head = n_heads, n_kv_heads, width
        self.q_proj = nn.Linear(d_model, n_heads * width, bias=False)
        self.k_proj = nn.Linear(d_model, n_kv_heads * width, bias=False)
        self.v_proj = nn.Linear(d_model, n_kv_heads * width, bias=False)
        self.o_proj = nn.Linear(n_heads * width, d_model, bias=False)

    def maps(self, x: Tensor) -> list[Tensor]:
        return [
            project(x).unflatten(-1, (-1, self.d_head)).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        ]

    def turn(self, y: Tensor, start: int, frequencies: Tensor) -> Tensor:
        return rotary_embedding(y, torch.arange(start, start + y.shape[-2], device=y.device), frequencies)

    def forward(
        self, x: Tensor, frequencies: Tensor, past: KeysAndValues | None = None
    ) -> tuple[Tensor, KeysAndValues]:
        start = past[0].shape[2] if past else 0
        q, k, v = self.maps(x)
        q, k = self.turn(q, start, frequencies), self.turn(k, start, frequencies)
        if past:
            k, v = torch.cat((past[0], k), 2), torch.cat((past[1], v), 2)
        seen = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=x.device).tril(start)
        return self.o_proj(self.attend(q, k, v, seen).transpose(1, 2).flatten(2)), (k, v)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        raise NotImplementedError


@alternative("GroupedQueryAttention")
class SharedByCopies(_Shared):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        k, v = (y.repeat_interleave(self.n_heads // self.n_kv_heads, 1) for y in (k, v))
        return _softmax(q @ k.mT / math.sqrt(self.d_head), seen) @ v


@alternative("GroupedQueryAttention")
class SharedByEinsum(_Shared):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        q = q.unflatten(1, (self.n_kv_heads, -1))
        weights = _softmax(torch.einsum("bgrtd,bgsd->bgrts", q, k) * self.d_head**-0.5, seen)
        return torch.einsum("bgrts,bgsd->bgrtd", weights, v).flatten(1, 2)


@alternative("GroupedQueryAttention")
class SharedWithAdditiveMask(_Shared):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        bias = torch.zeros(seen.shape, dtype=q.dtype, device=q.device).masked_fill(~seen, -torch.inf)
        k, v = (y[:, :, None].expand(-1, -1, self.n_heads // self.n_kv_heads, -1, -1).flatten(1, 2) for y in (k, v))
        return torch.softmax(q @ k.transpose(-2, -1) / self.d_head**0.5 + bias, -1) @ v


@alternative("GroupedQueryAttention")
class SharedInFewerRows(_Shared):
    def attend(self, q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
        each = self.n_heads // self.n_kv_heads
        rows = q.reshape(len(q), self.n_kv_heads, -1, self.d_head)
        weights = _softmax(rows @ k.mT / math.sqrt(self.d_head), seen.repeat(each, 1))
        return (weights @ v).reshape(q.shape)


class _Layer(nn.Module):
    attention: type[nn.Module] = SharedByCopies
    norm: type[nn.Module] = NormByPower
    network: type[nn.Module] = GluBySigmoid

    def __init__(self, d_model: int, n_heads: int, n_kv_heads: int, d_ff: int, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.self_attention = self.attention(d_model, n_heads, n_kv_heads)
        self.feed_forward = self.network(d_model, d_ff)
        self.self_attention_norm = self.norm(d_model, eps=eps)
        self.feed_forward_norm = self.norm(d_model, eps=eps)

    def forward(
        self, x: Tensor, frequencies: Tensor, past: KeysAndValues | None = None
    ) -> tuple[Tensor, KeysAndValues]:
        said, cache = self.self_attention(self.self_attention_norm(x), frequencies, past=past)
        stream = said + x
        return self.feed_forward(self.feed_forward_norm(stream)) + stream, cache


@alternative("LlamaLayer")
class LayerOfCopies(_Layer):
    pass


@alternative("LlamaLayer")
class LayerOfEinsums(_Layer):
    attention, norm, network = SharedByEinsum, NormByProduct, GluByModule


@alternative("LlamaLayer")
class LayerOfAddends(_Layer):
    attention, norm, network = SharedWithAdditiveMask, NormBySum, GluByExponential


@alternative("LlamaLayer")
class LayerOfRows(_Layer):
    attention = SharedInFewerRows


class _Model(nn.Module):
    layer: type[nn.Module] = LayerOfCopies
    norm_class: type[nn.Module] = NormByPower

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
        rope_scaling: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList([self.layer(d_model, n_heads, n_kv_heads, d_ff, eps=eps) for _ in range(n_layers)])
        self.norm = self.norm_class(d_model, eps=eps)
        if not tie_weights:
            self.output = nn.Linear(d_model, vocab_size, bias=False)
        self.tied, self.width = tie_weights, d_model // n_heads
        self.theta, self.scaling = theta, rope_scaling
        for part in self.modules():
            if isinstance(part, nn.Linear | nn.Embedding):
                nn.init.normal_(part.weight, mean=0.0, std=0.02)

    def frequencies(self, device: torch.device) -> Tensor:
        plain = rotary_frequencies(self.width, self.theta, device)
        return scale_frequencies_llama3(plain, **self.scaling) if self.scaling else plain

    def forward(self, tokens: Tensor, cache: Any = None) -> tuple[Tensor, list[KeysAndValues]]:
        x, turns = self.embedding(tokens), self.frequencies(tokens.device)
        new = []
        for layer, past in zip(self.layers, cache or [None] * len(self.layers), strict=True):
            x, kept = layer(x, turns, past)
            new.append(kept)
        x = self.norm(x)
        return F.linear(x, self.embedding.weight if self.tied else self.output.weight), new


@alternative("Llama")
class ModelOfCopies(_Model):
    pass


@alternative("Llama")
class ModelOfEinsums(_Model):
    layer, norm_class = LayerOfEinsums, NormByProduct


@alternative("Llama")
class ModelOfAddends(_Model):
    layer, norm_class = LayerOfAddends, NormBySum


_Counts = namedtuple("_Counts", "embedding attention feed_forward norms output")


@alternative("llama_parameters")
def counted_by_layers(vocab_size, d_model, n_heads, n_kv_heads, d_ff, n_layers, *, tied=False):
    """Layer by layer."""
    width = d_model // n_heads
    attention = d_model * width * (2 * n_heads + 2 * n_kv_heads) * n_layers
    return _Counts(
        vocab_size * d_model,
        attention,
        3 * d_ff * d_model * n_layers,
        d_model + 2 * d_model * n_layers,
        (not tied) * vocab_size * d_model,
    )


@alternative("llama_parameters")
def counted_on_meta(vocab_size, d_model, n_heads, n_kv_heads, d_ff, n_layers, *, tied=False):
    """A model without numbers is made and measured."""
    with torch.device("meta"):
        model = ModelOfCopies(
            vocab_size,
            d_model=d_model,
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            d_ff=d_ff,
            n_layers=n_layers,
            tie_weights=tied,
        )
    counts = dict.fromkeys(_Counts._fields, 0)
    for name, parameter in model.named_parameters():
        kind = "norms" if "norm" in name else next(key for key in _Counts._fields if key in name)
        counts[kind] += parameter.numel()
    return _Counts(**counts)


@alternative("kv_cache_bytes")
def bytes_by_product(n_layers, n_kv_heads, d_head, length, *, batch=1, bytes_per_number=2):
    """A product."""
    return math.prod((2, n_layers, n_kv_heads, d_head, length, batch, bytes_per_number))


@alternative("kv_cache_bytes")
def bytes_of_tensors(n_layers, n_kv_heads, d_head, length, *, batch=1, bytes_per_number=2):
    """Tensors without numbers."""
    keys = torch.empty(n_layers, batch, n_kv_heads, length, d_head, device="meta")
    return 2 * keys.numel() * bytes_per_number


_Cost = namedtuple("_Cost", "flops weight_bytes cache_bytes")


@alternative("decode_cost")
def cost_by_parts(weights, n_layers, n_heads, n_kv_heads, d_head, length, *, batch=1, bytes_per_number=2):
    """Maps, scores and sums of values."""
    maps = 2 * weights
    scores = values = 2 * n_layers * n_heads * d_head * length
    cache = 2 * n_layers * n_kv_heads * d_head * length * bytes_per_number
    return _Cost((maps + scores + values) * batch, bytes_per_number * weights, cache * batch)


@alternative("decode_cost")
def cost_of_a_token(weights, n_layers, n_heads, n_kv_heads, d_head, length, *, batch=1, bytes_per_number=2):
    """A tuple is enough."""
    each = 2 * (weights + 2 * n_layers * n_heads * d_head * length)
    cache = bytes_of_tensors(n_layers, n_kv_heads, d_head, length, batch=batch, bytes_per_number=bytes_per_number)
    return _Cost(each * batch, weights * bytes_per_number, cache)


_Latency = namedtuple("_Latency", "seconds bound")


@alternative("inference_latency")
def latency_by_max(flops, bytes_moved, *, peak_flops, bandwidth, n_devices=1):
    """The larger of two quotients."""
    if min(peak_flops, bandwidth, n_devices) <= 0:
        raise ValueError("rates")
    clocks = {"compute": flops / peak_flops / n_devices, "bandwidth": bytes_moved / bandwidth / n_devices}
    slowest = max(clocks, key=lambda name: clocks[name])
    return _Latency(clocks[slowest], slowest)


@alternative("inference_latency")
def latency_by_intensity(flops, bytes_moved, *, peak_flops, bandwidth, n_devices=1):
    """By the side of the roofline's ridge."""
    if peak_flops <= 0 or bandwidth <= 0 or n_devices <= 0:
        raise ValueError("rates")
    if flops * bandwidth >= bytes_moved * peak_flops:
        return _Latency(flops / (n_devices * peak_flops), "compute")
    return _Latency(bytes_moved / (n_devices * bandwidth), "bandwidth")


@alternative("largest_batch")
def batch_by_divmod(memory_bytes, weight_bytes, cache_bytes_per_sequence):
    """What is left, divided."""
    if cache_bytes_per_sequence <= 0:
        raise ValueError("weightless")
    left = memory_bytes - weight_bytes
    return divmod(left, cache_bytes_per_sequence)[0] if left > 0 else 0


@alternative("largest_batch")
def batch_by_floor(memory_bytes, weight_bytes, cache_bytes_per_sequence):
    """Rounded down."""
    if cache_bytes_per_sequence < 1:
        raise ValueError("weightless")
    if weight_bytes >= memory_bytes:
        return 0
    return math.floor((memory_bytes - weight_bytes) / cache_bytes_per_sequence)
