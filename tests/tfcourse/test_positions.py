"""Positions against a loop over plain numbers, and the properties that hold whatever the numbers."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tfcourse.multihead import MultiHeadAttention
from tfcourse.positions import add_positions, relative_attention, sinusoidal_positions


def randn(*shape: int, seed: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random inputs in float64, then rounded, so that every dtype sees the same numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


@given(length=st.integers(1, 20), pairs=st.integers(1, 8))
def test_sinusoids_are_those_of_the_formula_number_by_number(length, pairs):
    D = 2 * pairs
    expected = torch.tensor(
        [
            [(math.sin if column % 2 == 0 else math.cos)(t / 10000 ** (2 * (column // 2) / D)) for column in range(D)]
            for t in range(length)
        ]
    )
    actual = sinusoidal_positions(length, D)
    assert (actual.shape, actual.dtype) == ((length, D), torch.float32)
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-7)


def test_far_positions_are_as_exact_as_near_ones():
    far = 100_003
    row = sinusoidal_positions(far + 1, 4)[far]
    expected = [math.sin(far), math.cos(far), math.sin(far / 100), math.cos(far / 100)]
    torch.testing.assert_close(row, torch.tensor(expected), rtol=0, atol=1e-6)


def test_every_row_has_the_same_length_and_the_dot_product_of_two_depends_on_their_distance_alone():
    rows = sinusoidal_positions(30, 16).double()
    products = rows @ rows.T
    torch.testing.assert_close(products.diagonal(), torch.full((30,), 8.0, dtype=torch.float64))
    for distance in range(30):
        diagonal = products.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), rtol=1e-6, atol=1e-6)


def test_moving_on_by_some_places_is_one_rotation_wherever_one_starts():
    rows = sinusoidal_positions(40, 6).double()
    speeds = [10000 ** -(2 * i / 6) for i in range(3)]
    turn = torch.block_diag(
        *(
            torch.tensor([[math.cos(7 * w), math.sin(7 * w)], [-math.sin(7 * w), math.cos(7 * w)]]).double()
            for w in speeds
        )
    )
    torch.testing.assert_close(rows[7:], rows[:-7] @ turn.T, rtol=0, atol=1e-6)


@given(sizes=st.lists(st.integers(1, 6), min_size=3, max_size=3, unique=True), start=st.integers(0, 5))
def test_every_place_gets_the_row_of_its_number_in_every_example(sizes, start):
    B, T, D = sizes
    x, table = randn(B, T, D), randn(start + T + 2, D, seed=4)
    actual = add_positions(x, table, start)
    for b in range(B):
        for t in range(T):
            torch.testing.assert_close(actual[b, t], x[b, t] + table[start + t], rtol=0, atol=0)


def test_gradients_reach_the_rows_that_were_used_and_no_others():
    x, table = randn(3, 2, 4).requires_grad_(), randn(6, 4, seed=4).requires_grad_()
    add_positions(x, table, start=1).sum().backward()
    assert x.grad is not None
    assert table.grad is not None
    assert x.grad.tolist() == torch.ones(3, 2, 4).tolist()
    assert table.grad[:, 0].tolist() == [0, 3, 3, 0, 0, 0], "each of the three examples sends its gradient to the row"


def test_the_sum_has_the_dtype_of_the_sequence_and_the_sequence_stays_as_it_was():
    x = randn(2, 3, 4, dtype=torch.bfloat16)
    before = x.clone()
    assert add_positions(x, sinusoidal_positions(3, 4)).dtype == torch.bfloat16
    torch.testing.assert_close(x, before, rtol=0, atol=0)


def test_positions_take_the_permutation_equivariance_of_attention_away():
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(8, 2), randn(1, 5, 8, dtype=torch.float32)
    order = torch.tensor([4, 2, 0, 1, 3])
    rows = sinusoidal_positions(5, 8)
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])
    placed, shuffled = layer(add_positions(x, rows)), layer(add_positions(x[:, order], rows))
    assert (shuffled - placed[:, order]).abs().max() > 1e-2


def test_positions_are_made_on_the_device_that_is_asked_for():
    rows = sinusoidal_positions(3, 4, "meta")
    assert (rows.device.type, rows.shape, rows.dtype) == ("meta", (3, 4), torch.float32)
    assert add_positions(torch.empty(2, 3, 4, device="meta"), rows).device.type == "meta"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sinusoidal_positions(3, 5), "must be even, got 5"),
        (lambda: sinusoidal_positions(-3, 4), "length=-3, d_model=4"),
        (lambda: sinusoidal_positions(3, -4), "length=3, d_model=-4"),
        (lambda: add_positions(torch.ones(2, 3, 4).long(), randn(3, 4)), "got torch.int64"),
        (lambda: add_positions(randn(2, 3, 4), randn(3, 1)), r"do not fit: \(2, 3, 4\) and \(3, 1\)"),
        (lambda: add_positions(randn(3, 4), randn(3, 4)), r"\(3, 4\) and \(3, 4\)"),
        (lambda: add_positions(randn(2, 3, 4), randn(4, 4), 2), r"places 2 … 4 are asked for, the table knows 0 … 3"),
        (lambda: add_positions(randn(2, 3, 4), randn(4, 4), -1), "places -1 … 1"),
    ],
)
def test_wrong_inputs_are_refused_with_their_values_and_shapes(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# ---------------------------------------------------------------------------------------------------- relative attention


def relative_by_loops(q: Tensor, k: Tensor, v: Tensor, a: Tensor, b: Tensor | None, mask: Tensor | None) -> Tensor:
    """Equations 3 and 4 of the paper, a pair at a time, for one head."""
    out = torch.zeros(len(q), v.shape[-1], dtype=q.dtype)
    for i in range(len(q)):
        open_ones = [j for j in range(len(k)) if mask is None or mask[i, j]]
        if not open_ones:
            continue
        offsets = {j: max(-(len(a) // 2), min(len(a) // 2, j - i)) + len(a) // 2 for j in open_ones}
        scores = torch.stack([q[i] @ (k[j] + a[offsets[j]]) / q.shape[-1] ** 0.5 for j in open_ones])
        for weight, j in zip(scores.softmax(0), open_ones, strict=True):
            far = 0 if b is None else b[max(-(len(b) // 2), min(len(b) // 2, j - i)) + len(b) // 2]
            out[i] += weight * (v[j] + far)
    return out


@pytest.mark.parametrize("with_values", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_relative_attention_is_the_papers_pair_by_pair(with_values: bool, masked: bool) -> None:
    draws = torch.Generator().manual_seed(3)
    q, k, v, a, b = (
        torch.randn(size, generator=draws, dtype=torch.float64) for size in ((6, 4), (9, 4), (9, 5), (5, 4), (7, 5))
    )
    mask = (torch.rand(6, 9, generator=draws) < 0.6) & (torch.arange(6) != 2)[:, None] if masked else None
    values = b if with_values else None
    expected = relative_by_loops(q, k, v, a, values, mask)
    torch.testing.assert_close(relative_attention(q, k, v, a, values, mask), expected)
    if masked:
        assert not relative_attention(q, k, v, a, values, mask)[2].any(), "a query that may attend to nothing"


def test_relative_attention_on_keys_is_that_of_wav2vec2_bert() -> None:
    from transformers import Wav2Vec2BertConfig
    from transformers.models.wav2vec2_bert.modeling_wav2vec2_bert import Wav2Vec2BertSelfAttention

    config = Wav2Vec2BertConfig(
        hidden_size=12,
        num_attention_heads=3,
        position_embeddings_type="relative_key",
        left_max_position_embeddings=4,
        right_max_position_embeddings=4,
        attention_dropout=0.0,
    )
    theirs = Wav2Vec2BertSelfAttention(config).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3, generator=torch.Generator().manual_seed(parameter.numel()))
    x = torch.randn(2, 7, 12, generator=torch.Generator().manual_seed(5))
    expected = theirs(x)[0]
    q, k, v = (getattr(theirs, f"linear_{name}")(x).unflatten(-1, (3, 4)).transpose(1, 2) for name in ("q", "k", "v"))
    heads = relative_attention(q, k, v, theirs.distance_embedding.weight)
    torch.testing.assert_close(theirs.linear_out(heads.transpose(1, 2).flatten(2)), expected, atol=1e-5, rtol=1e-5)


def test_tables_of_offsets_that_do_not_fit_are_refused() -> None:
    x = torch.randn(3, 4)
    with pytest.raises(ValueError, match=r"key_offsets is \(2K \+ 1, 4\), got \(4, 4\)"):
        relative_attention(x, x, x, torch.randn(4, 4))
    with pytest.raises(ValueError, match="value_offsets"):
        relative_attention(x, x, x, torch.randn(5, 4), torch.randn(5, 3))
