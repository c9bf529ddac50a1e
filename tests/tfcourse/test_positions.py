"""Positions against a loop over plain numbers, and the properties that hold whatever the numbers."""

import math

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tfcourse.positions import relative_attention, sinusoidal_positions


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


# ---------------------------------------------------------------------------------------------------- relative attention


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
