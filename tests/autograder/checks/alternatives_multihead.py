"""Chapter 04, solved in other ways than the reference: right, so each must get all the points."""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfcourse.attention import masked_attention_weights
from tfcourse.multihead import AttentionParameters

ALTERNATIVES: dict[str, list[Callable[..., Any]]] = {}


def alternative(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function or class as a solution of an exercise, under the exercise's name."""

    def enter(solution: Callable[..., Any]) -> Callable[..., Any]:
        solution.__name__ = exercise
        ALTERNATIVES.setdefault(exercise, []).append(solution)
        return solution

    return enter


# ---------------------------------------------------------------------------------------------------- split and merge


@alternative("split_heads")
def split_by_chunks(x: Tensor, n_heads: int) -> Tensor:
    """Cut into chunks and stack them on a new axis."""
    if x.dim() != 3 or n_heads <= 0 or x.shape[-1] % n_heads != 0:
        raise ValueError("the heads do not divide the width")
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


@alternative("split_heads")
def split_by_unflatten(x: Tensor, n_heads: int) -> Tensor:
    """Let unflatten find the head width; PyTorch's own error is turned into the one that was asked for."""
    if len(x.shape) != 3 or n_heads < 1:
        raise ValueError(x.shape)
    try:
        return x.unflatten(-1, (n_heads, -1)).permute(0, 2, 1, 3).contiguous()
    except RuntimeError as error:
        raise ValueError(str(error)) from error


@alternative("merge_heads")
def merge_by_concatenation(x: Tensor) -> Tensor:
    """Take the heads apart in one operation and put them side by side in another."""
    _batch, _heads, _length, _width = x.shape
    return torch.cat(x.unbind(dim=1), dim=-1)


@alternative("merge_heads")
def merge_by_einsum(x: Tensor) -> Tensor:
    """Reorder with einsum."""
    if len(x.shape) != 4:
        raise ValueError(f"not four dimensions: {x.shape}")
    return torch.einsum("bhtw->bthw", x).contiguous().view(x.shape[0], x.shape[2], -1)


# ---------------------------------------------------------------------------------------------------------- the layer


class _Projections(nn.Module):
    """The four maps in an order of their own, and nothing else."""

    def __init__(self, d_model: int, n_heads: int, *, bias: bool = True) -> None:
        if n_heads < 1 or d_model % n_heads:
            raise ValueError((d_model, n_heads))
        super().__init__()
        self.o_proj, self.v_proj, self.k_proj, self.q_proj = (nn.Linear(d_model, d_model, bias=bias) for _ in range(4))
        self.n_heads = n_heads
        self.width = d_model // n_heads


@alternative("MultiHeadAttention")
class ByEinsum(_Projections):
    """The weights themselves are cut into heads; einsum does the rest."""

    def _heads(self, x: Tensor, projection: nn.Linear) -> Tensor:
        weight = projection.weight.view(self.n_heads, self.width, -1)
        heads = torch.einsum("btd,hwd->bhtw", x, weight)
        return heads if projection.bias is None else heads + projection.bias.view(self.n_heads, 1, self.width)

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        context = context if context is not None else x
        q, k, v = self._heads(x, self.q_proj), self._heads(context, self.k_proj), self._heads(context, self.v_proj)
        scores = torch.einsum("bhtw,bhsw->bhts", q, k) * self.width**-0.5
        if mask is not None:
            if mask.ndim == 3:
                mask = mask.unsqueeze(dim=1)
            scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights * mask
        heads = torch.einsum("bhts,bhsw->bthw", weights, v)
        output = torch.einsum("bthw,dhw->btd", heads, self.o_proj.weight.view(-1, self.n_heads, self.width))
        return output if self.o_proj.bias is None else output + self.o_proj.bias


@alternative("MultiHeadAttention")
class ByHeadsFirst(_Projections):
    """Heads as the first axis, by chunk and stack; the weights come from chapter 03."""

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        asked = x if context is None else context
        q, k, v = (
            torch.stack(projection(y).chunk(self.n_heads, dim=-1))  # (H, B, T, Dh)
            for projection, y in ((self.q_proj, x), (self.k_proj, asked), (self.v_proj, asked))
        )
        if mask is not None and mask.ndim == 4:
            mask = mask.transpose(0, 1)
        heads = masked_attention_weights(q, k, mask) @ v
        return self.o_proj(torch.cat(heads.unbind(0), dim=-1))


@alternative("MultiHeadAttention")
class ByFunctionalLinear(_Projections):
    """The parameters are used through F.linear, examples and heads are folded into one axis, the softmax is written out."""

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        source = x if context is None else context
        (B, T, _), S, H = x.shape, source.shape[1], self.n_heads

        def fold(y: Tensor, linear: nn.Linear) -> Tensor:
            y = F.linear(y, linear.weight, linear.bias)
            return y.view(B, -1, H, self.width).transpose(1, 2).reshape(B * H, -1, self.width)  # (B·H, length, Dh)

        q = fold(x, self.q_proj) / math.sqrt(self.width)
        scores = torch.bmm(q, fold(source, self.k_proj).mT)  # (B·H, T, S)
        allowed = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=x.device)
        if mask is not None:
            allowed = mask.unsqueeze(1) if mask.ndim == 3 else mask
        allowed = allowed.expand(B, H, T, S).reshape(B * H, T, S)
        best = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).amax(-1, keepdim=True).detach()
        grown = torch.exp((scores - best).clamp(max=0.0)) * allowed
        weights = grown / grown.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)
        heads = torch.bmm(weights, fold(source, self.v_proj)).view(B, H, T, self.width)
        merged = heads.permute(0, 2, 1, 3).reshape(B, T, H * self.width)
        return F.linear(merged, self.o_proj.weight, self.o_proj.bias)


