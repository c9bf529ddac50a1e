"""Chapter 03 against PyTorch's operator and PyTorch's counter of operations."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from tfcourse.attention import (
    attention_backward,
    attention_cost,
    attention_projections,
    causal_mask,
    cosine_attention,
    masked_attention_weights,
    merge_query_key,
    projected_attention,
    scaled_dot_product_attention,
    score_variance,
    soft_lookup,
    tiled_attention,
)

from .drawing import randn

precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


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


@pytest.mark.parametrize("sizes", [(4, 7, 5, 6), (16, 3, 8, 2), (33, 65, 17, 9)])
@pytest.mark.parametrize("leading", [(), (1, 1)])
def test_flops_are_those_that_pytorch_counts(sizes, leading):
    T, S, Dh, Dv = sizes
    with FlopCounterMode(display=False) as counter:
        scaled_dot_product_attention(randn(*leading, T, Dh), randn(*leading, S, Dh), randn(*leading, S, Dv))
    assert attention_cost(*sizes).flops == counter.get_total_flops()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_bytes_are_those_that_inputs_weights_and_output_occupy(dtype):
    q, k, v = randn(4, 5, dtype=dtype), randn(7, 5, dtype=dtype), randn(7, 6, dtype=dtype)
    held = (q, k, v, masked_attention_weights(q, k), scaled_dot_product_attention(q, k, v))
    cost = attention_cost(4, 7, 5, 6, itemsize=dtype.itemsize)
    assert cost.bytes == sum(x.untyped_storage().nbytes() for x in held)


Q, K, V = randn(2, 3, 4), randn(2, 5, 4), randn(2, 5, 6)
YES = torch.rand(3, 5) < 2


@pytest.mark.parametrize(
    "call",
    [
        lambda: scaled_dot_product_attention(Q, K, Q),
        lambda: scaled_dot_product_attention(Q, V, V),
        lambda: scaled_dot_product_attention(Q, K, V, YES.int()),
        lambda: cosine_attention(Q, K, Q),
        lambda: cosine_attention(Q, K, V, YES.T),
        lambda: cosine_attention(Q, V, V),
        lambda: score_variance(Q, V),
        lambda: soft_lookup(Q[0, 0], V[0], V[0]),
        lambda: soft_lookup(Q[0, 0], K, V),
        lambda: soft_lookup(Q[0, 0], K[0], V[0, 1:]),
        lambda: attention_projections(Q, K, V[0], K[0].T, K[0].T),
        lambda: attention_projections(Q, K, K[0].T, K[0].T, V),
        lambda: projected_attention(Q, K, K[0].T, K[0].T[:, 1:], K[0].T),
        lambda: merge_query_key(Q[0], V[0]),
        lambda: merge_query_key(Q, K[0]),
        lambda: attention_backward(Q, K, V, Q),
        lambda: attention_backward(Q[0], K, V, V[:, :3]),
        lambda: attention_backward(Q, K, V, V[:, :3], YES.T),
    ],
)
def test_inputs_that_no_check_asks_about_are_refused_with_their_values(call):
    with pytest.raises(ValueError, match=r"\d|'"):
        call()
