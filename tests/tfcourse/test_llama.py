"""Llama and its parts, against Hugging Face's with the same weights, PyTorch's own attention, and published sizes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm

from tfcourse.gpt import generate
from tfcourse.llama import (
    Llama,
    RmsNorm,
    SwiGlu,
    decode_cost,
    grouped_query_attention,
    inference_latency,
    kv_cache_bytes,
    llama_parameters,
)

SIZES: dict[str, Any] = {"d_model": 32, "n_heads": 4, "n_kv_heads": 2, "d_ff": 48, "n_layers": 2}
SCALING: dict[str, Any] = {"factor": 8.0, "low": 1.0, "high": 4.0, "original_length": 64}
PUBLISHED = {
    "8B": (128_256, 4096, 32, 8, 14_336, 32),
    "70B": (128_256, 8192, 64, 8, 28_672, 80),
    "405B": (128_256, 16_384, 128, 8, 53_248, 126),
}


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def theirs_and_ours(*, tied: bool = False, scaled: bool = False) -> tuple[LlamaForCausalLM, Llama]:
    """Hugging Face's model with all parameters drawn, and ours with the same numbers."""
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": 500_000.0}
    if scaled:
        rope |= {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 64,
        }
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=tied,
        rms_norm_eps=1e-5,
        attn_implementation="eager",
        rope_parameters=rope,
    )
    theirs = LlamaForCausalLM(config).eval()
    draws = torch.Generator().manual_seed(0)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3, generator=draws)
    ours = Llama(50, **SIZES, tie_weights=tied, rope_scaling=SCALING if scaled else None).eval()
    names = {
        "model.embed_tokens": "embedding",
        "model.norm": "norm",
        "model.": "",
        "self_attn": "self_attention",
        "mlp": "feed_forward",
        "input_layernorm": "self_attention_norm",
        "post_attention_layernorm": "feed_forward_norm",
        "lm_head": "output",
    }
    state = {}
    for name, value in theirs.state_dict().items():
        own = name
        for old, new in names.items():
            own = own.replace(old, new)
        state[own] = value
    if tied:
        del state["output.weight"]
    ours.load_state_dict(state)
    return theirs, ours


@pytest.fixture(scope="module")
def tokens() -> Tensor:
    return torch.randint(0, 50, (2, 17), generator=torch.Generator().manual_seed(1))


# ---------------------------------------------------------------------------------------------------------- attention


@pytest.mark.parametrize(("heads", "shared"), [(6, 6), (6, 3), (6, 2), (6, 1)])
def test_shared_attention_is_pytorchs(heads: int, shared: int) -> None:
    q, k, v = drawn(2, heads, 4, 8), drawn(2, shared, 7, 8, seed=1), drawn(2, shared, 7, 5, seed=2)
    mask = torch.rand(2, heads, 4, 7, generator=torch.Generator().manual_seed(3)) < 0.7
    mask[..., 0] = True
    for seen in (None, mask):
        expected = F.scaled_dot_product_attention(q, k, v, seen, enable_gqa=True)
        torch.testing.assert_close(grouped_query_attention(q, k, v, seen), expected, atol=1e-5, rtol=1e-5)


# -------------------------------------------------------------------------------------------------------------- parts


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_norm_is_llamas_bit_for_bit(dtype: torch.dtype) -> None:
    theirs, ours = LlamaRMSNorm(16, eps=1e-5), RmsNorm(16)
    weight = drawn(16, seed=1)
    for norm in (theirs, ours):
        norm.weight.data = weight.clone()
        norm.to(dtype)
    x = drawn(5, 7, 16).to(dtype)
    assert torch.equal(ours(x), theirs(x))


def test_gated_network_is_llamas() -> None:
    theirs = LlamaMLP(LlamaConfig(hidden_size=8, intermediate_size=12, num_attention_heads=2))
    ours = SwiGlu(8, 12)
    ours.load_state_dict(theirs.state_dict())
    torch.testing.assert_close(ours(drawn(2, 3, 8)), theirs(drawn(2, 3, 8)), atol=1e-6, rtol=1e-6)


# -------------------------------------------------------------------------------------------------------------- model


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_logits_are_llamas(tokens: Tensor, tied: bool, scaled: bool) -> None:
    theirs, ours = theirs_and_ours(tied=tied, scaled=scaled)
    logits, cache = ours(tokens)
    torch.testing.assert_close(logits, theirs(tokens).logits, atol=1e-5, rtol=1e-5)
    assert [tuple(k.shape) for k, _ in cache] == [(2, 2, 17, 8)] * 2


def test_greedy_text_is_llamas(tokens: Tensor) -> None:
    theirs, ours = theirs_and_ours()
    prompt = tokens[:, :5]
    found = generate(ours, prompt, max_new_tokens=20, greedy=True)
    expected = theirs.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        max_new_tokens=20,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    best = theirs(expected).logits[:, 4:-1].topk(2).values
    assert (best[..., 0] - best[..., 1]).min() > 1e-4, "no near-tie decides"
    assert torch.equal(found, expected)


# ------------------------------------------------------------------------------------------------------------- counts


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes_are_counted_to_the_last_parameter(name: str) -> None:
    vocabulary, d_model, n_heads, n_kv_heads, d_ff, n_layers = PUBLISHED[name]
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=d_model,
        intermediate_size=d_ff,
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        num_key_value_heads=n_kv_heads,
    )
    with torch.device("meta"):
        theirs = sum(parameter.numel() for parameter in LlamaForCausalLM(config).parameters())
    counts = llama_parameters(*PUBLISHED[name])
    assert sum(counts) == theirs == {"8B": 8_030_261_248, "70B": 70_553_706_496, "405B": 405_853_388_800}[name]
    if name == "8B":
        assert counts == (525_336_576, 1_342_177_280, 5_637_144_576, 266_240, 525_336_576)


@pytest.mark.parametrize("tied", [False, True])
def test_counts_are_those_of_our_model(tied: bool) -> None:
    model = Llama(50, **SIZES, tie_weights=tied)
    assert sum(llama_parameters(50, 32, 4, 2, 48, 2, tied=tied)) == sum(p.numel() for p in model.parameters())


def test_caches_weigh_what_their_tensors_do(tokens: Tensor) -> None:
    _, ours = theirs_and_ours()
    _, cache = ours(tokens)
    weight = sum(part.numel() * part.element_size() for pair in cache for part in pair)
    assert kv_cache_bytes(2, 2, 8, 17, batch=2, bytes_per_number=4) == weight
    assert [kv_cache_bytes(n, 8, 128, 1) for n in (32, 80, 126)] == [131_072, 327_680, 516_096]
    assert kv_cache_bytes(32, 8, 128, 131_072) == 16 * 2**30


def test_one_more_token_costs_what_the_plan_of_the_machine_says() -> None:
    counts = llama_parameters(*PUBLISHED["8B"])
    weights = counts.attention + counts.feed_forward + counts.output
    cost = decode_cost(weights, 32, 32, 8, 128, 8192)
    assert cost.cache_bytes == 2**30
    h100 = {"peak_flops": 989.4e12, "bandwidth": 3.35e12}
    latency = inference_latency(cost.flops, cost.weight_bytes + cost.cache_bytes, **h100)
    assert latency.bound == "bandwidth"
    assert latency.seconds == pytest.approx(4.8e-3, abs=0.05e-3)
    assert cost.flops / h100["peak_flops"] == pytest.approx(0.02e-3, abs=0.005e-3)
    assert decode_cost(weights, 32, 32, 8, 128, 8192, batch=3).weight_bytes == cost.weight_bytes
