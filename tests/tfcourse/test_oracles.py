"""The reference against implementations that others wrote: PyTorch's operator and layer, Hugging Face's modules."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from transformers import BartConfig, BertConfig, GPT2Config
from transformers.models.bart.modeling_bart import BartAttention
from transformers.models.bert.modeling_bert import BertSelfAttention
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

from tfcourse.attention import (
    attention_backward,
    causal_mask,
    cosine_attention,
    padding_mask,
    scaled_dot_product_attention,
    tiled_attention,
)
from tfcourse.multihead import MultiHeadAttention

precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def randn(*shape: int, seed: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random inputs in float64, then rounded, so that every dtype sees the same numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


# --------------------------------------------------------------------------------------------- PyTorch's operator


@precise
@given(data=st.data())
def test_attention_and_its_gradients_equal_pytorchs_operator(
    dtype, data, attention_inputs, with_gradients, assert_near
):
    *qkv, mask = data.draw(attention_inputs(dtype, blind=False))
    actual = with_gradients(lambda q, k, v: scaled_dot_product_attention(q, k, v, mask), *qkv)
    expected = with_gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask), *qkv)
    assert_near(actual, expected)


@given(data=st.data())
def test_fully_masked_rows_are_zeros_as_in_pytorchs_operator(data, attention_inputs, with_gradients, assert_near):
    # PyTorch's operator defines such a row as zeros since 2.5 (it was NaN before); nn.MultiheadAttention still gives NaN.
    *qkv, mask = data.draw(attention_inputs(blind=True))
    actual = with_gradients(lambda q, k, v: scaled_dot_product_attention(q, k, v, mask), *qkv)
    expected = with_gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask), *qkv)
    assert_near(actual, expected)


@precise
@given(data=st.data())
def test_the_causal_mask_is_pytorchs_is_causal(dtype, data, attention_inputs, with_gradients, assert_near):
    x, *_ = data.draw(attention_inputs(dtype, masked=False))
    inputs = (x, x * 0.7, x.flip(-1))
    mask = causal_mask(x.shape[-2])
    expected = with_gradients(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), *inputs)
    assert_near(with_gradients(lambda q, k, v: scaled_dot_product_attention(q, k, v, mask), *inputs), expected)


@precise
@given(data=st.data())
def test_tiled_attention_and_its_gradients_equal_pytorchs_operator(
    dtype, data, attention_inputs, with_gradients, assert_near
):
    *qkv, _ = data.draw(attention_inputs(dtype, masked=False))
    tile_size = data.draw(st.integers(1, 11))
    expected = with_gradients(F.scaled_dot_product_attention, *qkv)
    assert_near(with_gradients(lambda q, k, v: tiled_attention(q, k, v, tile_size), *qkv), expected)


@precise
@given(data=st.data())
def test_cosine_attention_is_pytorchs_operator_on_normalised_vectors(
    dtype, data, attention_inputs, with_gradients, assert_near
):
    *qkv, mask = data.draw(attention_inputs(dtype, blind=False))

    def oracle(q, k, v):
        return F.scaled_dot_product_attention(F.normalize(q, dim=-1), F.normalize(k, dim=-1), v, mask, scale=2.5)

    actual = with_gradients(lambda q, k, v: cosine_attention(q, k, v, mask, scale=2.5), *qkv)
    assert_near(actual, with_gradients(oracle, *qkv))


@precise
@given(data=st.data())
def test_backward_by_hand_equals_autograd_through_pytorchs_operator(dtype, data, attention_inputs, assert_near):
    *qkv, mask = data.draw(attention_inputs(dtype, blind=False))
    leaves = [x.requires_grad_() for x in qkv]
    output = F.scaled_dot_product_attention(*leaves, mask)
    grad_output = randn(*output.shape, seed=9, dtype=dtype)
    expected = torch.autograd.grad(output, leaves, grad_output)
    assert_near(attention_backward(*(x.detach() for x in leaves), grad_output, mask), expected)


# ------------------------------------------------------------------------------------- layers with the same weights


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


def additive(may: Tensor | None, B: int, T: int, S: int, dtype: torch.dtype) -> Tensor | None:
    """The mask that Hugging Face's modules add to the scores: 0 where allowed, the lowest number elsewhere."""
    if may is None:
        return None
    lowest = torch.finfo(dtype).min
    return torch.full((B, 1, T, S), lowest, dtype=dtype).masked_fill(may.expand(B, T, S)[:, None], 0.0)


