"""GPT against Hugging Face's GPT-2 with the same weights, its generation, loops from the formulas, and a search for the optimum."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.cache_utils import DynamicCache

from tfcourse.attention import causal_mask, scaled_dot_product_attention
from tfcourse.gpt import (
    BESIROGLU_2024,
    HOFFMANN_2022,
    Gpt,
    GptBlock,
    bits_per_byte,
    cached_attention,
    chinchilla_loss,
    chinchilla_optimal,
    discriminative_rates,
    generate,
    gpt_parameters,
    next_token_loss,
    sequence_log_probability,
    slanted_triangular_rate,
    training_flops,
)

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


def near(one: Tensor, other: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


# ----------------------------------------------------------------------------------------------------------- the model


def test_logits_are_those_of_gpt2(ours: Gpt, theirs: GPT2LMHeadModel, tokens: Tensor) -> None:
    near(ours(tokens)[0], theirs(tokens).logits)


def test_the_cache_of_gpt2_holds_the_same_keys_and_values(ours: Gpt, theirs: GPT2LMHeadModel, tokens: Tensor) -> None:
    _, kept = ours(tokens)
    cache = theirs(tokens, past_key_values=DynamicCache(config=theirs.config), use_cache=True).past_key_values
    for (keys, values), layer in zip(kept, cache.layers, strict=True):
        near(keys, layer.keys)
        near(values, layer.values)


@pytest.mark.parametrize("cuts", [(3, 6), (8, 1), (1,) * 9, (2, 4, 3)])
def test_any_split_through_a_cache_gives_the_logits_of_one_pass(
    ours: Gpt, tokens: Tensor, cuts: tuple[int, ...]
) -> None:
    whole, kept = ours(tokens)
    cache, parts = None, []
    for part in tokens.split(cuts, dim=1):
        logits, cache = ours(part, cache)
        parts.append(logits)
    near(torch.cat(parts, dim=1), whole)
    assert cache is not None
    for (keys, values), (all_keys, all_values) in zip(cache, kept, strict=True):
        near(keys, all_keys)
        near(values, all_values)


def test_a_cache_that_was_handed_in_stays_as_it_was(ours: Gpt, tokens: Tensor) -> None:
    _, cache = ours(tokens[:, :4])
    before = [(keys.clone(), values.clone()) for keys, values in cache]
    ours(tokens[:, 4:], cache)
    assert len(cache) == L
    for (keys, values), (old_keys, old_values) in zip(cache, before, strict=True):
        assert torch.equal(keys, old_keys)
        assert torch.equal(values, old_values)


def test_a_block_is_gpt2s(ours: Gpt, theirs: GPT2LMHeadModel) -> None:
    x = torch.randn(2, 5, D, generator=torch.Generator().manual_seed(2))
    found, _ = ours.blocks[0](x)
    hidden = torch.zeros(1, 1, 5, 5).masked_fill(~causal_mask(5), torch.finfo(torch.float32).min)
    expected = theirs.transformer.h[0](x, attention_mask=hidden)
    near(found, expected[0] if isinstance(expected, tuple) else expected)


def test_a_block_draws_no_dropout_outside_of_training() -> None:
    x = torch.randn(2, 5, D)
    block = GptBlock(D, H, 8, dropout=1.0)
    assert torch.equal(block(x)[0], x), "in training both sublayers are dropped"
    assert not torch.equal(block.eval()(x)[0], x)


def test_a_text_that_is_too_long_is_an_error_with_a_cache_as_well(ours: Gpt) -> None:
    with pytest.raises(ValueError, match="at most 20 tokens, got 21"):
        ours(torch.ones(1, 21, dtype=torch.long))
    _, cache = ours(torch.ones(1, 15, dtype=torch.long))
    with pytest.raises(ValueError, match="got 21"):
        ours(torch.ones(1, 6, dtype=torch.long), cache)


def test_matrices_are_drawn_as_gpt2_draws_them() -> None:
    torch.manual_seed(3)
    model = Gpt(500, 300, d_model=128, n_heads=4, n_layers=8)
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            adds = "o_proj" in name or "down_proj" in name
            assert parameter.std().item() == pytest.approx(0.02 / (4 if adds else 1), rel=0.05), name
        else:
            assert bool((parameter == float(name.endswith("norm.weight"))).all()), name


def test_cached_attention_is_the_last_rows_of_causal_attention() -> None:
    random = torch.Generator().manual_seed(4)
    q, k, v = (torch.randn(2, 3, 7, 4, generator=random, dtype=torch.float64) for _ in range(3))
    whole = scaled_dot_product_attention(q, k, v, causal_mask(7))
    for past in range(7):
        before = (k[:, :, :past], v[:, :, :past]) if past else None
        output, (keys, values) = cached_attention(q[:, :, past:], k[:, :, past:], v[:, :, past:], before)
        near(output, whole[:, :, past:], 1e-12)
        assert torch.equal(keys, k)
        assert torch.equal(values, v)


# ----------------------------------------------------------------------------------------------------------- measures


def test_the_loss_is_gpt2s(ours: Gpt, theirs: GPT2LMHeadModel, tokens: Tensor) -> None:
    near(next_token_loss(ours(tokens)[0], tokens), theirs(tokens, labels=tokens).loss)


def test_padding_is_no_target(tokens: Tensor) -> None:
    logits = torch.randn(4, 9, V, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    tokens[0, 4:], tokens[1, 7:] = 0, 0
    flat = logits[:, :-1].reshape(-1, V), tokens[:, 1:].reshape(-1)
    near(next_token_loss(logits, tokens, pad=0), torch.nn.functional.cross_entropy(*flat, ignore_index=0))
    near(next_token_loss(logits, tokens), torch.nn.functional.cross_entropy(*flat))


def test_a_text_of_one_token_has_no_targets() -> None:
    assert next_token_loss(torch.randn(2, 1, V), torch.ones(2, 1, dtype=torch.long)).item() == 0


def test_the_chain_rule_gives_all_texts_together_a_probability_of_one() -> None:
    random = torch.Generator().manual_seed(6)
    texts = torch.cartesian_prod(*[torch.arange(4)] * 3)
    of_first = torch.randn(4, generator=random, dtype=torch.float64).log_softmax(0)
    after = torch.randn(4, 4, generator=random, dtype=torch.float64)
    # Each next token depends on the one before it.
    total = sequence_log_probability(after[texts], texts, of_first).exp().sum()
    near(total, torch.tensor(1.0, dtype=torch.float64), 1e-12)


def test_a_long_text_has_a_finite_log_probability() -> None:
    logits, tokens = torch.zeros(1, 400, 50), torch.zeros(1, 400, dtype=torch.long)
    found = sequence_log_probability(logits, tokens, torch.full((50,), -math.log(50)))
    assert found.item() == pytest.approx(-400 * math.log(50), rel=1e-5)


def test_bits_per_byte_of_bytes_are_bits() -> None:
    assert bits_per_byte(math.log(256), 10, 10) == pytest.approx(8)
    assert bits_per_byte(2.0, 30, 120) == pytest.approx(2.0 / math.log(2) / 4)
    with pytest.raises(ValueError, match="at least one byte"):
        bits_per_byte(1.0, 0, 0)


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


def counting(asked: list[int]) -> Callable[..., tuple[Tensor, Any]]:
    """A model that expects the next number, and notes how many places it is asked for."""

    def model(tokens: Tensor, cache: Any = None) -> tuple[Tensor, Any]:
        asked.append(tokens.shape[1])
        return torch.nn.functional.one_hot((tokens + 1) % V, V).float(), (cache or 0) + tokens.shape[1]

    return model


def test_with_a_cache_only_the_newest_token_is_looked_at() -> None:
    prompt = torch.tensor([[3, 4, 5]])
    asked: list[int] = []
    assert generate(counting(asked), prompt, max_new_tokens=4, greedy=True).tolist() == [[3, 4, 5, 6, 7, 8, 9]]
    assert asked == [3, 1, 1, 1]
    asked.clear()
    generate(counting(asked), prompt, max_new_tokens=4, greedy=True, use_cache=False)
    assert asked == [3, 4, 5, 6]


def test_nothing_is_asked_where_nothing_is_wanted() -> None:
    asked: list[int] = []
    prompt = torch.tensor([[3, 4]])
    assert torch.equal(generate(counting(asked), prompt, max_new_tokens=0), prompt)
    assert asked == []
    with pytest.raises(ValueError, match="0 or more, got -1"):
        generate(counting(asked), prompt, max_new_tokens=-1)


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


@pytest.mark.parametrize("constants", [HOFFMANN_2022, BESIROGLU_2024])
@pytest.mark.parametrize("flops", [1e17, 1e21, 5.76e23])
def test_the_optimum_is_what_a_search_finds(constants: Mapping[str, float], flops: float) -> None:
    def loss(log_n: float) -> float:
        n = math.exp(log_n)
        return chinchilla_loss(n, flops / (6 * n), constants)

    low, high, golden = math.log(1e5), math.log(1e13), (math.sqrt(5) - 1) / 2
    for _ in range(200):
        left, right = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, right) if loss(left) < loss(right) else (left, high)
    n, d = chinchilla_optimal(flops, constants)
    # The loss is flat at its minimum, so that a search finds its place to about the root of the precision.
    assert n == pytest.approx(math.exp(low), rel=1e-5)
    assert training_flops(n, d) == pytest.approx(flops)
    assert chinchilla_loss(n, d, constants) <= loss(low) + 1e-12


def test_the_two_fits_disagree_about_chinchilla() -> None:
    printed, corrected = (chinchilla_optimal(5.76e23, constants) for constants in (HOFFMANN_2022, BESIROGLU_2024))
    assert printed == pytest.approx((3.22e10, 2.98e12), rel=2e-3)
    assert corrected == pytest.approx((7.22e10, 1.33e12), rel=2e-3)
    for (parameters, tokens), loss in {(280e9, 300e9): 1.9996, (70e9, 1.4e12): 1.9739, (175e9, 300e9): 2.0085}.items():
        assert chinchilla_loss(parameters, tokens) == pytest.approx(loss, abs=2e-4)
    with pytest.raises(ValueError, match="above 0"):
        chinchilla_optimal(0)


# -------------------------------------------------------------------------------------------------------------- rates


def test_lower_groups_learn_more_slowly() -> None:
    rates = discriminative_rates(0.01, 4)
    assert rates[-1] == 0.01
    for lower, higher in pairwise(rates):
        assert higher / lower == pytest.approx(2.6)
    with pytest.raises(ValueError, match="at least one group"):
        discriminative_rates(0.01, 0)


def of_the_paper(step: int, total: int, peak: float, cut: float, ratio: float) -> float:
    top = math.floor(total * cut)
    p = step / top if step < top else 1 - (step - top) / (top * (1 / cut - 1))
    return peak * (1 + p * (ratio - 1)) / ratio


def test_the_triangle_is_the_papers_where_the_papers_is_one() -> None:
    for step in range(101):
        found = slanted_triangular_rate(step, 100, peak=0.01, cut=0.1, ratio=32)
        assert found == pytest.approx(of_the_paper(step, 100, 0.01, 0.1, 32))


def test_the_triangle_never_falls_below_its_ends_where_the_papers_does() -> None:
    rates = [slanted_triangular_rate(step, 25) for step in range(26)]
    assert min(rates) == rates[0] == pytest.approx(rates[-1]) == pytest.approx(0.01 / 32)
    assert max(rates) == rates[2] == pytest.approx(0.01)
    assert of_the_paper(24, 25, 0.01, 0.1, 32) == pytest.approx(-0.00184, abs=5e-6)


def test_a_triangle_may_begin_at_its_peak_and_knows_its_steps() -> None:
    assert slanted_triangular_rate(0, 10, cut=0.0) == pytest.approx(0.01)
    for step, total, cut in ((-1, 10, 0.1), (11, 10, 0.1), (0, 0, 0.1), (1, 10, 1.0)):
        with pytest.raises(ValueError, match="expected a s"):
            slanted_triangular_rate(step, total, cut=cut)
