"""Chapter 03 against loops written from the formulas, and the properties that hold whatever the numbers."""

import inspect
import math
import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import tfcourse.attention
from tfcourse.attention import (
    AttentionCost,
    attention_backward,
    attention_cost,
    attention_projections,
    causal_mask,
    cosine_attention,
    masked_attention_weights,
    merge_query_key,
    padding_mask,
    projected_attention,
    scaled_dot_product_attention,
    score_variance,
    soft_lookup,
    tiled_attention,
)

EXERCISES = [name for name in tfcourse.attention.__all__ if name != "AttentionCost"]
TAKES_MASK = [scaled_dot_product_attention, cosine_attention]
precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
half = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)


def randn(*shape: int, seed: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random inputs in float64, then rounded, so that every dtype sees the same numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


# ------------------------------------------------------------------------------- the formulas, one number at a time


def dot(a: Tensor, b: Tensor) -> Tensor:
    """The sum of the products, term by term."""
    return sum((x * y for x, y in zip(a, b, strict=True)), a.new_zeros(()))


def loop_weights(scores: list[Tensor], allowed: list[bool]) -> list[Tensor]:
    """Softmax of the allowed scores; 0 for the others, and for all if none is allowed."""
    shift = max((s.item() for s, yes in zip(scores, allowed, strict=True) if yes), default=0.0)
    terms = [(s - shift).exp() if yes else s * 0 for s, yes in zip(scores, allowed, strict=True)]
    return [term / sum(terms) for term in terms] if any(allowed) else terms


def loop_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, score: object) -> Tensor:
    """Attention with any score function, by loops over leading indices, queries, keys and values."""
    leading, T, S = q.shape[:-2], q.shape[-2], k.shape[-2]
    allowed = torch.ones(*leading, T, S, dtype=torch.bool)
    if mask is not None:
        allowed = allowed & mask
    flat = [x.reshape(-1, *x.shape[-2:]) for x in (q, k, v, allowed)]
    rows = []
    for q_one, k_one, v_one, allowed_one in zip(*flat, strict=True):
        for i in range(T):
            weights = loop_weights([score(q_one[i], key) for key in k_one], allowed_one[i].tolist())
            rows.append(sum(weight * value for weight, value in zip(weights, v_one, strict=True)))
    return torch.stack(rows).reshape(*leading, T, v.shape[-1])


def scaled_dot(a: Tensor, b: Tensor) -> Tensor:
    """The score of Vaswani et al. 2017."""
    return dot(a, b) / len(a) ** 0.5


def cosine(a: Tensor, b: Tensor) -> Tensor:
    """The cosine of the angle, 0 for a zero vector."""
    if not a.any() or not b.any():
        return dot(a, b) * 0
    return dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt())


# ------------------------------------------------------------------------------------------------ values, gradients


@precise
@given(data=st.data())
def test_attention_and_its_gradients_equal_the_loop_from_the_formula(
    dtype, data, attention_inputs, with_gradients, assert_near
):
    *qkv, mask = data.draw(attention_inputs(dtype))
    actual = with_gradients(lambda q, k, v: scaled_dot_product_attention(q, k, v, mask), *qkv)
    wide = [x.double() for x in qkv]
    expected = with_gradients(lambda q, k, v: loop_attention(q, k, v, mask, scaled_dot), *wide)
    assert all(x.dtype == dtype for x in actual)
    assert_near(actual, expected, "scaled by 1/sqrt(Dh)? softmax over the keys? mask True = may attend?")


@precise
@given(data=st.data())
def test_weights_are_what_attention_gives_when_each_value_is_its_own_indicator(
    dtype, data, attention_inputs, with_gradients, assert_near
):
    q, k, _, mask = data.draw(attention_inputs(dtype))
    indicator = torch.eye(k.shape[-2], dtype=torch.float64).expand(*k.shape[:-1], -1)
    actual = with_gradients(lambda q, k: masked_attention_weights(q, k, mask), q, k)
    expected = with_gradients(lambda q, k: loop_attention(q, k, indicator, mask, scaled_dot), q.double(), k.double())
    assert_near(actual, expected)


