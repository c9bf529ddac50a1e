"""Implementations that are public, and right but for one thing, lose that thing's points, once, and are told why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.checks import check


def boolean(mask: Tensor | None) -> None:
    if mask is not None and mask.dtype != torch.bool:
        raise ValueError("a mask is boolean")


def as_pytorch_has_it(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """PyTorch's documentation of its own function: minus infinity everywhere makes NaN."""
    boolean(mask)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def as_bert_has_it(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """A large negative number: a row of nothing but those is uniform."""
    boolean(mask)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1) @ v


class MultiHeadAttention(nn.Module):
    """Time first inside, as nn.MultiheadAttention has it, and no loop anywhere; NaN in an empty row, as there."""

    def __init__(self, d_model: int, n_heads: int, bias: bool = True) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError("the width cannot be divided by the number of heads")
        self.n_heads = n_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(d_model, d_model, bias=bias) for _ in range(4))

    def forward(self, x: Tensor, context: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        context = x if context is None else context
        (B, T, D), S, H = x.shape, context.shape[1], self.n_heads
        q = self.q_proj(x.transpose(0, 1)).reshape(T, B * H, D // H).transpose(0, 1)
        k, v = (
            linear(context.transpose(0, 1)).reshape(S, B * H, D // H).transpose(0, 1)
            for linear in (self.k_proj, self.v_proj)
        )
        scores = torch.bmm(q, k.transpose(1, 2)).reshape(B, H, T, S) / (D // H) ** 0.5
        if mask is not None:
            mask = mask[:, None] if mask.ndim == 3 else mask
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1).reshape(B * H, T, S)
        merged = torch.bmm(weights, v).transpose(0, 1).reshape(T, B, D)
        return self.o_proj(merged).transpose(0, 1)


def in_single_precision(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax in float32, whatever the inputs are, as many models have it for half precision."""
    boolean(mask)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.where(weights.isnan(), 0.0, weights) @ v if mask is None else weights.masked_fill(~mask, 0.0) @ v


def spans_one_by_one(start: Tensor, end: Tensor, *, max_length: int) -> tuple[Tensor, Tensor]:
    """A loop over plain numbers."""
    if max_length < 1:
        raise ValueError(max_length)
    found = []
    for first, last in zip(start.tolist(), end.tolist(), strict=True):
        spans = [(i, j) for i in range(len(first)) for j in range(i, min(len(first), i + max_length))]
        found.append(max(spans, key=lambda span: (first[span[0]] + last[span[1]], -span[0], -span[1])))
    i, j = torch.tensor(found, device=start.device).T
    return i, j


@pytest.mark.parametrize(
    ("name", "solution", "row", "read"),
    [
        ("scaled_dot_product_attention", as_pytorch_has_it, "empty row", "fully-masked-row"),
        ("scaled_dot_product_attention", as_bert_has_it, "empty row", "fully-masked-row"),
        ("scaled_dot_product_attention", in_single_precision, "precision", ""),
        ("MultiHeadAttention", MultiHeadAttention, "empty row", "self-cross-causal"),
        ("best_span", spans_one_by_one, "loops", ""),
    ],
)
def test_one_thing_that_is_not_right_costs_its_own_row_alone_and_is_named(
    name: str, solution: Callable[..., Any], row: str, read: str
) -> None:
    solution.__name__ = name
    verdict = check(solution, hidden=True, seed=3)
    assert [finding.aspect for finding in verdict.findings if not finding.passed] == [row], str(verdict)
    assert not read or {diagnosis.read for diagnosis in verdict.diagnoses} == {read}