@precise
@masks
@kinds
def test_layer_and_its_gradients_equal_barts_attention_with_copied_weights(dtype, mask, is_cross, assert_near):
    B, T, S, D, H = 3, 4, 5 if is_cross else 4, 12, 3
    config = BartConfig(d_model=D, attn_implementation="eager")
    oracle = BartAttention(D, H, config=config).eval().to(dtype)
    randomise(oracle)
    layer = MultiHeadAttention(D, H).to(dtype)
    pairs = {"q_proj": "q_proj", "k_proj": "k_proj", "v_proj": "v_proj", "o_proj": "out_proj"}
    for ours, theirs in pairs.items():
        layer.get_submodule(ours).load_state_dict(oracle.get_submodule(theirs).state_dict())
    x, context = randn(B, T, D, dtype=dtype).requires_grad_(), randn(B, S, D, seed=4, dtype=dtype).requires_grad_()
    inputs = (x, context) if is_cross else (x,)
    may = MASKS[mask](B, T, S)
    theirs, _ = oracle(*inputs, attention_mask=additive(may, B, T, S, dtype))
    parameters = [
        [m.get_submodule(name).weight for name in names] for m, names in ((layer, pairs), (oracle, pairs.values()))
    ]
    compare_layers(layer(*inputs, mask=may), theirs, *parameters, inputs, assert_near)


@precise
@masks
def test_heads_equal_berts_self_attention_with_copied_weights(dtype, mask, assert_near):
    B, T, D, H = 3, 4, 12, 3
    config = BertConfig(hidden_size=D, num_attention_heads=H, attn_implementation="eager")
    oracle = BertSelfAttention(config).eval().to(dtype)
    randomise(oracle)
    layer = MultiHeadAttention(D, H).to(dtype)
    for ours, theirs in (("q_proj", "query"), ("k_proj", "key"), ("v_proj", "value")):
        layer.get_submodule(ours).load_state_dict(oracle.get_submodule(theirs).state_dict())
    layer.o_proj = nn.Identity()  # BERT keeps its output projection in another module
    x = randn(B, T, D, dtype=dtype).requires_grad_()
    may = MASKS[mask](B, T, T)
    theirs, *_ = oracle(x, attention_mask=additive(may, B, T, T, dtype))
    compare_layers(layer(x, mask=may), theirs, [layer.k_proj.bias], [oracle.key.bias], (x,), assert_near)


@precise
def test_causal_layer_equals_gpt2s_attention_with_copied_weights(dtype, assert_near):
    B, T, D, H = 3, 5, 12, 2
    config = GPT2Config(n_embd=D, n_head=H, attn_implementation="sdpa")
    oracle = GPT2Attention(config, layer_idx=0).eval().to(dtype)
    randomise(oracle)
    layer = MultiHeadAttention(D, H).to(dtype)
    with torch.no_grad():
        # GPT-2 stores its matrices transposed, and queries, keys and values in one.
        for number, projection in enumerate((layer.q_proj, layer.k_proj, layer.v_proj)):
            columns = slice(number * D, (number + 1) * D)
            projection.weight.copy_(oracle.c_attn.weight[:, columns].T)
            projection.bias.copy_(oracle.c_attn.bias[columns])
        layer.o_proj.weight.copy_(oracle.c_proj.weight.T)
        layer.o_proj.bias.copy_(oracle.c_proj.bias)
    x = randn(B, T, D, dtype=dtype).requires_grad_()
    theirs, *_ = oracle(x)
    compare_layers(layer(x, mask=causal_mask(T)), theirs, [layer.o_proj.bias], [oracle.c_proj.bias], (x,), assert_near)
