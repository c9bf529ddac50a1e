"""Chapter 04 against PyTorch's layer with copied weights, and the paper's counts."""

import math
import re

import pytest
import torch
from torch import nn

from tfcourse.attention import causal_mask, padding_mask
from tfcourse.multihead import MultiHeadAttention, attention_parameters, head_ablation, merge_heads, split_heads

from .drawing import randn

precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def randomise(module: nn.Module) -> None:
    """Give a layer random weights of a sensible size and biases far from zero."""
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(
                randn(*parameter.shape, seed=number) / math.sqrt(parameter.shape[-1]) ** (parameter.ndim - 1)
            )


def compare_layers(ours, theirs, grads, expected_grads, inputs, assert_near) -> None:
    """Outputs and gradients with respect to inputs and corresponding parameters."""
    weighting = randn(*ours.shape, seed=8, dtype=ours.dtype)
    assert_near(ours, theirs)
    actual = torch.autograd.grad(ours, (*inputs, *grads), weighting)
    expected = torch.autograd.grad(theirs, (*inputs, *expected_grads), weighting)
    # Gradients of the weights sum over 12 positions and more: compared as parts of 10.
    assert_near(tuple(x / 10 for x in actual), tuple(x / 10 for x in expected))


MASKS = {
    "none": lambda B, T, S: None,
    "causal": lambda B, T, S: causal_mask(max(T, S))[:T, :S],
    "padding": lambda B, T, S: padding_mask(torch.tensor([S, 2, 3][:B]), S),
    "random": lambda B, T, S: (randn(B, T, S) > 0) | (torch.arange(S) == 1),
}
masks = pytest.mark.parametrize("mask", MASKS)
kinds = pytest.mark.parametrize("is_cross", [False, True], ids=["self", "cross"])


@precise
@masks
@kinds
@pytest.mark.parametrize("bias", [True, False])
def test_layer_and_its_gradients_equal_pytorchs_layer_with_copied_weights(dtype, mask, is_cross, bias, assert_near):
    B, T, S, D, H = 3, 4, 5 if is_cross else 4, 12, 2
    layer, oracle = (
        MultiHeadAttention(D, H, bias=bias).to(dtype),
        nn.MultiheadAttention(D, H, bias=bias, batch_first=True).to(dtype),
    )
    randomise(layer)
    projections = (layer.q_proj, layer.k_proj, layer.v_proj)
    with torch.no_grad():
        oracle.in_proj_weight.copy_(torch.cat([p.weight for p in projections]))
        oracle.out_proj.weight.copy_(layer.o_proj.weight)
        if bias:
            oracle.in_proj_bias.copy_(torch.cat([p.bias for p in projections]))
            oracle.out_proj.bias.copy_(layer.o_proj.bias)
    x = randn(B, T, D, dtype=dtype).requires_grad_()
    context = randn(B, S, D, seed=4, dtype=dtype).requires_grad_() if is_cross else x
    may = MASKS[mask](B, T, S)
    # PyTorch's layer reads a boolean mask the other way round, True = may NOT attend, and wants one a head: (B*H, T, S).
    may_not = None if may is None else ~may.expand(B, T, S).repeat_interleave(H, dim=0)
    theirs, _ = oracle(x, context, context, attn_mask=may_not, need_weights=False)
    ours = layer(x, context if is_cross else None, may)
    inputs = (x, context) if is_cross else (x,)
    compare_layers(ours, theirs, [layer.o_proj.weight], [oracle.out_proj.weight], inputs, assert_near)
    ours, (theirs, _) = layer(x, context, may), oracle(x, context, context, attn_mask=may_not)
    weighting = randn(B, T, D, seed=8, dtype=dtype)
    actual = torch.autograd.grad(ours, [p.weight for p in projections], weighting)
    (expected,) = torch.autograd.grad(theirs, [oracle.in_proj_weight], weighting)
    assert_near(torch.cat(actual) / 10, expected / 10)


def test_the_papers_base_layer_has_as_many_parameters_as_counted():
    count = attention_parameters(512, 8, 64, 64, 512)
    layer = MultiHeadAttention(512, 8, bias=False)
    assert count.query_key + count.value_output == sum(parameter.numel() for parameter in layer.parameters())
    assert count == (524_288, 2_097_152, 524_288, 2_097_152)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 3, 4, 5, 6)])
@pytest.mark.parametrize(
    ("call", "dimensions"),
    [
        (lambda x: split_heads(x, 2), 3),
        (merge_heads, 4),
        (lambda x: head_ablation(x, randn(7, x.shape[1] * x.shape[-1])), 4),
    ],
)
def test_other_numbers_of_dimensions_are_refused_with_the_shape(call, dimensions, shape):
    if len(shape) != dimensions:
        with pytest.raises(ValueError, match=re.escape(str(shape))):
            call(randn(*shape))
