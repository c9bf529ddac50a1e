"""Slopes, rotations and their stretching, against GPT-J, GPT-NeoX, Llama and BLOOM of Hugging Face, and complex numbers."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb as turn_by_halves
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as turn_neighbours
from transformers.models.llama.modeling_llama import LlamaAttention

from tfcourse.rotary import (
    RotaryAttention,
    alibi_bias,
    alibi_slopes,
    convert_rotary_weight,
    interpolate_positions,
    loss_by_position,
    ntk_theta,
    rotary_embedding,
    rotary_frequencies,
    scale_frequencies_llama3,
)


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


# ------------------------------------------------------------------------------------------------------------- slopes


@pytest.mark.parametrize("n_heads", [1, 2, 4, 5, 6, 8, 12, 16, 20])
def test_slopes_and_biases_are_blooms(n_heads: int) -> None:
    theirs = build_alibi_tensor(torch.ones(1, 7), n_heads, torch.float32).view(n_heads, 1, 7)
    torch.testing.assert_close(alibi_slopes(n_heads), theirs[:, 0, 1])
    ours = alibi_bias(alibi_slopes(n_heads), 7, 7)
    # BLOOM adds the place of the key alone: in each row that is another constant, which a softmax does not see.
    seen = torch.ones(7, 7, dtype=torch.bool).tril()
    difference = (ours - theirs).masked_fill(~seen, torch.nan)
    for row in range(7):
        part = difference[:, row, : row + 1]
        torch.testing.assert_close(part, part[:, :1].expand_as(part), atol=1e-5, rtol=0)


# ---------------------------------------------------------------------------------------------------------- rotations


def by_complex_numbers(x: Tensor, positions: Tensor, frequencies: Tensor, *, interleaved: bool) -> Tensor:
    """The definition, in float64."""
    pairs = x.double().unflatten(-1, (-1, 2)) if interleaved else x.double().unflatten(-1, (2, -1)).mT
    turned = torch.view_as_real(
        torch.view_as_complex(pairs.contiguous()) * torch.exp(1j * positions[..., None] * frequencies)
    )
    return (turned if interleaved else turned.mT).flatten(-2)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("first", [0, 8_191, 131_071])
def test_rows_are_turned_as_complex_numbers_are(first: int, interleaved: bool) -> None:
    x, positions, frequencies = drawn(2, 3, 5, 8), first + torch.arange(5), rotary_frequencies(8, 500_000.0)
    expected = by_complex_numbers(x, positions, frequencies, interleaved=interleaved)
    found = rotary_embedding(x, positions, frequencies, interleaved=interleaved)
    torch.testing.assert_close(found, expected.float(), atol=1e-6, rtol=1e-6)


def test_half_split_rows_are_those_of_gpt_neox_and_llama() -> None:
    q, k = drawn(2, 3, 5, 8), drawn(2, 3, 5, 8, seed=1)
    angles = torch.arange(5)[:, None] * rotary_frequencies(8).float()
    cos, sin = (part.repeat(1, 2)[None] for part in (angles.cos(), angles.sin()))
    theirs = turn_by_halves(q, k, cos, sin)
    for ours, expected in zip((q, k), theirs, strict=True):
        found = rotary_embedding(ours, torch.arange(5), rotary_frequencies(8))
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


def test_interleaved_rows_are_those_of_gptj() -> None:
    x = drawn(2, 5, 3, 8)  # (B, T, H, Dh), as GPT-J has it
    angles = (torch.arange(5)[:, None] * rotary_frequencies(8).float())[None]
    theirs = turn_neighbours(x, angles.sin(), angles.cos())
    found = rotary_embedding(x.transpose(1, 2), torch.arange(5), rotary_frequencies(8), interleaved=True)
    torch.testing.assert_close(found.transpose(1, 2), theirs, atol=1e-6, rtol=1e-6)


# ------------------------------------------------------------------------------------------------------------ weights


def test_there_and_back_is_exact_and_is_the_published_permutation() -> None:
    weight, bias = drawn(3 * 8, 12), drawn(3 * 8, seed=1)
    published = weight.view(3, 4, 2, 12).transpose(1, 2).reshape(24, 12)
    assert torch.equal(convert_rotary_weight(weight, 3, to="half"), published)
    for rows in (weight, bias):
        there = convert_rotary_weight(rows, 3, to="half")
        assert torch.equal(convert_rotary_weight(there, 3, to="interleaved"), rows)
        assert not torch.equal(there, rows)


# ---------------------------------------------------------------------------------------------------------- attention


def test_attention_is_llamas() -> None:
    config = LlamaConfig(
        hidden_size=12, num_attention_heads=3, num_key_value_heads=3, attn_implementation="eager", attention_dropout=0.0
    )
    theirs = LlamaAttention(config, layer_idx=0).eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    ours = RotaryAttention(12, 3)
    ours.load_state_dict(theirs.state_dict())
    x, places = drawn(2, 6, 12), torch.arange(6)
    angles = (places[:, None] * rotary_frequencies(4).float()).repeat(1, 2)[None]
    future = torch.full((6, 6), -torch.inf).triu(1)[None, None]
    expected, _ = theirs(x, position_embeddings=(angles.cos(), angles.sin()), attention_mask=future)
    torch.testing.assert_close(ours(x), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours(x, start=1_000), expected, atol=1e-5, rtol=1e-5)


# --------------------------------------------------------------------------------------------------------- stretching


def theirs(kind: str, theta: float, d_head: int, length: int, **options: Any) -> Tensor:
    """The frequencies of a rope function of Hugging Face."""
    config = LlamaConfig(
        hidden_size=4 * d_head,
        num_attention_heads=4,
        max_position_embeddings=length,
        rope_parameters={"rope_type": kind, "rope_theta": theta, **options},
    )
    frequencies, _ = ROPE_INIT_FUNCTIONS[kind](config, torch.device("cpu"))
    return frequencies


def test_squeezed_places_turn_as_linear_scaling_does() -> None:
    places = interpolate_positions(torch.arange(50), 0.25)
    ours = places[:, None] * rotary_frequencies(64)
    expected = torch.arange(50)[:, None] * theirs("linear", 10_000.0, 64, 2048, factor=4.0)
    torch.testing.assert_close(ours.float(), expected, atol=1e-5, rtol=1e-6)


def test_llama3_frequencies_are_those_of_its_rope_function() -> None:
    options = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
    expected = theirs("llama3", 500_000.0, 128, 131_072, **options)
    plain = rotary_frequencies(128, 500_000.0)
    ours = scale_frequencies_llama3(plain)
    torch.testing.assert_close(ours.float(), expected, atol=0, rtol=1e-6)
    kept, divided = int((ours == plain).sum()), int((ours == plain / 8).sum())
    assert (kept, divided, 64 - kept - divided) == (29, 29, 6)


@pytest.mark.parametrize("length", [4096, 10_000])
def test_another_base_is_that_of_dynamic_scaling(length: int) -> None:
    config = LlamaConfig(
        hidden_size=256,
        num_attention_heads=4,
        max_position_embeddings=2048,
        rope_parameters={"rope_type": "dynamic", "rope_theta": 10_000.0, "factor": 2.0},
    )
    expected, _ = ROPE_INIT_FUNCTIONS["dynamic"](config, torch.device("cpu"), seq_len=length)
    factor = 2.0 * length / 2048 - (2.0 - 1)
    torch.testing.assert_close(
        rotary_frequencies(64, ntk_theta(10_000.0, factor, 64)).float(), expected, atol=0, rtol=1e-5
    )


# --------------------------------------------------------------------------------------------------- loss by position


def test_loss_of_stretches_is_pytorchs_cross_entropy_of_each() -> None:
    logits, targets = drawn(3, 12, 5), torch.randint(0, 5, (3, 12), generator=torch.Generator().manual_seed(1))
    expected = [
        F.cross_entropy(logits[:, at : at + 3].flatten(0, 1), targets[:, at : at + 3].flatten()) for at in (0, 3, 6, 9)
    ]
    torch.testing.assert_close(loss_by_position(logits, targets, bins=4), torch.stack(expected))