@given(data=st.data())
def test_weights_are_zero_where_forbidden_and_sum_to_one_over_the_permitted_keys(data, attention_inputs):
    q, k, _, mask = data.draw(attention_inputs())
    weights = masked_attention_weights(q, k, mask)
    allowed = torch.ones_like(weights, dtype=torch.bool) if mask is None else mask.expand_as(weights)
    assert not weights[~allowed].any(), "a forbidden pair has a weight"
    torch.testing.assert_close(weights.sum(-1), allowed.any(-1).double())


@precise
@given(sizes=st.lists(st.integers(1, 9), min_size=3, max_size=3, unique=True), seed=st.integers(0, 10**6))
def test_soft_lookup_and_its_gradients_equal_the_loop_without_scaling(dtype, sizes, seed, with_gradients, assert_near):
    S, Dh, Dv = sizes
    inputs = [randn(*shape, seed=seed, dtype=dtype) for shape in ((Dh,), (S, Dh), (S, Dv))]

    def loop(query, keys, values):
        return loop_attention(query[None], keys, values, None, dot)[0]

    expected = with_gradients(loop, *(x.double() for x in inputs))
    assert_near(with_gradients(soft_lookup, *inputs), expected, "soft_lookup is not scaled by 1/sqrt(Dh)")


@precise
@given(data=st.data())
def test_cosine_attention_and_its_gradients_equal_the_loop(dtype, data, attention_inputs, with_gradients, assert_near):
    *qkv, mask = data.draw(attention_inputs(dtype))
    scale = data.draw(st.sampled_from([0.5, 1.0, 3.0]))
    actual = with_gradients(lambda q, k, v: cosine_attention(q, k, v, mask, scale=scale), *qkv)
    expected = with_gradients(
        lambda q, k, v: loop_attention(q, k, v, mask, lambda a, b: scale * cosine(a, b)), *(x.double() for x in qkv)
    )
    assert_near(actual, expected, "a cosine is scaled by scale alone, not by 1/sqrt(Dh)")


def test_cosine_attention_ignores_how_long_queries_and_keys_are():
    q, k, v = randn(2, 4, 6), randn(2, 5, 6, seed=4), randn(2, 5, 7, seed=5)
    longer = cosine_attention(q * 100, k * 0.01, v, scale=2.0)
    torch.testing.assert_close(longer, cosine_attention(q, k, v, scale=2.0))
    assert cosine_attention.__kwdefaults__ == {"scale": 1.0}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_cosine_with_a_zero_vector_is_zero_and_its_gradient_finite(dtype, with_gradients, assert_near):
    q, k, v = randn(4, 6, dtype=dtype), randn(5, 6, seed=4, dtype=dtype), randn(5, 7, seed=5, dtype=dtype)
    q[1], k[2] = 0.0, 0.0
    output, *gradients = with_gradients(cosine_attention, q, k, v)
    expected = loop_attention(q.double(), k.double(), v.double(), None, cosine)
    assert_near(output, expected, "the zero vector has cosine 0 with every vector")
    assert_near(output[1], v.double().mean(0), "equal cosines give equal weights")
    assert all(gradient.isfinite().all() for gradient in gradients)
    assert not gradients[0][1].any()
    assert not gradients[1][2].any()


