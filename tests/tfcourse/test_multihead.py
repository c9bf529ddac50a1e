"""Chapter 04 against loops written from the formulas, and the properties that hold whatever the numbers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tfcourse.attention import causal_mask, padding_mask, projected_attention
from tfcourse.multihead import (
    AttentionParameters,
    MultiHeadAttention,
    attention_parameters,
    head_ablation,
    merge_heads,
    merge_value_output,
    split_heads,
)

precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)


def randn(*shape: int, seed: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random inputs in float64, then rounded, so that every dtype sees the same numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def make_layer(D: int, H: int, *, bias: bool = True, seed: int = 3) -> MultiHeadAttention:
    """A layer in float64 with random weights and, where it has them, biases far from zero."""
    layer = MultiHeadAttention(D, H, bias=bias).double()
    with torch.no_grad():
        for number, parameter in enumerate(layer.parameters()):
            parameter.copy_(randn(*parameter.shape, seed=seed + number) / math.sqrt(D) ** (parameter.ndim - 1))
    return layer


def loop_layer(layer: MultiHeadAttention, x: Tensor, context: Tensor, allowed: Tensor) -> Tensor:
    """Multi-head attention head by head and query by query; `allowed` is (B, H, T, S)."""
    B, T, D = x.shape
    Dh = D // layer.n_heads
    concatenated = torch.zeros(B, T, D, dtype=x.dtype)
    for b in range(B):
        for h in range(layer.n_heads):
            columns = slice(h * Dh, (h + 1) * Dh)
            q, k, v = (
                y[b] @ projection.weight[columns].T + (0 if projection.bias is None else projection.bias[columns])
                for y, projection in ((x, layer.q_proj), (context, layer.k_proj), (context, layer.v_proj))
            )
            for t in range(T):
                keys = allowed[b, h, t].nonzero()[:, 0]
                if len(keys):
                    weights = torch.softmax((k[keys] * q[t]).sum(-1) / math.sqrt(Dh), 0)
                    concatenated[b, t, columns] = (weights[:, None] * v[keys]).sum(0)
    bias = 0 if layer.o_proj.bias is None else layer.o_proj.bias
    return concatenated @ layer.o_proj.weight.T + bias


def layer_gradients(layer: MultiHeadAttention, output: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    """Output and gradients for inputs and parameters, of a random weighting of the output."""
    weighting = randn(*output.shape, seed=output.numel()).to(output.dtype)
    leaves = (*inputs, *layer.parameters())
    # Where every pair is forbidden the loop never touches its inputs: their gradients are zeros then.
    return (output.detach(), *torch.autograd.grad(output, leaves, weighting, materialize_grads=True))


# ---------------------------------------------------------------------------------------------------- split and merge


@given(sizes=st.lists(st.integers(1, 7), min_size=4, max_size=4, unique=True))
def test_split_gives_each_head_its_run_of_columns_and_merge_puts_them_back(sizes):
    B, T, H, Dh = sizes
    x = randn(B, T, H * Dh)
    heads = split_heads(x, H)
    assert heads.shape == (B, H, T, Dh)
    for h in range(H):
        for d in range(Dh):
            torch.testing.assert_close(heads[:, h, :, d], x[:, :, h * Dh + d], rtol=0, atol=0)
    torch.testing.assert_close(merge_heads(heads), x, rtol=0, atol=0)
    torch.testing.assert_close(split_heads(merge_heads(heads.contiguous()), H), heads, rtol=0, atol=0)


def test_split_and_merge_accept_tensors_that_are_not_contiguous_and_pass_gradients():
    x = randn(3, 12, 4).transpose(1, 2)
    torch.testing.assert_close(split_heads(x, 2), split_heads(x.contiguous(), 2), rtol=0, atol=0)
    assert torch.autograd.gradcheck(lambda x: split_heads(x, 3), randn(2, 4, 6).requires_grad_())
    assert torch.autograd.gradcheck(merge_heads, randn(2, 3, 4, 5).requires_grad_())


# ------------------------------------------------------------------------------------------------------------- layer


@precise
@pytest.mark.parametrize("bias", [True, False])
@given(data=st.data())
def test_layer_and_its_gradients_equal_the_loop_for_self_and_cross_attention_and_every_mask(
    dtype, bias, data, assert_near
):
    B, T, S, Dh = data.draw(st.lists(st.integers(1, 6), min_size=4, max_size=4, unique=True))
    H = data.draw(st.integers(1, 4))
    seed = data.draw(st.integers(0, 10**6))
    is_self = data.draw(st.booleans())
    S = T if is_self else S
    layer = make_layer(H * Dh, H, bias=bias, seed=seed)
    x, context = (randn(B, n, H * Dh, seed=seed + n).requires_grad_() for n in (T, S))
    shape = data.draw(st.sampled_from([None, (T, S), (B, 1, S), (B, T, S), (B, 1, T, S), (B, H, T, S)]))
    mask = None if shape is None else randn(*shape, seed=seed) > data.draw(st.sampled_from([-0.5, 0.5]))
    allowed = torch.ones(B, H, T, S, dtype=torch.bool)
    if mask is not None:
        allowed = allowed & (mask[:, None] if mask.ndim == 3 else mask)
    inputs = (x,) if is_self else (x, context)
    expected = layer_gradients(layer, loop_layer(layer, x, x if is_self else context, allowed), *inputs)

    layer = layer.to(dtype)
    inputs = tuple(y.detach().to(dtype).requires_grad_() for y in inputs)
    actual = layer_gradients(layer, layer(*inputs, mask=mask), *inputs)
    assert all(y.dtype == dtype for y in actual)
    # Gradients of the weights sum over up to 36 positions: compared as parts of 10.
    assert_near(tuple(y / 10 for y in actual), tuple(y / 10 for y in expected))


def test_a_three_dimensional_mask_belongs_to_the_batch_even_if_there_are_as_many_heads():
    layer, x = make_layer(6, 3), randn(3, 4, 6)
    mask = padding_mask(torch.tensor([1, 4, 2]))
    torch.testing.assert_close(layer(x, mask=mask), layer(x, mask=mask[:, None].expand(3, 3, 4, 4)))
    for b, length in enumerate((1, 4, 2)):
        torch.testing.assert_close(layer(x, mask=mask)[b], layer(x[b : b + 1], x[b : b + 1, :length])[0])


def test_one_head_is_projected_attention_followed_by_the_output_projection():
    layer, x, context = make_layer(6, 1, bias=False), randn(2, 4, 6), randn(2, 5, 6, seed=4)
    matrices = (projection.weight.T for projection in (layer.q_proj, layer.k_proj, layer.v_proj))
    torch.testing.assert_close(layer(x, context), projected_attention(x, context, *matrices) @ layer.o_proj.weight.T)


def test_without_a_context_the_layer_attends_to_its_own_input():
    layer, x = make_layer(6, 2), randn(2, 4, 6)
    torch.testing.assert_close(layer(x), layer(x, x), rtol=0, atol=0)
    torch.testing.assert_close(layer(x, None, causal_mask(4)), layer(x, x, causal_mask(4)), rtol=0, atol=0)


def test_with_the_causal_mask_changing_the_future_changes_no_earlier_output():
    layer, x = make_layer(6, 2), randn(2, 5, 6)
    changed = x.clone()
    changed[:, 3:] += 5.0
    before, after = layer(x, mask=causal_mask(5)), layer(changed, mask=causal_mask(5))
    torch.testing.assert_close(before[:, :3], after[:, :3], rtol=0, atol=1e-14)
    assert (before[:, 3:] - after[:, 3:]).abs().min() > 1e-6, "the change must be seen where it is allowed"


def test_self_attention_without_a_mask_is_permutation_equivariant():
    layer, x, order = make_layer(6, 2), randn(2, 5, 6), torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])


def test_a_fully_masked_query_receives_the_output_bias_and_passes_no_gradient_to_its_input():
    layer, x, context = make_layer(6, 2), randn(2, 4, 6).requires_grad_(), randn(2, 5, 6, seed=4).requires_grad_()
    mask = torch.rand(4, 5, generator=torch.Generator().manual_seed(1)) < 0.7
    mask[2] = False
    _, grad_x, *others = layer_gradients(layer, layer(x, context, mask), x, context)
    torch.testing.assert_close(layer(x, context, mask)[:, 2], layer.o_proj.bias.expand(2, -1), rtol=0, atol=0)
    assert not grad_x[:, 2].any()
    assert all(y.isfinite().all() for y in (grad_x, *others))


def test_layer_has_four_square_linear_maps_with_their_names_and_nothing_else():
    names = [f"{map_}.{part}" for map_ in ("q_proj", "k_proj", "v_proj", "o_proj") for part in ("weight", "bias")]
    layer = MultiHeadAttention(12, 3)
    assert list(layer.state_dict()) == names
    assert layer.n_heads == 3
    assert all(parameter.shape in {(12, 12), (12,)} for parameter in layer.parameters())
    assert list(MultiHeadAttention(12, 3, bias=False).state_dict()) == names[::2]


# ------------------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize("sizes", [(512, 8, 64, 64, 512), (12, 3, 5, 7, 11), (6, 2, 4, 1, 9)])
def test_parameters_are_those_of_the_matrices_themselves(sizes):
    D, H, Dk, Dv, Do = sizes
    count = attention_parameters(*sizes)
    assert isinstance(count, AttentionParameters)
    assert all(type(number) is int for number in count)
    assert count.query_key == 2 * randn(H, D, Dk).numel()
    assert count.merged_query_key == randn(H, D, D).numel()
    w_v, w_o = randn(H, D, Dv), randn(H * Dv, Do)
    assert count.value_output == w_v.numel() + w_o.numel()
    assert count.merged_value_output == merge_value_output(w_v, w_o).numel()


@pytest.mark.parametrize("n_heads", [2, 4, 8, 16])
def test_merging_costs_half_as_many_times_as_there_are_heads(n_heads):
    width = 512 // n_heads
    count = attention_parameters(512, n_heads, width, width, 512)
    assert count.merged_query_key * 2 == count.query_key * n_heads
    assert count.merged_value_output * 2 == count.value_output * n_heads


def test_the_papers_base_layer_has_as_many_parameters_as_counted():
    count = attention_parameters(512, 8, 64, 64, 512)
    layer = MultiHeadAttention(512, 8, bias=False)
    assert count.query_key + count.value_output == sum(parameter.numel() for parameter in layer.parameters())
    assert count == (524_288, 2_097_152, 524_288, 2_097_152)


# ------------------------------------------------------------------------------------------- value and output, heads


@precise
@given(sizes=st.lists(st.integers(1, 7), min_size=5, max_size=5, unique=True), seed=st.integers(0, 10**6))
def test_the_merged_value_and_output_matrix_gives_the_same_outputs_and_gradients(
    dtype, sizes, seed, with_gradients, assert_near
):
    H, D, Dv, Do, S = sizes
    w_v, w_o = randn(H, D, Dv, seed=seed, dtype=dtype), randn(H * Dv, Do, seed=seed + 1, dtype=dtype)
    weights, x = randn(H, 3, S, seed=seed + 2, dtype=dtype), randn(S, D, seed=seed + 3, dtype=dtype)

    def merged(w_v, w_o):
        return torch.cat([head @ x for head in weights], -1) @ merge_value_output(w_v, w_o)

    def separate(w_v, w_o):
        values = [head @ x.double() @ w for head, w in zip(weights.double(), w_v, strict=True)]
        return torch.cat(values, -1) @ w_o

    actual, expected = with_gradients(merged, w_v, w_o), with_gradients(separate, w_v.double(), w_o.double())
    assert merge_value_output(w_v, w_o).shape == (H * D, Do)
    # Four nested sums of up to 49 terms: compared as parts of 100.
    assert_near(tuple(y / 100 for y in actual), tuple(y / 100 for y in expected), "head i owns rows i*Dv to (i+1)*Dv")


@precise
@pytest.mark.parametrize("bias", [True, False])
@given(sizes=st.lists(st.integers(1, 7), min_size=5, max_size=5, unique=True), seed=st.integers(0, 10**6))
def test_ablation_of_a_head_equals_the_layer_with_that_heads_columns_set_to_zero(
    dtype, bias, sizes, seed, with_gradients, assert_near
):
    B, H, T, Dh, D = sizes
    inputs = [randn(B, H, T, Dh, seed=seed, dtype=dtype), randn(D, H * Dh, seed=seed + 1, dtype=dtype)]
    if bias:
        inputs.append(randn(D, seed=seed + 2, dtype=dtype))

    def zeroed(head_outputs, o_weight, o_bias=None):
        results = []
        for h in range(H):
            keep = torch.ones(H, 1, 1, dtype=torch.float64)
            keep[h] = 0.0
            columns = torch.cat(list((head_outputs * keep).unbind(1)), -1)
            results.append(torch.nn.functional.linear(columns, o_weight, o_bias))
        return torch.stack(results)

    expected = with_gradients(zeroed, *(y.double() for y in inputs))
    actual = with_gradients(head_ablation, *inputs)
    assert actual[0].shape == (H, B, T, D)
    # Gradients sum over heads and positions: compared as parts of 10.
    assert_near(tuple(y / 10 for y in actual), tuple(y / 10 for y in expected), "the bias stays, nothing is rescaled")


def test_ablating_the_heads_of_a_layer_removes_exactly_what_each_contributed():
    layer, x = make_layer(6, 3), randn(2, 4, 6)
    seen: list[Tensor] = []
    hook = layer.o_proj.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    output = layer(x)
    hook.remove()
    ablated = head_ablation(split_heads(seen[0], 3), layer.o_proj.weight, layer.o_proj.bias)
    torch.testing.assert_close((output - ablated).sum(0) + layer.o_proj.bias, output)


# -------------------------------------------------------------------------------------------- devices, dtypes, inputs


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: split_heads(randn(2, 4, 10), 3), r"width 10 cannot be divided into 3 heads.*\(2, 4, 10\)"),
        (lambda: split_heads(randn(4, 10), 2), r"\(B, T, D\), got \(4, 10\)"),
        (lambda: merge_heads(randn(2, 4, 10)), r"\(B, H, T, Dh\), got \(2, 4, 10\)"),
        (lambda: MultiHeadAttention(10, 3), "d_model=10 cannot be divided into n_heads=3"),
        (lambda: make_layer(6, 2)(randn(4, 6)), r"\(B, T, D\), got \(4, 6\)"),
        (lambda: make_layer(6, 2)(randn(3, 4, 6), mask=randn(3, 4) > 0), r"mask \(3, 4\) cannot be broadcast"),
        (lambda: make_layer(6, 2)(randn(3, 4, 6), mask=randn(4, 4)), "must be boolean.*torch.float64"),
        (lambda: merge_value_output(randn(2, 6, 3), randn(5, 6)), r"do not fit: \(2, 6, 3\) and \(5, 6\)"),
        (lambda: merge_value_output(randn(6, 3), randn(3, 6)), r"do not fit: \(6, 3\) and \(3, 6\)"),
        (lambda: head_ablation(randn(2, 3, 4, 5), randn(15, 12)), r"\(D, 15\) for 3 heads of 5, got \(15, 12\)"),
        (lambda: head_ablation(randn(3, 4, 5), randn(12, 15)), r"got \(3, 4, 5\)"),
    ],
)
def test_wrong_inputs_are_refused_with_their_values_and_shapes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
