"""Llama against Hugging Face's with the same weights, shared keys against a loop, and the numbers of the lesson."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from transformers import LlamaConfig, LlamaForCausalLM

from tfcourse.attention import scaled_dot_product_attention
from tfcourse.gpt import generate
from tfcourse.llama import (
    Llama,
    RmsNorm,
    decode_cost,
    grouped_query_attention,
    inference_latency,
    kv_cache_bytes,
    largest_batch,
    llama_parameters,
    pool_key_value_heads,
)

V, D, H, G, FF, L = 29, 24, 6, 2, 17, 2
LARGE = {
    "8B": (128_256, 4096, 32, 8, 14_336, 32),
    "70B": (128_256, 8192, 64, 8, 28_672, 80),
    "405B": (128_256, 16_384, 128, 8, 53_248, 126),
}


def pair(**options: Any) -> tuple[LlamaForCausalLM, Llama]:
    """Their model and ours with its weights."""
    torch.manual_seed(0)
    tied = options.get("tie_weights", False)
    config = LlamaConfig(
        vocab_size=V,
        hidden_size=D,
        intermediate_size=FF,
        num_hidden_layers=L,
        num_attention_heads=H,
        num_key_value_heads=G,
        rms_norm_eps=1e-5,
        tie_word_embeddings=tied,
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},
    )
    config._attn_implementation = "eager"
    theirs = LlamaForCausalLM(config).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(std=0.3)
    names = (
        ("model.embed_tokens", "embedding"),
        ("model.norm", "norm"),
        ("model.layers", "layers"),
        ("lm_head", "output"),
        ("self_attn", "self_attention"),
        ("post_attention_layernorm", "feed_forward_norm"),
        ("input_layernorm", "self_attention_norm"),
        ("mlp", "feed_forward"),
    )
    state = {}
    for name, value in theirs.state_dict().items():
        if tied and name.startswith("lm_head"):
            continue
        for there, here in names:
            name = name.replace(there, here)
        state[name] = value
    ours = Llama(V, d_model=D, n_heads=H, n_kv_heads=G, d_ff=FF, n_layers=L, **options)
    ours.load_state_dict(state)
    return theirs, ours.eval()


@pytest.mark.parametrize("tied", [False, True])
def test_logits_are_those_of_hugging_face(tied):
    theirs, ours = pair(tie_weights=tied)
    tokens = torch.randint(0, V, (2, 9))
    with torch.no_grad():
        torch.testing.assert_close(ours(tokens)[0], theirs(tokens).logits, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("cuts", [(1, 8), (4, 5), (2, 3, 4), (1,) * 9])
def test_any_cut_of_a_text_gives_the_logits_of_one_pass(cuts):
    _, ours = pair()
    tokens = torch.randint(0, V, (2, 9))
    whole, kept = ours(tokens)
    cache, pieces = None, []
    for piece in tokens.split(cuts, dim=1):
        logits, cache = ours(piece, cache)
        pieces.append(logits)
    torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=1e-4, atol=1e-4)
    assert kept[0][0].shape == (2, G, 9, D // H)


def test_generate_of_chapter_09_runs_it_with_and_without_a_cache():
    _, ours = pair()
    prompt = torch.tensor([[5, 6, 7]])
    texts = [generate(ours, prompt, max_new_tokens=6, greedy=True, use_cache=cached) for cached in (True, False)]
    assert torch.equal(*texts)


@pytest.mark.parametrize("shared", [1, 2, 3, 6])
def test_each_query_head_asks_the_head_of_its_group(shared):
    q, k, v = torch.randn(2, 6, 4, 5), torch.randn(2, shared, 7, 5), torch.randn(2, shared, 7, 3)
    mask = torch.rand(2, 6, 4, 7) > 0.4
    mask[0, 1, 2] = False
    found = grouped_query_attention(q, k, v, mask)
    for head in range(6):
        group = head // (6 // shared)
        expected = scaled_dot_product_attention(q[:, head], k[:, group], v[:, group], mask[:, head])[0]
        torch.testing.assert_close(found[:, head], expected)
    plain = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    torch.testing.assert_close(grouped_query_attention(q, k, v), plain)


def test_heads_that_cannot_be_shared_out_are_an_error():
    with pytest.raises(ValueError, match="5 query heads"):
        grouped_query_attention(torch.ones(5, 1, 2), torch.ones(2, 1, 2), torch.ones(2, 1, 2))
    with pytest.raises(ValueError, match="pooled"):
        pool_key_value_heads(torch.ones(6, 2), 3, 2)


def test_pooling_takes_the_mean_of_neighbours():
    weight = torch.randn(12, 5)
    heads = weight.view(4, 3, 5)
    expected = torch.cat([(heads[0] + heads[1]) / 2, (heads[2] + heads[3]) / 2])
    torch.testing.assert_close(pool_key_value_heads(weight, 4, 2), expected)


def test_the_norm_is_that_of_hugging_face_bit_for_bit_in_half_precision():
    from transformers.models.llama.modeling_llama import LlamaRMSNorm

    ours, theirs = RmsNorm(16).bfloat16(), LlamaRMSNorm(16, eps=1e-5).bfloat16()
    with torch.no_grad():
        ours.weight.normal_()
        theirs.weight.copy_(ours.weight)
    x = torch.randn(50, 16).bfloat16()
    assert torch.equal(ours(x), theirs(x))


@pytest.mark.parametrize(("name", "total"), [("8B", 8_030_261_248), ("70B", 70_553_706_496), ("405B", 405_853_388_800)])
def test_parameters_of_llama_3_are_counted(name, total):
    assert sum(llama_parameters(*LARGE[name])) == total


def test_parameters_are_those_of_a_model():
    for tied in (False, True):
        _, ours = pair(tie_weights=tied)
        assert sum(llama_parameters(V, D, H, G, FF, L, tied=tied)) == sum(p.numel() for p in ours.parameters())


def test_the_numbers_of_the_lesson_come_out():
    assert kv_cache_bytes(32, 8, 128, 1) == 131_072
    assert kv_cache_bytes(126, 8, 128, 131_072) == 63 * 2**30
    cost = decode_cost(7_504_658_432 + 0, 32, 32, 8, 128, 8192, batch=3)
    assert cost.weight_bytes == 2 * 7_504_658_432
    assert cost.cache_bytes == 3 * 2**30
    assert decode_cost(100, 1, 4, 2, 8, 10) == (1480, 200, 640)
    assert inference_latency(10, 10, peak_flops=10, bandwidth=5) == (2.0, "bandwidth")
    assert inference_latency(10, 10, peak_flops=5, bandwidth=5, n_devices=2) == (1.0, "compute")
    assert (largest_batch(100, 30, 20), largest_batch(10, 30, 20)) == (3, 0)
    with pytest.raises(ValueError, match="positive"):
        inference_latency(1, 1, peak_flops=0, bandwidth=1)
