"""GPT against Hugging Face's GPT-2 with the same weights, its generation, and published counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.cache_utils import DynamicCache

from tfcourse.attention import causal_mask
from tfcourse.gpt import (
    BESIROGLU_2024,
    HOFFMANN_2022,
    Gpt,
    chinchilla_loss,
    chinchilla_optimal,
    generate,
    gpt_parameters,
    next_token_loss,
    training_flops,
)

from .drawing import near

V, D, H, L, N = 23, 12, 3, 2, 20


def their_config(**options: Any) -> GPT2Config:
    sizes = {"vocab_size": V, "n_embd": D, "n_layer": L, "n_head": H, "n_positions": N, **options}
    return GPT2Config(**sizes, bos_token_id=1, eos_token_id=2)


@pytest.fixture(scope="module")
def theirs() -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = their_config()
    config._attn_implementation = "eager"
    model = GPT2LMHeadModel(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


def ours_of(theirs: GPT2LMHeadModel) -> Gpt:
    """Our model with the weights of theirs: they keep the maps transposed, and those of queries, keys and values side by side."""
    state = theirs.state_dict()
    mine = {
        "token_embedding.weight": state["transformer.wte.weight"],
        "position_embedding.weight": state["transformer.wpe.weight"],
        "final_norm.weight": state["transformer.ln_f.weight"],
        "final_norm.bias": state["transformer.ln_f.bias"],
    }
    for number in range(L):
        there, here = f"transformer.h.{number}.", f"blocks.{number}."
        for kind in ("weight", "bias"):
            mine[f"{here}attention_norm.{kind}"] = state[f"{there}ln_1.{kind}"]
            mine[f"{here}feed_forward_norm.{kind}"] = state[f"{there}ln_2.{kind}"]
            joined = state[f"{there}attn.c_attn.{kind}"].chunk(3, dim=-1)
            for name, part in zip("qkv", joined, strict=True):
                mine[f"{here}attention.{name}_proj.{kind}"] = part.T if kind == "weight" else part
            for map_here, map_there in (
                ("attention.o_proj", "attn.c_proj"),
                ("up_proj", "mlp.c_fc"),
                ("down_proj", "mlp.c_proj"),
            ):
                value = state[f"{there}{map_there}.{kind}"]
                mine[f"{here}{map_here}.{kind}"] = value.T if kind == "weight" else value
    model = Gpt(V, N, d_model=D, n_heads=H, n_layers=L).eval()
    model.load_state_dict(mine)
    return model


@pytest.fixture(scope="module")
def ours(theirs: GPT2LMHeadModel) -> Gpt:
    return ours_of(theirs)


@pytest.fixture
def tokens() -> Tensor:
    return torch.randint(3, V, (4, 9), generator=torch.Generator().manual_seed(1))


# ----------------------------------------------------------------------------------------------------------- the model


def test_logits_are_those_of_gpt2(ours: Gpt, theirs: GPT2LMHeadModel, tokens: Tensor) -> None:
    near(ours(tokens)[0], theirs(tokens).logits)


def test_the_cache_of_gpt2_holds_the_same_keys_and_values(ours: Gpt, theirs: GPT2LMHeadModel, tokens: Tensor) -> None:
    _, kept = ours(tokens)
    cache = theirs(tokens, past_key_values=DynamicCache(config=theirs.config), use_cache=True).past_key_values
    for (keys, values), layer in zip(kept, cache.layers, strict=True):
        near(keys, layer.keys)
        near(values, layer.values)


def test_a_block_is_gpt2s(ours: Gpt, theirs: GPT2LMHeadModel) -> None:
    x = torch.randn(2, 5, D, generator=torch.Generator().manual_seed(2))
    found, _ = ours.blocks[0](x)
    hidden = torch.zeros(1, 1, 5, 5).masked_fill(~causal_mask(5), torch.finfo(torch.float32).min)
    expected = theirs.transformer.h[0](x, attention_mask=hidden)
    near(found, expected[0] if isinstance(expected, tuple) else expected)


def test_matrices_are_drawn_as_gpt2_draws_them() -> None:
    torch.manual_seed(3)
    model = Gpt(500, 300, d_model=128, n_heads=4, n_layers=8)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            adds = "o_proj" in name or "down_proj" in name
            assert parameter.std().item() == pytest.approx(0.02 / (4 if adds else 1), rel=0.05), name
        else:
            assert bool((parameter == float(name.endswith("norm.weight"))).all()), name


# ----------------------------------------------------------------------------------------------------------- measures


def test_the_loss_is_gpt2s(ours: Gpt, theirs: GPT2LMHeadModel, tokens: Tensor) -> None:
    near(next_token_loss(ours(tokens)[0], tokens), theirs(tokens, labels=tokens).loss)


def test_padding_is_no_target(tokens: Tensor) -> None:
    logits = torch.randn(4, 9, V, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    tokens[0, 4:], tokens[1, 7:] = 0, 0
    flat = logits[:, :-1].reshape(-1, V), tokens[:, 1:].reshape(-1)
    near(next_token_loss(logits, tokens, pad=0), torch.nn.functional.cross_entropy(*flat, ignore_index=0))
    near(next_token_loss(logits, tokens), torch.nn.functional.cross_entropy(*flat))


# --------------------------------------------------------------------------------------------------------- generation

CHAINS: list[tuple[list[tuple[str, Mapping[str, float]]], dict[str, float]]] = [
    ([], {}),
    ([("temperature", {"t": 0.7})], {"temperature": 0.7}),
    ([("temperature", {"t": 1.6}), ("top_k", {"k": 5})], {"temperature": 1.6, "top_k": 5}),
    ([("top_p", {"p": 0.8})], {"top_p": 0.8}),
]


def written_by(theirs: GPT2LMHeadModel, prompt: Tensor, **options: Any) -> Tensor:
    asked = {"attention_mask": torch.ones_like(prompt), "eos_token_id": None, "pad_token_id": 0, "top_k": 0, **options}
    return theirs.generate(prompt, **asked)


@pytest.mark.parametrize("use_cache", [True, False])
def test_greedy_text_is_gpt2s(ours: Gpt, theirs: GPT2LMHeadModel, tokens: Tensor, use_cache: bool) -> None:
    prompt = tokens[:, :3]
    expected = written_by(theirs, prompt, do_sample=False, max_new_tokens=12)
    assert torch.equal(generate(ours, prompt, max_new_tokens=12, greedy=True, use_cache=use_cache), expected)


@pytest.mark.parametrize("use_cache", [True, False])
@pytest.mark.parametrize(("chain", "options"), CHAINS)
def test_drawn_text_is_gpt2s(
    ours: Gpt, theirs: GPT2LMHeadModel, tokens: Tensor, use_cache: bool, chain: Any, options: Any
) -> None:
    prompt = tokens[:, :3]
    for seed in range(5):
        torch.manual_seed(seed)
        expected = written_by(theirs, prompt, do_sample=True, max_new_tokens=12, **options)
        random = torch.Generator().manual_seed(seed)
        found = generate(ours, prompt, max_new_tokens=12, chain=chain, generator=random, use_cache=use_cache)
        assert torch.equal(found, expected)


def test_texts_end_and_are_filled_up_as_gpt2s_are(ours: Gpt, theirs: GPT2LMHeadModel, tokens: Tensor) -> None:
    prompt, lengths = tokens[:2, :2], set()
    for seed in range(20):
        torch.manual_seed(seed)
        expected = written_by(theirs, prompt, do_sample=True, temperature=3.0, max_new_tokens=15, eos_token_id=7)
        random, chain = torch.Generator().manual_seed(seed), [("temperature", {"t": 3.0})]
        found = generate(ours, prompt, max_new_tokens=15, chain=chain, eos=7, generator=random)
        assert torch.equal(found, expected)
        lengths.add(found.shape[1])
    assert len(lengths) > 2, "some end early"


# -------------------------------------------------------------------------------------------------------------- sizes


@pytest.mark.parametrize(
    ("sizes", "total"),
    [
        ((50_257, 1024, 768, 12), 124_439_808),
        ((50_257, 1024, 1024, 24), 354_823_168),
        ((50_257, 1024, 1280, 36), 774_030_080),
        ((50_257, 1024, 1600, 48), 1_557_611_200),
    ],
)
def test_the_sizes_of_gpt2_are_counted_to_the_last_parameter(sizes: tuple[int, ...], total: int) -> None:
    vocabulary, places, width, layers = sizes
    config = their_config(vocab_size=vocabulary, n_positions=places, n_embd=width, n_layer=layers, n_head=4)
    with torch.device("meta"):
        model = GPT2LMHeadModel(config)
    assert sum(parameter.numel() for parameter in model.parameters()) == total
    assert gpt_parameters(*sizes).total == total
    assert sum(gpt_parameters(*sizes)[:-1]) == total


def test_our_model_has_as_many_parameters_as_are_counted() -> None:
    for d_ff in (None, 7):
        model = Gpt(V, N, d_model=D, n_heads=H, n_layers=L, d_ff=d_ff)
        assert sum(parameter.numel() for parameter in model.parameters()) == gpt_parameters(V, N, D, L, d_ff).total


def test_gpt3_is_counted_by_part() -> None:
    assert gpt_parameters(50_257, 2048, 12_288, 96) == (
        *(617_558_016, 25_165_824, 173_961_510_912, 24_576),
        174_604_259_328,
    )


def test_training_gpt3_takes_as_much_as_its_paper_says() -> None:
    assert training_flops(174_604_259_328, 300e9) == pytest.approx(3.143e23, rel=1e-3)


def test_the_two_fits_disagree_about_chinchilla() -> None:
    printed, corrected = (chinchilla_optimal(5.76e23, constants) for constants in (HOFFMANN_2022, BESIROGLU_2024))
    assert printed == pytest.approx((3.22e10, 2.98e12), rel=2e-3)
    assert corrected == pytest.approx((7.22e10, 1.33e12), rel=2e-3)
    for (parameters, tokens), loss in {(280e9, 300e9): 1.9996, (70e9, 1.4e12): 1.9739, (175e9, 300e9): 2.0085}.items():
        assert chinchilla_loss(parameters, tokens) == pytest.approx(loss, abs=2e-4)
    with pytest.raises(ValueError, match="above 0"):
        chinchilla_optimal(0)