@precise
def test_projections_are_rows_times_matrices(dtype, with_gradients, assert_near):
    x_q, x_kv = randn(2, 3, 6, dtype=dtype), randn(2, 5, 6, seed=4, dtype=dtype)
    w_q, w_k, w_v = (randn(6, width, seed=width, dtype=dtype) for width in (4, 4, 7))
    projected = attention_projections(x_q, x_kv, w_q, w_k, w_v)
    assert isinstance(projected, tuple)
    for result, x, w in zip(projected, (x_q, x_kv, x_kv), (w_q, w_k, w_v), strict=True):
        expected = torch.stack([torch.stack([dot(row, column) for column in w.double().T]) for row in x[1].double()])
        assert_near(result[1], expected, "queries come from x_q, keys and values from x_kv")
        assert result.shape == (*x.shape[:-1], w.shape[1])

    def matrix_form(x_q, x_kv, w_q, w_k, w_v):
        return torch.softmax(x_q @ w_q @ (x_kv @ w_k).mT / 2.0, -1) @ (x_kv @ w_v)  # sqrt(Dk) = 2

    inputs = (x_q, x_kv, w_q, w_k, w_v)
    expected = with_gradients(matrix_form, *(x.double() for x in inputs))
    actual = with_gradients(projected_attention, *inputs)
    # Gradients of the matrices add up over two batches: compared relative to their size, about 100.
    assert_near(tuple(x / 10 for x in actual), tuple(x / 10 for x in expected), "scaled by 1/sqrt(Dk), not 1/sqrt(D)")


@given(data=st.data())
def test_projected_attention_with_a_mask_equals_the_loop_over_its_projections(data, attention_inputs, assert_near):
    x_q, x_kv, _, mask = data.draw(attention_inputs())
    D = x_q.shape[-1]
    w_q, w_k, w_v = randn(D, 3, seed=1), randn(D, 3, seed=2), randn(D, 5, seed=3)
    actual = projected_attention(x_q, x_kv, w_q, w_k, w_v, mask)
    assert_near(actual, loop_attention(x_q @ w_q, x_kv @ w_k, x_kv @ w_v, mask, scaled_dot))


@precise
@pytest.mark.parametrize("scaled", [True, False])
@given(data=st.data())
def test_score_variance_is_the_population_variance_of_all_scores(dtype, scaled, data, attention_inputs, assert_near):
    q, k, *_ = data.draw(attention_inputs(dtype, masked=False))
    actual = score_variance(q, k, scaled=scaled)
    assert actual.shape == q.shape[:-2]
    score = scaled_dot if scaled else dot
    flat = zip(q.double().reshape(-1, *q.shape[-2:]), k.double().reshape(-1, *k.shape[-2:]), strict=True)
    expected = [statistics.pvariance([float(score(a, b)) for a in q_one for b in k_one]) for q_one, k_one in flat]
    # The variance of unscaled scores is as large as Dh, the error with it: compared relative to Dh.
    width = 1 if scaled else q.shape[-1]
    assert_near(actual.flatten() / width, torch.tensor(expected, dtype=torch.float64) / width, "divide by T*S")


@pytest.mark.parametrize("Dh", [16, 64, 256])
def test_variance_grows_with_the_width_unless_scores_are_scaled(Dh):
    q, k = randn(400, Dh), randn(500, Dh, seed=4)
    assert score_variance(q, k).item() == pytest.approx(1.0, rel=0.1)
    assert score_variance(q, k, scaled=False).item() == pytest.approx(Dh, rel=0.1)


@precise
def test_merged_matrix_gives_the_scores_of_the_two_it_replaces(dtype, with_gradients, assert_near):
    w_q, w_k, x = randn(6, 3, dtype=dtype), randn(6, 3, seed=4, dtype=dtype), randn(2, 4, 6, seed=5, dtype=dtype)
    merged = merge_query_key(w_q, w_k)
    expected = torch.stack([torch.stack([dot(a, b) for b in w_k.double()]) for a in w_q.double()])
    assert_near(merged, expected, "w_q @ w_k transposed: the order decides who asks")
    assert_near((x @ merged @ x.mT) / 10, ((x @ w_q) @ (x @ w_k).mT).double() / 10)
    assert_near(
        with_gradients(merge_query_key, w_q, w_k), with_gradients(lambda a, b: a @ b.mT, w_q.double(), w_k.double())
    )


def test_merging_query_and_key_costs_four_times_the_parameters_in_the_papers_base_model():
    w_q, w_k = randn(512, 64), randn(512, 64, seed=4)
    assert merge_query_key(w_q, w_k).numel() == 4 * (w_q.numel() + w_k.numel())