# --------------------------------------------------------------------------------------------------------- parameters


@alternative("attention_parameters")
def parameters_by_shapes(d_model: int, n_heads: int, d_k: int, d_v: int, d_out: int) -> AttentionParameters:
    """Count the elements of the matrices themselves, without giving them memory."""

    def count(*shape: int) -> int:
        return torch.empty(shape, device="meta").numel()

    return AttentionParameters(
        count(2, n_heads, d_model, d_k),
        count(n_heads, d_model, d_model),
        count(n_heads, d_model, d_v) + count(n_heads * d_v, d_out),
        count(n_heads * d_model, d_out),
    )


@alternative("attention_parameters")
def parameters_by_head(d_model: int, n_heads: int, d_k: int, d_v: int, d_out: int) -> AttentionParameters:
    """What one head has, times the heads."""
    head = AttentionParameters(d_model * (d_k + d_k), d_model**2, d_v * (d_model + d_out), d_model * d_out)
    return AttentionParameters(*(n_heads * number for number in head))


# -------------------------------------------------------------------------------------------------- values and output


@alternative("merge_value_output")
def merged_by_einsum(w_v: Tensor, w_o: Tensor) -> Tensor:
    """Sum over the head width with einsum."""
    heads, width, narrow = w_v.shape
    if w_o.dim() != 2 or len(w_o) != heads * narrow:
        raise ValueError(f"{len(w_o)} rows")
    merged = torch.einsum("hdv,hvo->hdo", w_v, w_o.view(heads, narrow, -1))
    return merged.reshape(heads * width, -1)


@alternative("merge_value_output")
def merged_by_block_diagonal(w_v: Tensor, w_o: Tensor) -> Tensor:
    """The value matrices on the diagonal of one large matrix: the zeros keep the heads apart."""
    heads, width, narrow = w_v.shape
    if w_o.dim() != 2 or w_o.shape[0] != heads * narrow:
        raise ValueError(f"{heads * narrow} rows are needed")
    diagonal = torch.eye(heads, dtype=w_v.dtype, device=w_v.device)[:, None, :, None]
    blocks = (w_v[:, :, None, :] * diagonal).reshape(heads * width, heads * narrow)
    return blocks @ w_o


# ----------------------------------------------------------------------------------------------------------- ablation


@alternative("head_ablation")
def ablation_by_mask(head_outputs: Tensor, o_weight: Tensor, o_bias: Tensor | None = None) -> Tensor:
    """As the definition says: zeros in place of a head, then the output map, for all heads at once."""
    B, H, T, Dh = head_outputs.shape
    if o_weight.shape[-1] != H * Dh:
        raise ValueError(o_weight.shape)
    keep = ~torch.eye(H, dtype=torch.bool, device=head_outputs.device)
    without = head_outputs * keep[:, None, :, None, None]  # (H, B, H, T, Dh)
    return F.linear(without.transpose(2, 3).reshape(H, B, T, H * Dh), o_weight, o_bias)


@alternative("head_ablation")
def ablation_by_difference(head_outputs: Tensor, o_weight: Tensor, o_bias: Tensor | None = None) -> Tensor:
    """The whole output less what each head put in."""
    B, H, T, Dh = head_outputs.shape
    if o_weight.shape[-1] != H * Dh:
        raise ValueError(f"{H} heads of {Dh} columns and {o_weight.shape[-1]} columns")
    whole = F.linear(head_outputs.transpose(1, 2).reshape(B, T, H * Dh), o_weight, o_bias)
    parts = torch.einsum("bhtw,dhw->hbtd", head_outputs, o_weight.view(-1, H, Dh))
    return whole - parts
