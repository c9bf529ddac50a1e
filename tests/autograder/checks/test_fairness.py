"""Implementations that are public, and right but for one thing, lose that thing's points, once, and are told why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from autograder.checking.verdict import Verdict
from autograder.checks import check


def graded(name: str, solution: Callable[..., Any]) -> Verdict:
    """The verdict on all questions."""
    solution.__name__ = name
    return check(solution, hidden=True, seed=3)


def missed(verdict: Verdict) -> list[str]:
    """The rows that were missed."""
    return [finding.aspect for finding in verdict.findings if not finding.passed]


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


@pytest.mark.parametrize("solution", [as_pytorch_has_it, as_bert_has_it])
def test_an_empty_row_that_is_not_zero_costs_its_own_points_and_is_named(solution: Callable[..., Any]) -> None:
    verdict = graded("scaled_dot_product_attention", solution)
    assert missed(verdict) == ["empty row"], str(verdict)
    assert len(verdict.diagnoses) == 1
    assert verdict.diagnoses[0].read == "fully-masked-row"


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


def test_a_time_first_layer_without_a_loop_is_told_of_no_loop_and_pays_for_the_empty_row_alone() -> None:
    verdict = graded("MultiHeadAttention", MultiHeadAttention)
    assert missed(verdict) == ["empty row"], str(verdict)
    assert verdict.diagnoses


def in_single_precision(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax in float32, whatever the inputs are, as many models have it for half precision."""
    boolean(mask)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    weights = torch.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return torch.where(weights.isnan(), 0.0, weights) @ v if mask is None else weights.masked_fill(~mask, 0.0) @ v


def test_a_softmax_in_single_precision_costs_double_precision_and_nothing_else() -> None:
    verdict = graded("scaled_dot_product_attention", in_single_precision)
    assert missed(verdict) == ["precision"], str(verdict)