@precise
@given(data=st.data())
def test_backward_by_hand_equals_autograd_through_the_loop(dtype, data, attention_inputs, with_gradients, assert_near):
    *qkv, mask = data.draw(attention_inputs(dtype))
    output, *expected = with_gradients(
        lambda q, k, v: loop_attention(q, k, v, mask, scaled_dot), *(x.double() for x in qkv)
    )
    generator = torch.Generator().manual_seed(output.numel())
    grad_output = torch.randn(output.shape, generator=generator, dtype=torch.float64).to(dtype)
    actual = attention_backward(*qkv, grad_output, mask)
    assert isinstance(actual, tuple)
    assert all(x.dtype == dtype for x in actual)
    assert_near(actual, tuple(expected), "grad_q, grad_k, grad_v in this order; is 1/sqrt(Dh) in grad_q and grad_k?")


class AttentionByHand(torch.autograd.Function):
    """Attention whose backward pass is `attention_backward`, so that gradcheck can judge it."""

    @staticmethod
    def forward(ctx, q, k, v, mask):
        ctx.save_for_backward(q, k, v, mask)
        return scaled_dot_product_attention(q, k, v, mask)

    @staticmethod
    def backward(ctx, grad_output):
        q, k, v, mask = ctx.saved_tensors
        return *attention_backward(q, k, v, grad_output, mask), None


def gradcheck_inputs() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Small leaves with a mask whose second row forbids everything."""
    q, k, v = (randn(2, *shape, seed=shape[1]).requires_grad_() for shape in ((3, 4), (5, 4), (5, 2)))
    mask = torch.rand(2, 3, 5, generator=torch.Generator().manual_seed(1)) < 0.6
    mask[:, 1] = False
    return q, k, v, mask


@pytest.mark.parametrize(
    "function",
    [
        AttentionByHand.apply,
        scaled_dot_product_attention,
        cosine_attention,
        lambda q, k, v, _: tiled_attention(q, k, v, 2),
    ],
    ids=["attention_backward", "scaled_dot_product_attention", "cosine_attention", "tiled_attention"],
)
def test_gradients_pass_gradcheck_against_finite_differences(function):
    assert torch.autograd.gradcheck(function, gradcheck_inputs())


@precise
@given(data=st.data())
def test_tiled_attention_and_its_gradients_equal_the_loop_for_every_tile_size(
    dtype, data, attention_inputs, with_gradients, assert_near
):
    *qkv, _ = data.draw(attention_inputs(dtype, masked=False))
    tile_size = data.draw(st.integers(1, 11))
    actual = with_gradients(lambda q, k, v: tiled_attention(q, k, v, tile_size), *qkv)
    expected = with_gradients(lambda q, k, v: loop_attention(q, k, v, None, scaled_dot), *(x.double() for x in qkv))
    assert_near(actual, expected, "is what was summed so far corrected when a tile brings a larger maximum?")


class LargestIntermediate(TorchDispatchMode):
    """Remembers the number of elements of the largest tensor that any operation returned."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for x in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(x, Tensor):
                self.elements = max(self.elements, x.numel())
        return result


def largest_intermediate(function, N: int, **options) -> int:
    """Elements of the largest tensor made by attention over N queries and N keys, forward and backward."""
    q, k, v = (randn(N, width, seed=width, dtype=torch.float32).requires_grad_() for width in (4, 4, 6))
    k, v = k.detach()[: N - 1].requires_grad_(), v.detach()[: N - 1].requires_grad_()
    with LargestIntermediate() as seen:
        function(q, k, v, **options).sum().backward()
    return seen.elements


def test_largest_intermediate_of_tiled_attention_is_one_tile_and_linear_in_the_length():
    tiled = {N: largest_intermediate(tiled_attention, N, tile_size=16) for N in (128, 256, 512)}
    assert tiled == {N: 16 * N for N in tiled}, f"largest intermediate tensors: {tiled}"
    whole = {N: largest_intermediate(scaled_dot_product_attention, N) for N in (128, 256)}
    assert whole == {N: N * (N - 1) for N in whole}, "the meter must see the quadratic matrix where there is one"


# -------------------------------------------------------------------------------------------------------- masks


