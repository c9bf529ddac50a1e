"""T5 against Hugging Face's with the same weights, its buckets in whole numbers, spans by enumeration, and PyTorch's norm."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import T5Config, T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5Attention as TheirAttention

from tfcourse.t5 import (
    T5,
    T5Attention,
    T5FeedForward,
    T5Layer,
    corrupt_spans,
    random_span_mask,
    relative_position_bias,
    relative_position_bucket,
    restore_spans,
    rms_norm,
    score_to_text,
    t5_parameters,
    text_to_score,
    to_text,
)

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


def near(one: Tensor, other: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


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


def test_untied_logits_are_not_scaled(texts: tuple[Tensor, Tensor, Tensor]) -> None:
    torch.manual_seed(2)
    sizes: dict[str, int] = {"d_model": D, "n_heads": H, "d_head": DH, "d_ff": FF, "n_layers": L}
    tied, untied = T5(V, **sizes).eval(), T5(V, **sizes, tie_weights=False).eval()
    untied.load_state_dict({**tied.state_dict(), "output.weight": tied.embedding.weight})
    source, target, _ = texts
    near(untied(source, target) * D**-0.5, tied(source, target))


def test_the_future_of_the_target_changes_nothing_before_it(texts: tuple[Tensor, Tensor, Tensor]) -> None:
    model = T5(V, d_model=D, n_heads=H, d_head=DH, d_ff=FF, n_layers=L)
    source, target, mask = texts
    changed = target.clone()
    changed[:, 3:] = 1
    near(model(source, target, mask)[:, :3], model(source, changed, mask)[:, :3], 1e-6)


def test_weights_are_drawn_as_the_published_code_draws_them() -> None:
    torch.manual_seed(3)
    model = T5(800, d_model=64, n_heads=8, d_head=32, d_ff=400, n_layers=3, gated=True, n_buckets=32)
    wanted = {
        "embedding": 1.0,
        "q_proj": (64 * 32) ** -0.5,
        "k_proj": 1 / 8,
        "v_proj": 1 / 8,
        "o_proj": (8 * 32) ** -0.5,
        "up_proj": 1 / 8,
        "gate_proj": 1 / 8,
        "down_proj": 400**-0.5,
        "encoder_bias": 1 / 8,
        "decoder_bias": 1 / 8,
    }
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            assert parameter.std().item() == pytest.approx(wanted[name.split(".")[-2]], rel=0.15), name
        else:
            assert bool((parameter == 1).all()), name


def test_attention_is_t5s_and_a_large_bias_does_not_undo_a_mask() -> None:
    random = torch.Generator().manual_seed(4)
    x, context = torch.randn(2, 4, D, generator=random), torch.randn(2, 6, D, generator=random)
    bias = torch.randn(H, 4, 6, generator=random)
    mask = torch.rand(2, 4, 6, generator=random) < 0.6
    mask[0, 1] = False
    attention = T5Attention(D, H, DH)
    q, k, v = (
        F.linear(part, getattr(attention, f"{name}_proj").weight).unflatten(-1, (H, DH)).transpose(1, 2)
        for name, part in (("q", x), ("k", context), ("v", context))
    )
    for given in (bias, bias + 1e4 * ~mask[0]):
        scores = (q @ k.mT + given).masked_fill(~mask[:, None], -math.inf)
        weights = scores.softmax(-1).nan_to_num(0.0)
        expected = (weights @ v).transpose(1, 2).flatten(2) @ attention.o_proj.weight.T
        near(attention(x, context, mask, given), expected)
    assert not attention(x, context, mask, bias)[0, 1].any(), "a query that may attend to nothing gets zeros"


def test_a_layer_without_its_parts_is_what_is_left() -> None:
    x, memory = torch.randn(2, 4, D), torch.randn(2, 6, D)
    for decoder in (False, True):
        layer = T5Layer(D, H, DH, FF, decoder=decoder, dropout=1.0)
        assert torch.equal(layer(x, memory if decoder else None), x), "all sublayers are dropped"
        assert not torch.equal(layer.eval()(x, memory if decoder else None), x)


def test_a_gated_network_is_a_product() -> None:
    x = torch.randn(3, D)
    network = T5FeedForward(D, FF, gated=True)
    assert network.gate_proj is not None
    hidden = F.gelu(network.gate_proj(x), approximate="tanh") * network.up_proj(x)
    near(network(x), network.down_proj(hidden))


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


def test_first_distances_of_the_buckets() -> None:
    def firsts(bidirectional: bool) -> list[int]:
        buckets = relative_position_bucket(-torch.arange(300), bidirectional=bidirectional).tolist()
        return [buckets.index(bucket) for bucket in dict.fromkeys(buckets)]

    assert firsts(True) == [*range(9), 12, 16, 23, 32, 46, 64, 91]
    assert firsts(False) == [*range(17), 19, 21, 24, 27, 31, 35, 40, 46, 52, 59, 67, 77, 87, 99, 113]


def test_buckets_that_make_no_sense_are_errors() -> None:
    for n_buckets, max_distance, bidirectional in ((6, 20, True), (7, 20, False), (32, 8, True), (5, 20, True)):
        with pytest.raises(ValueError, match="even number"):
            relative_position_bucket(
                torch.arange(3), bidirectional=bidirectional, n_buckets=n_buckets, max_distance=max_distance
            )


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


def test_every_mask_is_drawn_and_they_are_equally_likely() -> None:
    random = torch.Generator().manual_seed(5)
    seen = Counter(
        tuple(random_span_mask(8, random, noise_density=0.375, mean_span_length=1.5).tolist()) for _ in range(2000)
    )
    # Three hidden tokens in two spans, five kept ones in two.
    wanted = {
        tuple([False] * kept + [True] * hidden + [False] * (5 - kept) + [True] * (3 - hidden))
        for kept in range(1, 5)
        for hidden in range(1, 3)
    }
    assert set(seen) == wanted
    assert all(180 < count < 320 for count in seen.values())


@pytest.mark.parametrize(
    ("length", "density", "mean"), [(512, 0.15, 3.0), (2, 0.5, 1.0), (10, 0.9, 1.0), (50, 0.01, 5)]
)
def test_masks_have_the_promised_number_of_tokens_and_spans(length: int, density: float, mean: float) -> None:
    random = torch.Generator().manual_seed(6)
    for _ in range(20):
        mask = random_span_mask(length, random, noise_density=density, mean_span_length=mean)
        hidden = min(max(round(length * density), 1), length - 1)
        assert int(mask.sum()) == hidden
        runs = [kind for kind, _ in itertools.groupby(mask.tolist())]
        assert runs == [False, True] * min(max(round(hidden / mean), 1), hidden, length - hidden)


def test_a_text_of_512_tokens_becomes_461_and_104() -> None:
    mask = random_span_mask(512, torch.Generator().manual_seed(7))
    source, target = corrupt_spans(torch.arange(512), mask, range(1000, 1100))
    assert (len(source), len(target), int(mask.sum())) == (461, 104, 77)


def test_masks_that_make_no_sense_are_errors() -> None:
    for length, density, mean in ((1, 0.5, 3.0), (5, 0.0, 3.0), (5, 1.0, 3.0), (5, 0.5, 0.5)):
        with pytest.raises(ValueError, match="at least 2 tokens"):
            random_span_mask(length, torch.Generator(), noise_density=density, mean_span_length=mean)


def corrupted_by_hand(tokens: list[int], noise: list[bool], sentinels: list[int]) -> tuple[list[int], list[int]]:
    source, target, used = [], [], 0
    for place, (token, hidden) in enumerate(zip(tokens, noise, strict=True)):
        if not hidden:
            source.append(token)
            continue
        if place == 0 or not noise[place - 1]:
            source.append(sentinels[used])
            target.append(sentinels[used])
            used += 1
        target.append(token)
    return source, [*target, sentinels[used]]


def test_all_masks_of_seven_tokens_are_written_down_and_read_back() -> None:
    tokens, sentinels = [11, 12, 13, 14, 15, 16, 17], [99, 98, 97, 96, 95]
    for noise in itertools.product([False, True], repeat=7):
        source, target = corrupt_spans(torch.tensor(tokens), torch.tensor(noise), sentinels)
        assert (source.tolist(), target.tolist()) == corrupted_by_hand(tokens, list(noise), sentinels)
        assert restore_spans(source, target, sentinels).tolist() == tokens


def test_spans_may_come_in_any_order_and_be_missing() -> None:
    source = torch.tensor([1, 99, 2, 98, 3])
    assert restore_spans(source, torch.tensor([98, 7, 99, 5, 6, 97]), [99, 98, 97]).tolist() == [1, 5, 6, 2, 7, 3]
    assert restore_spans(source, torch.tensor([8, 8, 98, 7]), [99, 98, 97]).tolist() == [1, 2, 7, 3]
    with pytest.raises(ValueError, match="2 spans need 3 sentinels, got 2"):
        corrupt_spans(torch.arange(4), torch.tensor([True, False, True, False]), [99, 98])


# --------------------------------------------------------------------------------------------- text to text, and sizes


def test_scores_are_written_and_read() -> None:
    assert [score_to_text(score) for score in (3.77, 2.5, 4.0, 1.09, 1.1, 5.0, 0.3, 2.7)] == [
        *("3.8", "2.6", "4.0", "1.0", "1.2", "5.0", "0.4", "2.8")
    ]
    assert [text_to_score(text) for text in ("3.8", " 4 ", "chicken", "5.2", "-2", "1e0")] == [3.8, 4.0, *[None] * 4]
    labels = [text_to_score(score_to_text(float(Fraction(tenths, 10)))) for tenths in range(0, 51, 2)]
    assert labels == [float(Fraction(tenths, 10)) for tenths in range(0, 51, 2)]  # the 26 classes of STS-B
    assert to_text("translate", {"": "hello"}) == "translate: hello"
    assert to_text("stsb", {"sentence1": "a", "sentence2": "b"}) == "stsb sentence1: a sentence2: b"
    with pytest.raises(ValueError, match="above 0"):
        score_to_text(3.0, step=0.0)


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
