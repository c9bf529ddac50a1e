"""Correct implementations of chapter 03 that are not the reference: whoever writes one of these must get full marks.

Most of them compute half precision in half precision. Two look at numbers (`if mask.any()`), which the meta device cannot do.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tfcourse.attention import AttentionCost

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the function below to the alternatives of an exercise, under the exercise's name; the docstring says what is different."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        function.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(function)
        return function

    return add


# ---------------------------------------------------------------------------------------------------------- soft_lookup


@alternative("soft_lookup")
def lookup_einsum(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Einstein sums, in the precision of the inputs."""
    return torch.einsum("s,sv->v", F.softmax(torch.einsum("d,sd->s", query, keys), dim=-1), values)


@alternative("soft_lookup")
def lookup_as_a_matrix(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """A batch of one query, as a matrix product."""
    scores = query.unsqueeze(0) @ keys.T
    return ((scores - scores.logsumexp(dim=1, keepdim=True)).exp() @ values).squeeze(0)


# ---------------------------------------------------------------------------------------------- masked_attention_weights


def refuse_numbers(mask: Tensor | None) -> None:
    """Every solution has to refuse a mask that is not boolean."""
    if mask is not None and mask.dtype is not torch.bool:
        raise ValueError(f"mask must be boolean, not {mask.dtype}")


@alternative("masked_attention_weights")
def weights_minus_infinity(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """Minus infinity, and the NaN of an empty row replaced: masked_fill stops its gradient. Scaled first, so float16 is enough."""
    refuse_numbers(mask)
    scores = (q / math.sqrt(q.size(-1))) @ k.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(torch.logical_not(mask), -torch.inf)
    return torch.nan_to_num(scores.softmax(dim=-1), nan=0.0)


@alternative("masked_attention_weights")
def weights_additive(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """An additive mask of very negative numbers, and the boolean one once more at the end."""
    refuse_numbers(mask)
    wide = torch.float64 if q.dtype == torch.float64 else torch.float32
    scores = torch.einsum("...td,...sd->...ts", q.to(wide), k.to(wide)) * q.shape[-1] ** -0.5
    if mask is None:
        return scores.softmax(-1).to(q.dtype)
    bias = torch.zeros(mask.shape, dtype=wide, device=q.device).masked_fill(~mask, -1e30)
    return ((scores + bias).softmax(-1) * mask).to(q.dtype)


@alternative("masked_attention_weights")
def weights_by_hand(q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """Exponentials by hand; what is forbidden never enters the sum, and an empty sum becomes one."""
    refuse_numbers(mask)
    scores = torch.matmul(q.double() / q.shape[-1] ** 0.5, k.double().mT)
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
    highest = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).amax(-1, keepdim=True).detach()
    grown = torch.where(allowed, torch.exp(torch.where(allowed, scores - highest, 0.0)), 0.0)
    total = grown.sum(-1, keepdim=True)
    return (grown / (total + (total == 0))).to(q.dtype)


# ------------------------------------------------------------------------------------------- scaled_dot_product_attention


@alternative("scaled_dot_product_attention")
def attention_einsum(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Einstein sums, minus infinity, and the NaN of an empty row replaced."""
    scores = torch.einsum("...td,...sd->...ts", q, k) / math.sqrt(k.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask.logical_not(), float("-inf"))
    return torch.einsum("...ts,...sv->...tv", torch.nan_to_num(torch.softmax(scores, dim=-1)), v)


@alternative("scaled_dot_product_attention")
def attention_log_sum_exp(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax as exp(score - log-sum-exp)."""
    scores = torch.matmul(q, k.transpose(-2, -1)).div(q.shape[-1] ** 0.5)
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    weights = torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))
    return torch.matmul(weights if mask is None else torch.where(mask, weights, 0.0), v)


@alternative("scaled_dot_product_attention")
def attention_flattened(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """All leading dimensions flattened into one, and batched matrix products that scale on the way."""
    lead, (T, Dh), (S, Dv) = q.shape[:-2], q.shape[-2:], v.shape[-2:]
    bias = torch.zeros(lead.numel(), T, S, dtype=q.dtype, device=q.device)
    flat_q, flat_k, flat_v = q.reshape(-1, T, Dh), k.reshape(-1, S, Dh), v.reshape(-1, S, Dv)
    scores = torch.baddbmm(bias, flat_q, flat_k.transpose(1, 2), alpha=1 / math.sqrt(Dh))
    if mask is None:
        return torch.bmm(scores.softmax(2), flat_v).reshape(*lead, T, Dv)
    closed = ~mask.broadcast_to(*lead, T, S).reshape(-1, T, S)
    weights = scores.masked_fill(closed, torch.finfo(q.dtype).min).softmax(2).masked_fill(closed, 0)
    return torch.bmm(weights, flat_v).reshape(*lead, T, Dv)


@alternative("scaled_dot_product_attention")
def attention_looks_at_the_mask(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """Empty rows are dealt with only if there are any: a branch that depends on the numbers, and an assignment by a mask."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is None or mask.all():
        return torch.softmax(scores, -1) @ v
    mask = mask.expand(scores.shape)
    output = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), -1) @ v
    empty = ~mask.any(-1)
    if empty.any():
        output[empty] = 0
    return output


# -------------------------------------------------------------------------------------------------------------- the masks


@alternative("causal_mask")
def causal_by_negation(T: int, device: torch.device | str | None = None) -> Tensor:
    """Not the future."""
    return ~torch.triu(torch.ones((T, T), device=device), diagonal=1).bool()


@alternative("causal_mask")
def causal_by_distance(T: int, device: torch.device | str | None = None) -> Tensor:
    """A full table of distances, none negative."""
    rows, columns = torch.meshgrid(torch.arange(T, device=device), torch.arange(T, device=device), indexing="ij")
    return (rows - columns).ge(0)


@alternative("padding_mask")
def padding_by_unsqueeze(lengths: Tensor, S: int | None = None) -> Tensor:
    """The axis for the queries comes last, and what is smaller is turned round."""
    if lengths.dtype not in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64) or lengths.dim() != 1:
        raise ValueError(f"lengths must be a row of integers, not {lengths}")
    size = max(lengths.tolist()) if S is None else S
    return lengths.unsqueeze(1).gt(torch.arange(size, device=lengths.device)).unsqueeze(1)


@alternative("padding_mask")
def padding_by_counting(lengths: Tensor, S: int | None = None) -> Tensor:
    """Keys are counted by a running sum, and the count may not exceed the length."""
    if lengths.is_floating_point() or lengths.dtype is torch.bool or lengths.dim() != 1:
        raise ValueError("lengths must be integers, one for each sequence")
    size = lengths.max().item() if S is None else S
    count = torch.ones(len(lengths), 1, size, dtype=torch.long, device=lengths.device).cumsum(-1)
    return count <= lengths.view(-1, 1, 1)


# ------------------------------------------------------------------------------------------------------------ projections


@alternative("attention_projections")
def projections_einsum(x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> list[Tensor]:
    """Einstein sums; a list."""
    return [torch.einsum("...d,dk->...k", x, w) for x, w in ((x_q, w_q), (x_kv, w_k), (x_kv, w_v))]


@alternative("attention_projections")
def projections_linear(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Linear maps in PyTorch's layout."""
    return F.linear(x_q, w_q.t()), F.linear(x_kv, w_k.t()), F.linear(x_kv, w_v.t())


@alternative("attention_projections")
def projections_at_once(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """One product for keys and values, cut in two."""
    k, v = torch.matmul(x_kv, torch.cat([w_k, w_v], dim=1)).split([w_k.size(1), w_v.size(1)], dim=-1)
    return torch.matmul(x_q, w_q), k, v


@alternative("projected_attention")
def projected_step_by_step(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """The formula, one product after the other."""
    return attention_einsum(x_q @ w_q, x_kv @ w_k, x_kv @ w_v, mask)


@alternative("projected_attention")
def projected_merged(
    x_q: Tensor, x_kv: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, mask: Tensor | None = None
) -> Tensor:
    """Query and key matrix merged; the inputs are averaged first and projected to values last."""
    scores = (x_q @ (w_q @ w_k.T)) @ x_kv.transpose(-2, -1) / w_q.shape[1] ** 0.5
    if mask is None:
        return torch.softmax(scores, -1) @ x_kv @ w_v
    weights = torch.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), -1) * mask
    return weights @ x_kv @ w_v


# ----------------------------------------------------------------------------------------------------------------- cosine


def average(scores: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """The values, averaged by a softmax over the permitted scores."""
    if mask is None:
        return scores.softmax(-1) @ v
    return scores.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0) @ v


@alternative("cosine_attention")
def cosine_similarity(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """PyTorch's cosine similarity of every pair."""
    return average(scale * F.cosine_similarity(q.unsqueeze(-2), k.unsqueeze(-3), dim=-1), v, mask)


@alternative("cosine_attention")
def cosine_products(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, scale: float = 1.0) -> Tensor:
    """Dot products divided by the product of the lengths, which is one where it would be zero."""
    lengths = q.square().sum(-1)[..., :, None] * k.square().sum(-1)[..., None, :]
    cosines = q @ k.transpose(-2, -1) * torch.where(lengths == 0, 1.0, lengths).rsqrt()
    return average(cosines * scale, v, mask)


# --------------------------------------------------------------------------------------------------------- score_variance


@alternative("score_variance")
def variance_flattened(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """The scores in one row, in the precision of the inputs."""
    scores = torch.einsum("...td,...sd->...ts", q / math.sqrt(q.shape[-1]) if scaled else q, k)
    return torch.var(scores.flatten(-2), dim=-1, unbiased=False)


@alternative("score_variance")
def variance_by_moments(q: Tensor, k: Tensor, *, scaled: bool = True) -> Tensor:
    """The mean square minus the squared mean, in float64."""
    scores = q.double() @ k.double().transpose(-2, -1)
    variance = scores.square().mean((-2, -1)) - scores.mean((-2, -1)).square()
    return (variance / q.shape[-1] if scaled else variance).to(q.dtype)


# -------------------------------------------------------------------------------------------------------- merge_query_key


@alternative("merge_query_key")
def merged_einsum(w_q: Tensor, w_k: Tensor) -> Tensor:
    """An Einstein sum."""
    return torch.einsum("ak,bk->ab", w_q, w_k)


@alternative("merge_query_key")
def merged_linear(w_q: Tensor, w_k: Tensor) -> Tensor:
    """A linear map whose weight is the key matrix."""
    return F.linear(w_q, w_k)


@alternative("merge_query_key")
def merged_outer(w_q: Tensor, w_k: Tensor) -> Tensor:
    """A sum of outer products, transposed twice."""
    return (w_k[:, None, :] * w_q[None, :, :]).sum(-1).T


# ----------------------------------------------------------------------------------------------------- attention_backward


def plain_weights(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    """The weights, in the precision of the inputs."""
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is None:
        return scores.softmax(-1)
    return scores.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0)


@alternative("attention_backward")
def backward_through_output(
    q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The row's average taken from the output, as FlashAttention does: the sum over a · (g·v) is g · o."""
    dtype = q.dtype
    q, k, v, grad_output = (x if x.dtype == torch.float64 else x.float() for x in (q, k, v, grad_output))
    a = plain_weights(q, k, mask)
    average_of_row = (grad_output * (a @ v)).sum(-1, keepdim=True)
    ds = a * (grad_output @ v.mT - average_of_row) / math.sqrt(q.shape[-1])
    return (ds @ k).to(dtype), (ds.mT @ q).to(dtype), (a.mT @ grad_output).to(dtype)


@alternative("attention_backward")
def backward_by_jacobian(
    q: Tensor, k: Tensor, v: Tensor, grad_output: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The softmax's whole Jacobian, diag(a) - a aᵀ, for every row; Einstein sums."""
    dtype, wide = q.dtype, torch.promote_types(q.dtype, torch.float32)
    q, k, v, grad_output = (x.to(wide) for x in (q, k, v, grad_output))
    a = plain_weights(q, k, mask)
    jacobian = torch.diag_embed(a) - a[..., :, None] * a[..., None, :]
    da = torch.einsum("...tv,...sv->...ts", grad_output, v)
    ds = torch.einsum("...tsr,...tr->...ts", jacobian, da) * q.shape[-1] ** -0.5
    dq = torch.einsum("...ts,...sd->...td", ds, k)
    dk = torch.einsum("...ts,...td->...sd", ds, q)
    return dq.to(dtype), dk.to(dtype), torch.einsum("...ts,...tv->...sv", a, grad_output).to(dtype)


# -------------------------------------------------------------------------------------------------------- tiled_attention


def refuse_empty_tiles(tile_size: int, k: Tensor, v: Tensor) -> None:
    """Every solution has to refuse tiles without keys, and keys that do not fit the values."""
    if tile_size <= 0 or not 0 < k.size(-2) == v.size(-2):
        raise ValueError(f"tile_size must be positive, not {tile_size}; {k.size(-2)} keys, {v.size(-2)} values")


@alternative("tiled_attention")
def tiled_by_log_sum_exp(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """Each tile answers by itself; answers are merged by the log-sum-exp of their scores."""
    refuse_empty_tiles(tile_size, k, v)
    output, seen = None, None
    for k_tile, v_tile in zip(k.split(tile_size, dim=-2), v.split(tile_size, dim=-2), strict=True):
        scores = q @ k_tile.transpose(-2, -1) / math.sqrt(q.shape[-1])
        mine, answer = scores.logsumexp(-1, keepdim=True), scores.softmax(-1) @ v_tile
        if output is None:
            output, seen = answer, mine
        else:
            share = torch.sigmoid(mine - seen)
            output, seen = output + share * (answer - output), torch.logaddexp(seen, mine)
    return output


@alternative("tiled_attention")
def tiled_both_ways(q: Tensor, k: Tensor, v: Tensor, tile_size: int = 64) -> Tensor:
    """Queries in tiles as well, as FlashAttention has them."""
    refuse_empty_tiles(tile_size, k, v)
    answers = []
    for q_tile in q.split(max(tile_size, 64), dim=-2):
        m = torch.full_like(q_tile[..., 0], -torch.inf)
        total, output = torch.zeros_like(m), q_tile.new_zeros(*q_tile.shape[:-1], v.shape[-1])
        for start in range(0, k.size(-2), tile_size):
            stop = min(start + tile_size, k.size(-2))
            scores = torch.einsum("...td,...sd->...ts", q_tile, k[..., start:stop, :]) / q.size(-1) ** 0.5
            m_new = torch.maximum(m, scores.max(-1).values)
            p = torch.exp(scores - m_new[..., None])
            shrink = torch.exp(m - m_new)
            total = shrink * total + p.sum(-1)
            output = shrink[..., None] * output + torch.einsum("...ts,...sv->...tv", p, v[..., start:stop, :])
            m = m_new
        answers.append(output / total[..., None])
    return torch.cat(answers, dim=-2)


# --------------------------------------------------------------------------------------------------------- attention_cost


@alternative("attention_cost")
def cost_factored(T: int, S: int, Dh: int, Dv: int, itemsize: int = 4) -> AttentionCost:
    """The same polynomials, factored."""
    return AttentionCost(2 * T * S * (Dh + Dv), itemsize * ((T + S) * (Dh + Dv) + T * S))


@alternative("attention_cost")
def cost_by_shapes(T: int, S: int, Dh: int, Dv: int, itemsize: int = 4) -> AttentionCost:
    """Counted from shapes."""
    held = [(T, Dh), (S, Dh), (S, Dv), (T, S), (T, Dv)]
    products = [(T, Dh, S), (T, S, Dv)]
    return AttentionCost(
        flops=sum(2 * math.prod(sizes) for sizes in products),
        bytes=sum(math.prod(shape) for shape in held) * itemsize,
    )