def test_causal_mask_is_true_on_and_below_the_diagonal():
    mask = causal_mask(7)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[j <= i for j in range(7)] for i in range(7)]
    assert causal_mask(3, device="meta").device.type == "meta"


@given(data=st.data())
def test_with_the_causal_mask_changing_the_future_changes_nothing_before_it(data, attention_inputs):
    x, *_ = data.draw(attention_inputs(masked=False))
    T = x.shape[-2]
    present = data.draw(st.integers(0, T - 1))
    changed = x.clone()
    changed[..., present + 1 :, :] += 5.0
    mask = causal_mask(T)
    for function in TAKES_MASK:
        before, after = function(x, x, x, mask), function(x, changed, changed, mask)
        torch.testing.assert_close(before[..., : present + 1, :], after[..., : present + 1, :], rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8], ids=str)
def test_padding_mask_is_true_before_the_end_of_each_sequence(dtype):
    lengths = torch.tensor([3, 0, 5, 1], dtype=dtype)
    mask = padding_mask(lengths, 6)
    assert mask.dtype == torch.bool
    assert mask.tolist() == [[[j < length for j in range(6)]] for length in (3, 0, 5, 1)]
    assert padding_mask(lengths).shape == (4, 1, 5), "S defaults to the longest length"
    assert padding_mask(lengths, 2).tolist() == [[[True, True]], [[False, False]], [[True, True]], [[True, False]]]


