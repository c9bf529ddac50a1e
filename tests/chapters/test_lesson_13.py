"""The lesson of chapter 13 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

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
    "rounded": "[float((once != twice).float().mean()), torch.equal(norm(rows), twice)]",
    "pooled": "pool_key_value_heads(torch.arange(8.0)[:, None], 4, 2).flatten().tolist()",
    "many": "list(step('8B', 8_192, 256))",
    "crossings": "{n: compute_bound_from(n) for n in (64, 256, 380, 400, 512, 8_192)}",
    "per_token": "[step('8B', 8_192, n)[0] / n for n in (14, 59, 256)]",
    "tiles": "[attention_flops / h100['peak_flops'], 4 * score_bytes / h100['bandwidth'], tile_bytes / h100['bandwidth']]",
    "days": "[days, hours / 16_384 / 24, rate]",
    "exchange": "[reading, exchanges, sent]",
    "decoded": "float((decode(prompt[:, 7:], 7, model(prompt[:, :7])[1], concatenate) - model(prompt)[0][:, 7:]).abs().max().detach())",
    "appended": "[append_gap, list(caches[write][0][0].shape), list(caches[concatenate][0][0].shape)]",
}
# Numbers of the prose that come from the papers it cites, or are settings of the code next to them.
GIVEN: set[str] = {
    "--new-tokens 80 --top-p 0.8 --seed 1",
    "base 10,000",
    "base 500,000",
    "the longest text of 131,072 tokens",
    "14,336 = 3.5 · 4,096",
    "Their embedding has 128,256 rows,",
    "so use 128,256 and not the 128,000 of some tables.",
    "| width | 4,096 | 8,192 | 16,384 |",
    "| feed-forward width | 14,336 | 28,672 | 53,248 |",
    "1.5 · 10⁻⁴",
    "read 15.6 · 10¹² tokens",
    "6 · 405 · 10⁹ · 15.6 · 10¹² = 3.8 · 10²⁵ FLOP",
    "on up to 16,384 H100s",
    "pre-training on 16,384 H100s",
    "after 8,192 tokens of one text",
    "989 / 3.35 = 295",
    "With 8,192 tokens, 14 caches take as long to read as the weights",
    "How many texts of 8,192 tokens",
    "a prompt of 8,192 tokens is a batch of 8,192,",
    "| 128,000 rows in the embedding |",
    "15.0 \\cdot 10^9 + 524{,}288\\, n}{989",
    "131{,}072\\, n}{3.35 \\cdot 10^{12}}",
    "with 7,000 cached tokens",
    "Sixteen texts have 4,000 tokens each.",
    "copies 16 · 4,000 keys and values per layer to add 16",
    "the last 4,096 tokens of its layer",
    "*ten* probability 0.6 and the large one 0.3:".replace("*", ""),
    "would have 4,096 rows each and not 1,024, so 2 · 3,072 · 4,096 more",
    "One text of 8,192 tokens takes 4.8 ms per step.",
    "At 131,072 tokens on one H100, three texts fit",
    "with one text of 8,192 tokens?",
    "$(9 + 16) / 2 = 12.5$, whose root is 3.54, so it becomes $(0.85, 1.13)$",
    r"\mathrm{silu}(2) = 1.76$ and $\mathrm{silu}(-2) = -0.24$",
    "with probability 0.8, independently of the others, a pass writes $1 + 0.8 + 0.8^2 + 0.8^3 + 0.8^4$ = 3.36 tokens",
    "of width 128 would need 32,768",
    "which would need 2,048,",
    "For one text of 8,192 tokens that is 15.0 + 4.3 = 19.3 GFLOP and 15.0 + 1.1 = 16.1 GB.",
}

LESSON = Lesson("13_grouped_query", ASKED, GIVEN)
SOURCE, PROSE, check = LESSON.source, LESSON.prose, LESSON.check
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


def test_lesson_leads_to_the_end_of_the_road() -> None:
    assert "{doc}`/book/road`" in SOURCE[SOURCE.index("## What to take along") :]


def test_bars_show_the_step_that_the_lesson_computes() -> None:
    counts = llama_parameters(*SIZES["8B"])
    weights = counts.attention + counts.feed_forward + counts.output
    cost = decode_cost(weights, 32, 32, 8, 128, 8_192)
    moved = cost.weight_bytes + cost.cache_bytes
    assert round(moved / 1e9, 1) == drawings.STEP_GB
    assert round(1e3 * moved / CARD["bandwidth"], 1) == drawings.BYTES_MS
    assert round(cost.flops / 1e9, 1) == drawings.STEP_GFLOP
    phrase = "For one text of 8,192 tokens that is 15.0 + 4.3 = 19.3 GFLOP and 15.0 + 1.1 = 16.1 GB."
    assert phrase in PROSE
    parts = (2 * weights, 4 * 32 * 32 * 128 * 8_192, cost.weight_bytes, cost.cache_bytes)
    assert [round(part / 1e9, 1) for part in parts] == [15.0, 4.3, 15.0, 1.1]
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


def test_eleven_gpus_hold_405b() -> None:
    needed = 2 * sum(llama_parameters(*SIZES["405B"])) + kv_cache_bytes(126, 8, 128, 8_192)
    assert math.ceil(needed / 80e9) == 11
    check("(Eleven: 816 GB on GPUs of 80 GB.)", needed / 1e9, form=".0f")


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
    total, bound, computing = values["steps"]["8B"]
    check("a token of the 8B model takes 4.8 ms,", total, form=".1f")
    check("the arithmetic takes 0.02 of them.", computing)
    assert bound == "bandwidth"
    read = 8_030_261_248 - 128_256 * 4_096  # a step reads one row of the embedding
    check("takes about 15 · 10⁹ FLOP: each of its weights outside the embedding", 2 * read / 1e9, form=".0f")
    check("should take 15 microseconds.", 1e6 * 2 * read / CARD["peak_flops"], form=".0f")
    check("It takes at least 4.5 milliseconds,", 1e3 * 2 * read / CARD["bandwidth"], form=".1f")
    assert total > 1e3 * 2 * read / CARD["bandwidth"]
    assert CARD["peak_flops"] / CARD["bandwidth"] == pytest.approx(300, rel=0.05), "three hundred times as long"


def test_a_batch_waits_for_its_caches(values: dict[str, Any]) -> None:
    total, bound, computing = values["many"]
    check("The step takes 87 ms and is still memory-bound", total, form=".0f")
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
    check("its own 15.0 · 10⁹ + 524,288 n FLOP and 131,072 n bytes.", 2 * weights / 1e9, form=".1f")
    check("its own 15.0 · 10⁹ + 524,288 n FLOP and 131,072 n bytes.", 4 * 32 * 32 * 128, form=",d")
    check("its own 15.0 · 10⁹ + 524,288 n FLOP and 131,072 n bytes.", kv_cache_bytes(32, 8, 128, 1), form=",d")
    assert r"\text{for } n \ge 394" in PROSE


def test_batches_beyond_14_gain_at_most_a_factor_of_two(values: dict[str, Any]) -> None:
    at_14, at_59, at_256 = values["per_token"]
    least = 1e3 * kv_cache_bytes(32, 8, 128, 8_192) / CARD["bandwidth"]
    alone = values["steps"]["8B"][0]
    check("| milliseconds per token | 4.80 | 0.64 | 0.40 | 0.34 | 0.32 |", alone, at_14, at_59, at_256, least)
    assert at_14 / least < 2


def test_54_days_are_refuted(values: dict[str, Any]) -> None:
    fewest, of_hours, rate = values["days"]
    assert rate / CARD["peak_flops"] > 0.43, "more than the paper reports"
    assert rate / CARD["peak_flops"] == pytest.approx(0.5, abs=0.01), "half of its peak"
    most = fewest * 0.43 / 0.38
    check("the run takes 63 to 71 days,", fewest, form=".0f")
    check("the run takes 63 to 71 days,", most, form=".0f")
    check("amount to 78.", of_hours, form=".0f")


def test_exchanges_cost_their_start_and_not_their_bytes(values: dict[str, Any]) -> None:
    reading, exchanges, sent = values["exchange"]
    assert 1e3 * sent / 450e9 < 0.02, "almost no time"
    check("the exchanges would take 1.6 ms,", exchanges * 0.01, form=".1f")
    assert exchanges * 0.01 / reading == pytest.approx(0.3, abs=0.03), "almost a third"


def test_stored_scores_are_memory_bound_and_tiles_are_not(values: dict[str, Any]) -> None:
    arithmetic, scores, tiles = values["tiles"]
    assert tiles < arithmetic < scores
    assert arithmetic == pytest.approx(4 * 4096 * 8_192**2 / CARD["peak_flops"])
    assert scores == pytest.approx(4 * 32 * 8_192**2 * 2 / CARD["bandwidth"])
    counts = llama_parameters(*SIZES["8B"])
    matrices = 2 * 8_192 * (counts.attention + counts.feed_forward) / 32
    assert (matrices + 4 * 4096 * 8_192**2) / CARD["peak_flops"] > tiles, "the layer becomes compute-bound"


def test_rule_of_acceptance_draws_from_the_large_model() -> None:
    large, small = torch.rand(2, 6, generator=torch.Generator().manual_seed(0)).mul(3).softmax(-1)
    accepted = (large / small).clamp(max=1)
    rest = (large - small).clamp(min=0)
    drawn = small * accepted + (small * (1 - accepted)).sum() * rest / rest.sum()
    torch.testing.assert_close(drawn, large)


def test_text_of_the_llama_is_the_recorded_one() -> None:
    record = json.loads((ROOT / "experiments" / "results" / "llama_writes.json").read_text(encoding="utf-8"))
    for part in (record["command"].partition(" --record")[0], record["generate"], record["text"]):
        assert part in SOURCE, part
    assert f"({round(record['parameters'] / 1e3)} thousand parameters" in PROSE


def test_a_cache_saves_passes_and_changes_no_text(values: dict[str, Any]) -> None:
    same, kept, again = values["written"]
    assert same
    assert (kept, again) == (8 + 149, sum(range(8, 158)))
    check("With a cache 157 tokens go through the model:", kept, form="d")
    check("at every step, 12,375 in total.", again, form=",d")


def test_a_preallocated_cache_changes_no_logits(values: dict[str, Any]) -> None:
    gap, written, concatenated = values["appended"]
    assert gap < 1e-4
    assert written == concatenated == [16, 2, 4_030, 16]
    assert values["decoded"] < 1e-5, "the step on the page is that of the model"


def test_forward_pass_on_the_page_is_that_of_the_model(values: dict[str, Any]) -> None:
    assert values["forward"] < 1e-5
    assert values["shapes"] == [[1, 5, 97], [1, 2, 20, 16], [32, 128]]


def test_norms_of_two_orders_differ_in_bfloat16(values: dict[str, Any]) -> None:
    share, as_llama = values["rounded"]
    assert share > 0.05
    assert as_llama


def test_neighbouring_heads_are_averaged(values: dict[str, Any]) -> None:
    assert values["pooled"] == [1, 2, 5, 6]
    assert "the rows 1, the mean of rows 0 and 2, and 2, the mean of rows 1 and 3." in PROSE


def test_gated_network_keeps_the_number_of_parameters(values: dict[str, Any]) -> None:
    gated, difference = values["gate"]
    assert gated == pytest.approx(2 * 64 * 4 * 64, rel=0.05)
    assert difference < 1e-5


def test_shares_of_the_parameters_are_those_of_the_text_and_of_the_figure() -> None:
    shares = {name: llama_parameters(*sizes) for name, sizes in SIZES.items()}
    parts = [[round(100 * part / sum(counts)) for part in counts] for counts in shares.values()]
    assert [part[2] for part in parts] == [70, 80, 81]
    assert "Between 70 and 81% of the parameters are in the feed-forward networks." in PROSE
    assert [part[1] for part in parts] == [17, 17, 18]
    more = sum(llama_parameters(128_256, 4096, 32, 32, 14_336, 32)) - sum(shares["8B"])
    assert more == 2 * 3_072 * 4_096 * 32
    check("805 million, a tenth of the model.", more / 1e6, form=".0f")
    assert more / sum(shares["8B"]) == pytest.approx(0.1, abs=0.005)
    check("have 268 million, which is 3%.", 2 * 32 * 4096 * 1024 / 1e6, form=".0f")
    check("have 268 million, which is 3%.", 100 * 2 * 32 * 4096 * 1024 / sum(shares["8B"]), form=".0f")


def test_caches_outgrow_the_weights_where_the_figure_says() -> None:
    weights = 2 * 8_030_261_248
    assert weights / 2**30 == pytest.approx(15, abs=0.1)
    assert weights / kv_cache_bytes(32, 32, 128, 1) == pytest.approx(31_000, rel=0.02)
    assert weights / kv_cache_bytes(32, 8, 128, 1) == pytest.approx(123_000, rel=0.01)
    assert kv_cache_bytes(32, 1, 128, 131_072) < weights
    room = 80 * 10**9
    assert largest_batch(room, weights, kv_cache_bytes(32, 8, 128, 131_072)) == 3, "three texts fit"
    assert largest_batch(room, weights, kv_cache_bytes(32, 32, 128, 131_072)) == 0


def test_caches_and_batches_are_those_of_the_text() -> None:
    assert kv_cache_bytes(32, 8, 128, 1) == 128 * 2**10
    assert kv_cache_bytes(32, 8, 128, 131_072) == 16 * 2**30
    assert kv_cache_bytes(32, 32, 128, 131_072) == 64 * 2**30
    fits = [largest_batch(80 * 10**9, 2 * 8_030_261_248, kv_cache_bytes(32, shared, 128, 8192)) for shared in (8, 32)]
    assert f"With 8 key/value heads {fits[0]} texts fit, with 32 only {fits[1]}." in PROSE


@pytest.mark.parametrize("name", SIZES)
def test_cache_intensity_is_the_number_of_heads_that_share(name: str) -> None:
    vocabulary, d_model, heads, shared, d_ff, layers = SIZES[name]
    counts = llama_parameters(vocabulary, d_model, heads, shared, d_ff, layers)
    long, longer = (
        decode_cost(sum(counts), layers, heads, shared, d_model // heads, length) for length in (1000, 2000)
    )
    intensity = (longer.flops - long.flops) / (longer.cache_bytes - long.cache_bytes)
    assert intensity == heads / shared == {"8B": 4, "70B": 8, "405B": 16}[name]


def test_recorded_runs_are_told_as_they_were() -> None:
    means = {groups: sum(found) / len(found) for groups, found in RECORD["losses"].items()}
    noise = max(max(found) - min(found) for found in RECORD["losses"].values())
    check("The four means lie within 0.04 nats,", max(means.values()) - min(means.values()))
    check("differ by up to 0.05.", noise)
    pairs = [
        few - many
        for groups in "421"
        for few, many in zip(RECORD["losses"][groups], RECORD["losses"]["8"], strict=True)
    ]
    assert min(pairs) > 0, "worse in all six pairs"
    check("by 0.033 nats on average.", sum(pairs) / 6, form=".3f")
    tuned = {way: sum(run[1] for run in runs) / len(runs) for way, runs in RECORD["conversion"].items()}
    check("far from the original model's 1.78:", means["8"])
    for heads in (1, 2):
        assert tuned[f"first {heads}"] < tuned[f"mean {heads}"] < tuned[f"fresh {heads}"]


def test_arithmetic_of_the_text_is_right() -> None:
    assert 14_336 == 3.5 * 4_096
    assert pytest.approx(3.8e25, rel=0.01) == 6 * 405e9 * 15.6e12
    assert [round(z / (1 + math.exp(-z)), 2) for z in (2, -2)] == [1.76, -0.24]
    assert round(sum(0.8**n for n in range(5)), 2) == 3.36
    assert [round(math.sqrt(12.5), 2), round(3 / math.sqrt(12.5), 2), round(4 / math.sqrt(12.5), 2)] == [
        3.54,
        0.85,
        1.13,
    ]
    assert 2 * 128 * 128 == 32_768
    assert 2 * 8 * 128 == 2_048
    assert round(989 / 3.35) == 295
    assert [f"{n:,}" in PROSE for n in (128_256, 28_672, 53_248)] == [True] * 3
