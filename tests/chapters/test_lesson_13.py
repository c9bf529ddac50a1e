"""The lesson of chapter 13 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from transformers.models.t5.modeling_t5 import T5LayerNorm

from tfcourse.data import recorded_grouped_queries
from tfcourse.lessons.figures.scenes import ch13_grouped_query as drawings
from tfcourse.llama import Llama, decode_cost, kv_cache_bytes, largest_batch, llama_parameters

from .form import LessonForm
from .lesson import ROOT, Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "sharing": "[float((shared_out - copied).abs().max()), float((shared_out - wrong).abs().max())]",
    "broadcast": "[tensor.untyped_storage().nbytes() for tensor in (keys, expanded, copies)]",
    "steps": "{name: step(name, 8192) for name in sizes}",
    "built_in": "[list(built_in.shape), gqa_gap]",
    "gate": "[sum(p.numel() for p in network.parameters()), float(gate_difference.abs().max())]",
    "forward": "difference",
    "shapes": "[list(logits.shape), list(stacked.shape), list(model.layers[0].self_attention.k_proj.weight.shape)]",
    "written": "[torch.equal(texts[True], texts[False]), passed[True], passed[False]]",
    "rounded": "[float((once != twice).float().mean()), torch.equal(norm(rows), twice), [rows.tolist(), g.tolist(), twice.tolist()]]",
    "pooled": "pool_key_value_heads(torch.arange(8.0)[:, None], 4, 2).flatten().tolist()",
    "many": "list(step('8B', 8_192, 256))",
    "crossings": "{n: compute_bound_from(n) for n in (64, 256, 380, 400, 512, 8_192)}",
    "per_token": "[step('8B', 8_192, n)[0] / n for n in (14, 59, 256)]",
    "prefill": "prefill_times",
    "exchange": "[reading, exchanges, sent]",
    "decoded": "float((decode(prompt[:, 7:], 7, model(prompt[:, :7])[1], concatenate) - model(prompt)[0][:, 7:]).abs().max().detach())",
    "appended": "[append_gap, list(caches[write][0][0].shape), list(caches[concatenate][0][0].shape)]",
}
# Numbers of the prose that come from the papers it cites, are settings of the code, or are worked out on the spot.
GIVEN = """
10,000 500,000 12.5 3.54 0.85 1.13 131,072 7,000 1.76 0.24 14,336 3.5 4,096 128,256 128,000 1,024 3,072 8,192 16,384 28,672 53,248 1.5
15.6 3.8 3.35 15.0 524,288 4,000 0.8 0.6 0.3 3.36 32,768 2,048 1.1
"""

LESSON = Lesson("13_grouped_query", ASKED, GIVEN)
RECORD = recorded_grouped_queries()
CARD: dict[str, Any] = {"peak_flops": 989.4e12, "bandwidth": 3.35e12}
SIZES = {
    "8B": (128_256, 4096, 32, 8, 14_336, 32),
    "70B": (128_256, 8192, 64, 8, 28_672, 80),
    "405B": (128_256, 16_384, 128, 8, 53_248, 126),
}


# ---------------------------------------------------------------------------------------------- the page


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def test_lesson_has_its_calculator_of_the_published_sizes(pages: list[str]) -> None:
    (shown,) = [page for page in pages if page.startswith("<cost-explorer")]
    data = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', shown, flags=re.S)[0])
    assert [model["name"] for model in data["models"]] == list(SIZES)
    assert [model["published"] for model in data["models"]] == [8, 8, 8]


def test_bars_show_the_step_that_the_lesson_computes() -> None:
    counts = llama_parameters(*SIZES["8B"])
    weights = counts.attention + counts.feed_forward + counts.output
    cost = decode_cost(weights, 32, 32, 8, 128, 8_192)
    moved = cost.weight_bytes + cost.cache_bytes
    assert round(moved / 1e9, 1) == drawings.STEP_GB
    assert round(1e3 * moved / CARD["bandwidth"], 1) == drawings.BYTES_MS
    assert round(cost.flops / 1e9, 1) == drawings.STEP_GFLOP
    assert round(1e3 * cost.flops / CARD["peak_flops"], 2) == drawings.FLOP_MS


def test_pages_hold_the_tokens_that_the_drawing_promises() -> None:
    tokens = {name: sum(used for _, used in table) for name, table in drawings.PAGE_TABLES.items()}
    assert tokens == {"A": 10, "B": 7}
    for table in drawings.PAGE_TABLES.values():
        assert all(used == drawings.PAGE_SIZE for _, used in table[:-1]), "only the last page is partly empty"
        assert all(page < drawings.PAGES for page, _ in table)
    assert [page for page, _ in drawings.PAGE_TABLES["A"]] == [3, 1, 5]
    assert [page for page, _ in drawings.PAGE_TABLES["B"]] == [3, 6]


# ------------------------------------------------------------------------------------------- its numbers


def test_stacked_queries_give_what_copies_of_the_keys_give(values: dict[str, Any]) -> None:
    right, wrong = values["sharing"]
    assert right < 1e-5 < 0.1 < wrong


def test_broadcasting_copies_the_keys_once_per_query_head(values: dict[str, Any]) -> None:
    keys, expanded, copies = values["broadcast"]
    assert expanded == keys
    assert copies == 4 * keys
    asked, shared = torch.randn(1, 2, 4, 5, 16), torch.randn(1, 2, 7_000, 16)
    with torch.profiler.profile(profile_memory=True) as log:
        asked @ shared[:, :, None].mT
    allocated = sum(max(0, event.self_cpu_memory_usage) for event in log.key_averages())
    assert allocated >= 4 * 4 * shared.numel(), "torch.matmul writes the copies into memory"


def test_enable_gqa_is_grouped_attention_and_copies_in_the_plain_backend_alone(values: dict[str, Any]) -> None:
    shape, gap = values["built_in"]
    assert shape == [1, 8, 5, 16]
    assert gap < 1e-5
    q, k, v = torch.randn(1, 8, 1, 16), torch.randn(1, 2, 7_000, 16), torch.randn(1, 2, 7_000, 16)
    allocated = {}
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.MATH):
        with sdpa_kernel(backend), torch.profiler.profile(profile_memory=True) as log:
            torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        allocated[backend] = sum(max(0, event.self_cpu_memory_usage) for event in log.key_averages())
    assert allocated[SDPBackend.FLASH_ATTENTION] < 4 * k.numel()
    assert allocated[SDPBackend.MATH] > 2 * 4 * 4 * k.numel(), "keys and values, four times each"


def test_stream_grows_and_the_last_norm_brings_it_back() -> None:
    torch.manual_seed(0)
    model = Llama(97, d_model=128, n_heads=8, n_kv_heads=2, d_ff=352, n_layers=6).eval()
    sizes: list[float] = []
    for layer in model.layers:
        layer.register_forward_hook(
            lambda _, inputs, output: sizes.append((output[0] if isinstance(output, tuple) else output).norm().item())
        )
    final: list[float] = []
    model.norm.register_forward_hook(lambda _, inputs, output: final.append(output.square().mean().item()))
    with torch.no_grad():
        model(torch.arange(20)[None])
    assert sizes == sorted(sizes)
    assert final == pytest.approx([1], abs=0.05)


def test_a_token_takes_milliseconds_and_its_arithmetic_a_fraction(values: dict[str, Any]) -> None:
    total, bound, _ = values["steps"]["8B"]
    assert bound == "bandwidth"
    read = 8_030_261_248 - 128_256 * 4_096  # a step reads one row of the embedding
    assert total > 1e3 * 2 * read / CARD["bandwidth"]
    assert CARD["peak_flops"] / CARD["bandwidth"] == pytest.approx(300, rel=0.05), "three hundred times as long"


def test_a_batch_waits_for_its_caches(values: dict[str, Any]) -> None:
    total, bound, computing = values["many"]
    assert bound == "bandwidth"
    assert computing < total / 10
    counts = llama_parameters(*SIZES["8B"])
    weights = 2 * (counts.attention + counts.feed_forward + counts.output)
    cache = kv_cache_bytes(32, 8, 128, 8_192)
    assert 13 * cache < weights < 14 * cache, "14 caches take as long to read"
    assert 14 * cache == pytest.approx(weights, rel=0.01)


def test_short_texts_become_compute_bound_and_long_ones_never_do(values: dict[str, Any]) -> None:
    crossings = values["crossings"]
    assert crossings["64"] < crossings["256"], "the longer the texts, the larger the batch"
    assert crossings["512"] is None
    assert crossings["8192"] is None
    counts = llama_parameters(*SIZES["8B"])
    weights = counts.attention + counts.feed_forward + counts.output

    def ever(length: int) -> bool:
        cost = decode_cost(weights, 32, 32, 8, 128, length)
        return bool(cost.flops / CARD["peak_flops"] > cost.cache_bytes / CARD["bandwidth"])

    assert ever(393)
    assert not ever(394), "from about 390 tokens on no batch is large enough"


def test_batches_beyond_14_gain_at_most_a_factor_of_two(values: dict[str, Any]) -> None:
    at_14, *_ = values["per_token"]
    assert at_14 / (1e3 * kv_cache_bytes(32, 8, 128, 8_192) / CARD["bandwidth"]) < 2


def test_54_days_are_refuted() -> None:
    training = 6 * sum(llama_parameters(*SIZES["405B"])) * 15.6e12
    assert training / (54 * 86_400 * 16_384) / CARD["peak_flops"] > 0.43, "more than the paper reports"


def test_exchanges_cost_their_start_and_not_their_bytes(values: dict[str, Any]) -> None:
    reading, exchanges, sent = values["exchange"]
    assert 1e3 * sent / 450e9 < 0.02, "almost no time"
    assert exchanges * 0.01 / reading == pytest.approx(0.3, abs=0.03), "almost a third"


def test_a_layer_with_stored_scores_is_memory_bound_from_seven_thousand_tokens_on(values: dict[str, Any]) -> None:
    bound = {length: stored > arithmetic for length, (arithmetic, stored, _) in values["prefill"].items()}
    assert bound == {"1024": False, "4096": False, "8192": True, "16384": True}
    assert all(tiles < arithmetic for arithmetic, _, tiles in values["prefill"].values())
    W = sum(getattr(llama_parameters(*SIZES["8B"]), part) for part in ("attention", "feed_forward")) / 32
    line = 2 * W / CARD["peak_flops"] - 2 * 80 * 128 / CARD["bandwidth"]
    square = 8 * 32 / CARD["bandwidth"] - 4 * 4_096 / CARD["peak_flops"]
    long = (line + (line**2 - 8 * W * square / CARD["bandwidth"]) ** 0.5) / (2 * square)
    assert long == pytest.approx(7_000, rel=0.02), "the larger root of arithmetic = memory"


def test_rule_of_acceptance_draws_from_the_large_model() -> None:
    large, small = torch.rand(2, 6, generator=torch.Generator().manual_seed(0)).mul(3).softmax(-1)
    accepted = (large / small).clamp(max=1)
    rest = (large - small).clamp(min=0)
    drawn = small * accepted + (small * (1 - accepted)).sum() * rest / rest.sum()
    torch.testing.assert_close(drawn, large)


def test_text_of_the_llama_is_the_recorded_one() -> None:
    record = json.loads((ROOT / "experiments" / "results" / "llama_writes.json").read_text(encoding="utf-8"))
    for part in (record["command"].partition(" --record")[0], record["generate"], record["text"]):
        assert part in LESSON.source, part


def test_a_cache_saves_passes_and_changes_no_text(values: dict[str, Any]) -> None:
    assert values["written"] == [True, 8 + 149, sum(range(8, 158))]


def test_a_preallocated_cache_changes_no_logits(values: dict[str, Any]) -> None:
    gap, written, concatenated = values["appended"]
    assert gap < 1e-4
    assert written == concatenated == [16, 2, 4_030, 16]
    assert values["decoded"] < 1e-5, "the step on the page is that of the model"


def test_forward_pass_on_the_page_is_that_of_the_model(values: dict[str, Any]) -> None:
    assert values["forward"] < 1e-5
    assert values["shapes"] == [[1, 5, 97], [1, 2, 20, 16], [32, 128]]


def test_norms_of_two_orders_differ_in_bfloat16(values: dict[str, Any]) -> None:
    share, as_llama, tensors = values["rounded"]
    assert share > 0.05
    assert as_llama
    rows, weight, twice = (torch.tensor(numbers).bfloat16() for numbers in tensors)
    t5 = T5LayerNorm(64, eps=1e-5).bfloat16()
    t5.weight.data = weight
    assert torch.equal(t5(rows), twice), "T5 rounds where Llama does"


def test_neighbouring_heads_are_averaged(values: dict[str, Any]) -> None:
    assert values["pooled"] == [1, 2, 5, 6]


def test_gated_network_keeps_the_number_of_parameters(values: dict[str, Any]) -> None:
    gated, difference = values["gate"]
    assert gated == pytest.approx(2 * 64 * 4 * 64, rel=0.05)
    assert difference < 1e-5


def test_a_cache_for_every_head_would_cost_a_tenth_of_the_model() -> None:
    published, every_head = (sum(llama_parameters(128_256, 4096, 32, shared, 14_336, 32)) for shared in (8, 32))
    assert every_head - published == 2 * 3_072 * 4_096 * 32
    assert (every_head - published) / published == pytest.approx(0.1, abs=0.005)


def test_caches_outgrow_the_weights_where_the_figure_says() -> None:
    weights = 2 * 8_030_261_248
    assert weights / 1e9 == pytest.approx(16, abs=0.1)
    assert weights / kv_cache_bytes(32, 32, 128, 1) == pytest.approx(31_000, rel=0.02)
    assert weights / kv_cache_bytes(32, 8, 128, 1) == pytest.approx(123_000, rel=0.01)
    assert kv_cache_bytes(32, 1, 128, 131_072) < weights
    room = 80 * 10**9
    assert largest_batch(room, weights, kv_cache_bytes(32, 8, 128, 131_072)) == 3, "three texts fit"
    assert largest_batch(room, weights, kv_cache_bytes(32, 32, 128, 131_072)) == 0


@pytest.mark.parametrize("name", SIZES)
def test_cache_intensity_is_the_number_of_heads_that_share(name: str) -> None:
    vocabulary, d_model, heads, shared, d_ff, layers = SIZES[name]
    counts = llama_parameters(vocabulary, d_model, heads, shared, d_ff, layers)
    long, longer = (
        decode_cost(sum(counts), layers, heads, shared, d_model // heads, length) for length in (1000, 2000)
    )
    intensity = (longer.flops - long.flops) / (longer.cache_bytes - long.cache_bytes)
    assert intensity == heads / shared == {"8B": 4, "70B": 8, "405B": 16}[name]


def test_fewer_heads_are_worse_in_every_pair_and_the_first_head_beats_the_mean() -> None:
    losses = RECORD["losses"]
    pairs = [few - many for shared in "421" for few, many in zip(losses[shared], losses["8"], strict=True)]
    assert len(pairs) == 6
    assert min(pairs) > 0
    tuned = {way: sum(run[1] for run in runs) / len(runs) for way, runs in RECORD["conversion"].items()}
    for heads in (1, 2):
        runs = zip(RECORD["conversion"][f"first {heads}"], RECORD["conversion"][f"mean {heads}"], strict=True)
        assert all(first[1] < averaged[1] for first, averaged in runs), "in all four comparisons"
        assert tuned[f"first {heads}"] < tuned[f"mean {heads}"] < tuned[f"fresh {heads}"]


def test_arithmetic_of_the_text_is_right() -> None:
    assert pytest.approx(3.8e25, rel=0.01) == 6 * 405e9 * 15.6e12
    assert [round(z / (1 + math.exp(-z)), 2) for z in (2, -2)] == [1.76, -0.24]
    assert round(sum(0.8**n for n in range(5)), 2) == 3.36
    assert [round(number, 2) for number in (12.5**0.5, 3 / 12.5**0.5, 4 / 12.5**0.5)] == [3.54, 0.85, 1.13]