@given(data=st.data())
def test_whatever_stands_in_the_padding_the_output_is_that_of_the_unpadded_sequence(data, attention_inputs):
    q, k, v, _ = data.draw(attention_inputs(masked=False))
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (q, k, v))
    B, S, _ = k.shape
    lengths = torch.tensor(data.draw(st.lists(st.integers(0, S), min_size=B, max_size=B)))
    for function in TAKES_MASK:
        padded = function(q, k, v, padding_mask(lengths, S))
        for b, length in enumerate(lengths.tolist()):
            torch.testing.assert_close(padded[b], function(q[b], k[b, :length], v[b, :length]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("function", TAKES_MASK)
def test_a_fully_masked_row_gives_exact_zeros_and_exactly_zero_gradients(function, dtype, with_gradients):
    q, k, v = (x.detach().to(dtype) for x in gradcheck_inputs()[:3])
    mask = gradcheck_inputs()[3]
    output, grad_q, grad_k, grad_v = with_gradients(lambda q, k, v: function(q, k, v, mask), q, k, v)
    assert not output[:, 1].any()
    assert not grad_q[:, 1].any()
    assert all(x.isfinite().all() for x in (output, grad_q, grad_k, grad_v))
    blind = torch.zeros_like(mask)
    everything = with_gradients(lambda q, k, v: function(q, k, v, blind), q, k, v)
    assert not any(x.any() for x in everything), "with every pair forbidden, output and all gradients are zero"
    by_hand = attention_backward(q, k, v, output + 1, mask)
    assert not by_hand[0][:, 1].any()
    assert not any(x.any() for x in attention_backward(q, k, v, output + 1, blind))


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
@pytest.mark.parametrize("function", [*TAKES_MASK, AttentionByHand.apply])
def test_a_fully_masked_row_makes_no_nan_on_the_way_back_that_anomaly_detection_would_report(function):
    q, k, v, mask = gradcheck_inputs()
    with torch.autograd.detect_anomaly():
        gradients = torch.autograd.grad(function(q, k, v, mask).square().sum(), (q, k, v))
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_a_mask_broadcasts_over_queries_and_leading_dimensions():
    q, k, v, mask = randn(2, 3, 4, 6), randn(2, 3, 5, 6), randn(2, 3, 5, 7), randn(2, 1, 1, 5) > 0
    for function in (
        *TAKES_MASK,
        lambda q, k, v, mask: attention_backward(q, k, v, q.repeat(1, 1, 1, 2)[..., :7], mask),
    ):
        small, large = function(q, k, v, mask), function(q, k, v, mask.expand(2, 3, 4, 5).contiguous())
        torch.testing.assert_close(small, large, rtol=0, atol=0)


# ----------------------------------------------------------------------------------------------------- properties


@given(data=st.data())
def test_reordered_queries_reorder_the_outputs_and_reordered_pairs_change_nothing(data, attention_inputs):
    q, k, v, mask = data.draw(attention_inputs())
    T, S = q.shape[-2], k.shape[-2]
    mask = torch.ones(T, S, dtype=torch.bool) if mask is None else mask.expand(*mask.shape[:-2], T, S)
    queries = torch.tensor(data.draw(st.permutations(range(T))))
    pairs = torch.tensor(data.draw(st.permutations(range(S))))
    for function in (*TAKES_MASK, lambda q, k, v, _: tiled_attention(q, k, v, 2)):
        output = function(q, k, v, mask)
        torch.testing.assert_close(function(q[..., queries, :], k, v, mask[..., queries, :]), output[..., queries, :])
        torch.testing.assert_close(function(q, k[..., pairs, :], v[..., pairs, :], mask[..., pairs]), output)


@half
def test_gradients_in_half_precision_stay_near_those_in_float64(dtype, with_gradients, assert_near):
    q, k, v, mask = gradcheck_inputs()
    q, k, v = (x.detach().to(dtype) for x in (q, k, v))
    for function in TAKES_MASK:
        actual = with_gradients(lambda q, k, v, f=function: f(q, k, v, mask), q, k, v)
        expected = with_gradients(lambda q, k, v, f=function: f(q, k, v, mask), q.double(), k.double(), v.double())
        assert_near(actual, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("mask", [None, "causal"])
def test_scores_of_a_hundred_thousand_and_more_stay_finite(dtype, mask, with_gradients):
    # 400 * 400 * 64 / 8 is over a million: in float16 both the sum and the scaled score would be infinite.
    q, k, v = (400 * randn(2, 9, 64, seed=3, dtype=dtype), 400 * randn(2, 9, 64, seed=4, dtype=dtype), randn(2, 9, 5))
    v, mask = v.to(dtype), None if mask is None else causal_mask(9)
    scores = q.double() @ k.double().mT / 8
    assert scores.abs().max() > 1e5
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    winners = v[torch.arange(2)[:, None], scores.argmax(-1)]
    functions = [lambda q, k, v: scaled_dot_product_attention(q, k, v, mask)]
    if mask is None:
        functions.append(lambda q, k, v: tiled_attention(q, k, v, 2))
    for function in functions:
        output, *gradients = with_gradients(function, q, k, v)
        assert all(x.isfinite().all() for x in gradients)
        torch.testing.assert_close(output, winners, msg="at such scores the softmax picks the best key")
    assert all(x.isfinite().all() for x in attention_backward(q, k, v, v, mask))
    torch.testing.assert_close(soft_lookup(q[0, 0], k[0], v[0]), v[0, scores_of(q[0, 0], k[0]).argmax()])


def scores_of(query: Tensor, keys: Tensor) -> Tensor:
    """Unscaled scores in float64."""
    return keys.double() @ query.double()


# ----------------------------------------------------------------------------------------------------------- cost


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


def test_cost_is_a_pair_of_whole_numbers_quadratic_in_length_and_linear_in_width():
    cost = attention_cost(10, 20, 30, 40)
    assert isinstance(cost, AttentionCost)
    assert cost == (2 * 10 * 20 * 70, 4 * (300 + 600 + 800 + 200 + 400))
    assert cost == attention_cost(10, 20, 30, 40, itemsize=4)
    assert all(type(number) is int for number in cost)
    assert attention_cost(20, 40, 30, 40).flops == 4 * cost.flops
    assert attention_cost(10, 20, 60, 80).flops == 2 * cost.flops


# --------------------------------------------------------------------------------------------------------- errors

Q, K, V = randn(2, 3, 4), randn(2, 5, 4), randn(2, 5, 6)
YES = torch.rand(3, 5) < 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: masked_attention_weights(Q, V), r"same width, got 4 and 6 \(q \(2, 3, 4\), k \(2, 5, 6\)\)"),
        (lambda: masked_attention_weights(Q, K, YES.float()), r"must be boolean.*got torch.float32"),
        (lambda: masked_attention_weights(Q, K, YES.T), r"mask \(5, 3\) cannot be broadcast to the scores \(2, 3, 5\)"),
        (lambda: masked_attention_weights(Q, K, YES[None, None]), r"mask \(1, 1, 3, 5\) cannot be broadcast"),
        (
            lambda: masked_attention_weights(Q, K.float()),
            "one floating-point dtype, got q torch.float64, k torch.float32",
        ),
        (lambda: masked_attention_weights(Q.long(), K.long()), "one floating-point dtype, got q torch.int64"),
        (lambda: masked_attention_weights(Q[0, 0], K), r"at least 2 dimensions.*q \(4,\)"),
        (lambda: masked_attention_weights(Q, K.repeat(2, 1, 1)), r"leading dimensions.*q \(2, 3, 4\), k \(4, 5, 4\)"),
        (lambda: scaled_dot_product_attention(Q, K, Q), "each key needs one value, got 5 keys and 3 values"),
        (lambda: scaled_dot_product_attention(Q, V, V), "same width, got 4 and 6"),
        (lambda: scaled_dot_product_attention(Q, K, V, YES.int()), "must be boolean"),
        (lambda: cosine_attention(Q, K, Q), "each key needs one value"),
        (lambda: cosine_attention(Q, K, V, YES.T), "cannot be broadcast"),
        (lambda: cosine_attention(Q, V, V), "same width"),
        (lambda: score_variance(Q, V), "same width"),
        (lambda: soft_lookup(Q[0, 0], V[0], V[0]), r"do not fit: \(4,\) and \(5, 6\)"),
        (lambda: soft_lookup(Q[0, 0], K, V), r"do not fit: \(4,\) and \(2, 5, 4\)"),
        (lambda: soft_lookup(Q[0, 0], K[0], V[0, 1:]), r"do not fit: \(5, 4\) and \(4, 6\)"),
        (lambda: padding_mask(torch.tensor([1.5, 2.5])), r"integers of shape \(B,\), got torch.float32"),
        (lambda: padding_mask(torch.tensor([True, False])), "got torch.bool"),
        (lambda: padding_mask(torch.tensor([[1, 2]])), r"of shape \(1, 2\)"),
        (lambda: attention_projections(Q, K, V[0], K[0].T, K[0].T), r"w_q \(5, 6\) cannot project inputs.*\(2, 3, 4\)"),
        (lambda: attention_projections(Q, K, K[0].T, K[0].T, V), r"w_v \(2, 5, 6\) cannot project"),
        (lambda: projected_attention(Q, K, K[0].T, K[0].T[:, 1:], K[0].T), "same width, got 5 and 4"),
        (lambda: merge_query_key(Q[0], V[0]), r"same width Dk, got \(3, 4\) and \(5, 6\)"),
        (lambda: merge_query_key(Q, K[0]), r"got \(2, 3, 4\) and \(5, 4\)"),
        (lambda: attention_backward(Q, K, V, Q), r"do not fit together: .*\(2, 5, 6\), \(2, 3, 4\)$"),
        (lambda: attention_backward(Q[0], K, V, V[:, :3]), r"do not fit together: \(3, 4\)"),
        (lambda: attention_backward(Q, K, V, V[:, :3], YES.T), "cannot be broadcast"),
        (lambda: tiled_attention(Q, K, V, 0), "tile_size=0"),
        (lambda: tiled_attention(Q, K[:, :0], V[:, :0]), "S=0"),
        (lambda: tiled_attention(Q, K, Q), "each key needs one value"),
    ],
)
def test_wrong_inputs_are_refused_with_their_values_and_shapes(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_public_names_are_the_exercises_of_the_syllabus_in_order():
    here = vars(tfcourse.attention).items()
    functions = [name for name, f in here if inspect.isfunction(f) and f.__module__ == tfcourse.attention.__name__]
    assert [name for name in functions if name[0] != "_"] == EXERCISES
