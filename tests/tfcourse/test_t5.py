"""T5 against Hugging Face's with the same weights, PyTorch's norm, and published counts."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import T5Config, T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5Attention as TheirAttention

from tfcourse.t5 import (
    T5,
    corrupt_spans,
    random_span_mask,
    relative_position_bias,
    relative_position_bucket,
    rms_norm,
    t5_parameters,
)

from .drawing import near

V, D, H, DH, FF, L = 29, 12, 3, 5, 17, 2


def config(**options: Any) -> T5Config:
    sizes = {"vocab_size": V, "d_model": D, "d_kv": DH, "d_ff": FF, "num_layers": L, "num_heads": H, **options}
    return T5Config(**sizes, dropout_rate=0.0, pad_token_id=0, decoder_start_token_id=0)


def their_model(**options: Any) -> T5ForConditionalGeneration:
    torch.manual_seed(0)
    made = config(**options)
    made._attn_implementation = "eager"
    model = T5ForConditionalGeneration(made).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


def ours_of(theirs: T5ForConditionalGeneration, *, gated: bool) -> T5:
    """Our model with the weights of theirs."""
    state, mine = theirs.state_dict(), {}
    mine["embedding.weight"] = state["shared.weight"]
    table = "block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    for stack in ("encoder", "decoder"):
        mine[f"{stack}_bias.weight"] = state[f"{stack}.{table}"]
        mine[f"{stack}_norm.weight"] = state[f"{stack}.final_layer_norm.weight"]
        last = 1 if stack == "encoder" else 2
        for number in range(L):
            there, here = f"{stack}.block.{number}.layer.", f"{stack}_layers.{number}."
            attentions = [("self_attention", f"{there}0.SelfAttention", f"{there}0")]
            attentions += [("cross_attention", f"{there}1.EncDecAttention", f"{there}1")] * (stack == "decoder")
            for name, attention, sublayer in attentions:
                for letter in "qkvo":
                    mine[f"{here}{name}.{letter}_proj.weight"] = state[f"{attention}.{letter}.weight"]
                mine[f"{here}{name}_norm.weight"] = state[f"{sublayer}.layer_norm.weight"]
            dense = f"{there}{last}.DenseReluDense."
            names = {"wi_0": "gate_proj", "wi_1": "up_proj"} if gated else {"wi": "up_proj"}
            for theirs_name, name in {**names, "wo": "down_proj"}.items():
                mine[f"{here}feed_forward.{name}.weight"] = state[f"{dense}{theirs_name}.weight"]
            mine[f"{here}feed_forward_norm.weight"] = state[f"{there}{last}.layer_norm.weight"]
    model = T5(V, d_model=D, n_heads=H, d_head=DH, d_ff=FF, n_layers=L, gated=gated).eval()
    model.load_state_dict(mine)
    return model


@pytest.fixture
def texts() -> tuple[Tensor, Tensor, Tensor]:
    random = torch.Generator().manual_seed(1)
    source, target = torch.randint(1, V, (3, 9), generator=random), torch.randint(1, V, (3, 6), generator=random)
    return source, target, torch.arange(9) < torch.tensor([[9], [4], [7]])


# ----------------------------------------------------------------------------------------------------------- the model


@pytest.mark.parametrize("gated", [False, True])
def test_logits_are_those_of_t5(texts: tuple[Tensor, Tensor, Tensor], gated: bool) -> None:
    theirs = their_model(feed_forward_proj="gated-gelu" if gated else "relu")
    ours = ours_of(theirs, gated=gated)
    source, target, mask = texts
    for given in (None, mask):
        found = ours(source, target, given)
        asked = None if given is None else given.long()
        near(found, theirs(input_ids=source, decoder_input_ids=target, attention_mask=asked).logits)


# --------------------------------------------------------------------------------------------------------- positions


@pytest.mark.parametrize(("n_buckets", "max_distance"), [(32, 128), (16, 64), (8, 20), (12, 40), (32, 256)])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_buckets_are_t5s_and_those_of_whole_numbers(n_buckets: int, max_distance: int, bidirectional: bool) -> None:
    offset = torch.arange(-700, 701)
    options = {"bidirectional": bidirectional, "n_buckets": n_buckets, "max_distance": max_distance}
    found = relative_position_bucket(offset, **options)  # type: ignore[arg-type]
    theirs = TheirAttention._relative_position_bucket(
        offset, bidirectional=bidirectional, num_buckets=n_buckets, max_distance=max_distance
    )
    assert torch.equal(found, theirs)
    side = n_buckets // 2 if bidirectional else n_buckets
    exact = side // 2
    for place, bucket in zip(offset.tolist(), found.tolist(), strict=True):
        distance = abs(place) if bidirectional or place < 0 else 0
        if distance < exact:
            coarse = distance
        else:
            # log(d / e) / log(m / e) * k >= j exactly where d^k * e^j >= m^j * e^k.
            k = side - exact
            steps = [j for j in range(k) if distance**k * exact**j >= max_distance**j * exact**k]
            coarse = exact + max(steps)
        assert bucket == coarse + (side if bidirectional and place > 0 else 0), place


@pytest.mark.parametrize("decoder", [False, True])
def test_bias_is_t5s(decoder: bool) -> None:
    theirs = TheirAttention(config(is_decoder=decoder), has_relative_attention_bias=True, layer_idx=0)
    table = theirs.relative_attention_bias.weight
    near(relative_position_bias(table, 7, 7, bidirectional=not decoder), theirs.compute_bias(7, 7)[0])
    whole = relative_position_bias(table, 9, 9, bidirectional=not decoder)
    near(relative_position_bias(table, 2, 9, bidirectional=not decoder, start=7), whole[:, 7:])


def test_rms_norm_is_pytorchs_and_keeps_what_would_overflow() -> None:
    x, gamma = torch.randn(4, 5, D) * torch.logspace(-3, 3, 5)[:, None], torch.randn(D)
    near(rms_norm(x, gamma), F.rms_norm(x, (D,), gamma, eps=1e-6))
    x, gamma = x.double(), gamma.double()
    torch.testing.assert_close(rms_norm(x, gamma), F.rms_norm(x, (D,), gamma, eps=1e-6), rtol=1e-12, atol=0)
    half = torch.full((2, 4), 300.0, dtype=torch.float16)
    near(rms_norm(half, torch.ones(4, dtype=torch.float16)), torch.ones(2, 4, dtype=torch.float16), 1e-3)


# -------------------------------------------------------------------------------------------------------------- spans


def test_a_text_of_512_tokens_becomes_461_and_104() -> None:
    mask = random_span_mask(512, torch.Generator().manual_seed(7))
    source, target = corrupt_spans(torch.arange(512), mask, range(1000, 1100))
    assert (len(source), len(target), int(mask.sum())) == (461, 104, 77)


# --------------------------------------------------------------------------------------------- text to text, and sizes


PUBLISHED = {
    "small": ((512, 8, 64, 2048, 6), 60_506_624),
    "base": ((768, 12, 64, 3072, 12), 222_903_552),
    "large": ((1024, 16, 64, 4096, 24), 737_668_096),
    "3B": ((1024, 32, 128, 16_384, 24), 2_851_598_336),
    "11B": ((1024, 128, 128, 65_536, 24), 11_307_321_344),
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_sizes_are_counted_to_the_last_parameter(name: str) -> None:
    (width, heads, head, ff, layers), total = PUBLISHED[name]
    sizes = {"d_model": width, "d_kv": head, "d_ff": ff, "num_layers": layers, "num_heads": heads}
    with torch.device("meta"):
        model = T5ForConditionalGeneration(config(**{**sizes, "vocab_size": 32_128}))
    assert sum(parameter.numel() for parameter in model.parameters()) == total
    counts = t5_parameters(32_128, width, heads, head, ff, layers)
    assert counts.total == total == sum(counts[:-1])


def test_counts_are_those_of_our_model() -> None:
    for gated, tied in itertools.product([False, True], repeat=2):
        model = T5(V, d_model=D, n_heads=H, d_head=DH, d_ff=FF, n_layers=L, gated=gated, tie_weights=tied, n_buckets=8)
        counts = t5_parameters(V, D, H, DH, FF, L, gated=gated, tied=tied, n_buckets=8)
        assert sum(parameter.numel() for parameter in model.parameters()) == counts.total
