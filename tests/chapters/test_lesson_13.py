"""The lesson of chapter 13 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tfcourse.data import recorded_grouped_queries
from tfcourse.figures.scenes import ch13_grouped_query as drawings
from tfcourse.llama import decode_cost, inference_latency, kv_cache_bytes, largest_batch, llama_parameters

from .lesson import Lesson, described

# Labels that known mistakes name, and what a student is then told to read.
HEADINGS = {
    "what-changed": "What has changed since GPT",
    "cache-problem": "The cache is the problem",
    "share-the-keys": "Share the keys",
    "many-to-few": "From many to few",
    "gated-bends": "Gated bends",
    "llama-counted": "Llama, counted",
    "two-clocks": "Two clocks",
    "generate-with-llama": "Generate",
    "prefill-and-decode": "Prefill and decode",
    "what-goes-wrong-13": "What goes wrong",
}

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "sharing": "[torch.allclose(shared_out, copied, atol=1e-6), torch.allclose(shared_out, wrong, atol=1e-6)]",
    "steps": "{name: step(name, 8192) for name in sizes}",
    "long": "[step('8B', length, 512) for length in (512, 131072)]",
    "gate": "[sum(p.numel() for p in network.parameters()), plain]",
    "written": "[torch.equal(texts[True], texts[False]), passed[True], passed[False]]",
    "rounded": "float((norm(x) != once).float().mean())",
    "pooled": "pool_key_value_heads(torch.arange(8.0)[:, None], 4, 2).flatten().tolist()",
    "many": "list(step('8B', 8_192, 256))",
}
# Numbers of the prose that come from the papers it cites, or are settings of the code next to them.
GIVEN: set[str] = {
    "base 500,000",
    "a context of 131,072 tokens",
    "Llama 3 8B takes 14,336 = 3.5 · 4,096,",
    "with 128,256 rows of the embedding",
    "(Tables that say 128,000 tokens",
    "| width | 4,096 | 8,192 | 16,384 |",
    "| feed-forward width | 14,336 | 28,672 | 53,248 |",
    "1.5 · 10⁻⁴",
    "They read 15.6 · 10¹² tokens",
    "6 · 405 · 10⁹ · 15.6 · 10¹² = 3.8 · 10²⁵",
    "on 16,384 cards",
    "An H100 moves 3.35 TB",
    "989 / 3.35 = 295",
    "How many texts of 8,192 tokens",
    "A prompt of 8,192 tokens is a batch of 8,192",
    "| 128,000 rows |",
    "would have 4,096 rows each and not 1,024, so 2 · 3,072 · 4,096 more",
    "One text of 8,192 tokens takes 4.8 ms a step.",
    "With 8,192 tokens, 15 texts are enough",
    "At 131,072 tokens on one H100, three texts fit",
    "to hold one text of 8,192 tokens?",
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


def cell_sources() -> list[tuple[list[str], str]]:
    """The tags and the code of each cell."""
    cells = re.findall(r"```\{code-cell\} ipython3\n(.*?)\n```", SOURCE, flags=re.S)
    tags = [re.findall(r"[\w-]+", "".join(re.findall(r"^:tags: \[(.*)\]$", cell, flags=re.M))) for cell in cells]
    return list(zip(tags, (re.sub(r"^:(?:tags|mystnb):.*\n+", "", cell, flags=re.M) for cell in cells), strict=True))


# ---------------------------------------------------------------------------------------------- the page


def test_every_label_that_others_point_at_exists_and_has_the_heading_that_students_are_told() -> None:
    for label, heading in HEADINGS.items():
        assert LESSON.headings(label) == [heading], label


def test_lesson_has_at_most_6000_words_of_paragraphs() -> None:
    without_folds = re.sub(r"```.*?\n```", "", SOURCE, flags=re.S)
    assert 2000 <= len(without_folds.split()) <= 6000


def test_lesson_carries_the_header_that_myst_needs() -> None:
    assert LESSON.has_header()


def test_a_picture_comes_before_the_first_heading_of_a_section_and_objectives_too() -> None:
    top = SOURCE[: SOURCE.index("(what-changed)=")]
    assert "figures.show(drawings." in top
    assert len(re.findall(r"^- ", top, flags=re.M)) in range(3, 6)
    assert "**You need**" in top
    assert "**It takes**" in top


def test_readers_are_asked_to_guess_and_the_answers_are_folded() -> None:
    folded = re.findall(r"^```\{admonition\} Guess: [^\n]*[?.]\n:class: dropdown", SOURCE, flags=re.M)
    asked = re.findall(r"^```\{admonition\} Guess first\n:class: guess", SOURCE, flags=re.M)
    assert len(folded) >= 3
    assert len(asked) >= 3
    behind = re.findall(
        r"Guess first\n:class: guess.*?\n```\n\n```\{code-cell\} ipython3\n(:tags: .*?)\n", SOURCE, re.S
    )
    assert len(behind) == len(asked)
    assert all("hide-output" in cell for cell in behind)


def test_every_fold_says_what_is_in_it() -> None:
    for cell in re.findall(r"```\{code-cell\} ipython3\n(.*?)\n```", SOURCE, flags=re.S):
        if re.search(r"^:tags: .*hide-", cell, flags=re.M):
            assert re.search(r'^:mystnb: \{code_prompt_show: "Show the ', cell, flags=re.M), cell


def test_code_that_is_shown_fits_the_page() -> None:
    for tags, code in cell_sources():
        if not {"hide-input", "remove-input"} & set(tags):
            assert len(code.splitlines()) <= 20, code
            assert max(map(len, code.splitlines())) <= 80, code


def test_lesson_has_its_calculator_of_the_published_sizes(pages: list[str]) -> None:
    (shown,) = [page for page in pages if page.startswith("<cost-explorer")]
    data = json.loads(re.findall(r'<script type="application/json">(.*?)</script>', shown, flags=re.S)[0])
    assert [model["name"] for model in data["models"]] == list(SIZES)
    assert [model["published"] for model in data["models"]] == [8, 8, 8]


def test_lesson_leads_to_the_end_of_the_road() -> None:
    assert "{doc}`/book/road`" in SOURCE[SOURCE.index("## What to take along") :]


def test_nothing_is_written_to_stderr(cells: list[Any]) -> None:
    assert not [output.text for cell in cells for output in cell.outputs if output.get("name") == "stderr"]


def test_every_figure_has_a_description_and_a_caption(pages: list[str]) -> None:
    assert described(pages) == [True] * 9
    assert LESSON.captions() == list(range(1, 11))


def test_drawings_can_be_drawn() -> None:
    for draw in (drawings.sharing, drawings.layer, drawings.gate, drawings.clocks, drawings.prefill):
        assert "<svg" in draw().to_html(alt="A drawing of the chapter that is looked at by nobody but a test.")


# ------------------------------------------------------------------------------------------- its numbers


def test_heads_are_shared_by_neighbours(values: dict[str, Any]) -> None:
    assert values["sharing"] == [True, False]


def test_a_word_takes_milliseconds_and_its_sums_a_fraction(values: dict[str, Any]) -> None:
    total, bound, sums = values["steps"]["8B"]
    check("4.8 ms for a word of the 8B model", total, form=".1f")
    check("the sums take 0.02 of them.", sums)
    assert bound == "bandwidth"
    check("16 · 10⁹ of them", 16, form="d")
    assert pytest.approx(16e9, rel=0.01) == 2 * 8_030_261_248
    assert 16e9 / CARD["peak_flops"] == pytest.approx(16e-6, rel=0.05), "16 millionths of a second"
    assert total / 1e3 / 16e-6 == pytest.approx(300, rel=0.05), "three hundred times as long"


def test_a_batch_waits_for_its_caches(values: dict[str, Any]) -> None:
    total, bound, sums = values["many"]
    check("87 ms, and still the bytes", total, form=".0f")
    assert bound == "bandwidth"
    assert sums < total / 10
    weights = 2 * sum(llama_parameters(*SIZES["8B"]))
    assert 14 * 2**30 < weights < 15 * kv_cache_bytes(32, 8, 128, 8_192), "15 texts outweigh the weights"
    long, short = (
        decode_cost(sum(llama_parameters(*SIZES["8B"])), 32, 32, 8, 128, length, batch=300) for length in (8_192, 128)
    )
    bounds = [inference_latency(c.flops, c.weight_bytes + c.cache_bytes, **CARD).bound for c in (long, short)]
    assert bounds[0] == "bandwidth"
    assert inference_latency(short.flops, short.weight_bytes, **CARD).bound == "compute"


def test_a_cache_saves_passes_and_changes_no_text(values: dict[str, Any]) -> None:
    same, kept, again = values["written"]
    assert same
    assert (kept, again) == (8 + 149, sum(range(8, 158)))
    check("and 157 tokens that went through the model in place of 12,375:", kept, form="d")
    check("and 157 tokens that went through the model in place of 12,375:", again, form=",d")


def test_norms_of_two_orders_differ_in_bfloat16(values: dict[str, Any]) -> None:
    assert values["rounded"] > 0.05, "more than one number of twenty"


def test_neighbouring_heads_are_averaged(values: dict[str, Any]) -> None:
    assert values["pooled"] == [1, 2, 5, 6]
    assert "has 1, the mean of rows 0 and 2, and 2, the mean of rows 1 and 3." in PROSE


def test_gated_network_keeps_the_number_of_parameters(values: dict[str, Any]) -> None:
    gated, plain = values["gate"]
    assert gated == pytest.approx(plain, rel=0.05)


def test_shares_of_the_parameters_are_those_of_the_text_and_of_the_figure() -> None:
    shares = {name: llama_parameters(*sizes) for name, sizes in SIZES.items()}
    parts = [[round(100 * part / sum(counts)) for part in counts] for counts in shares.values()]
    assert [part[2] for part in parts] == [70, 80, 81]
    assert "70 to 81% are in the feed-forward networks." in PROSE
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
    assert f"{fits[0]} with eight heads of keys, {fits[1]} with thirty-two." in PROSE


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
    check("the four means lie within 0.04 nats,", max(means.values()) - min(means.values()))
    check("differ by up to 0.05.", noise)
    tuned = {way: sum(run[1] for run in runs) / len(runs) for way, runs in RECORD["conversion"].items()}
    check(
        "2.29 for the mean and 2.20 for the first, against 2.46.", tuned["mean 2"], tuned["first 2"], tuned["fresh 2"]
    )
    check("far from the 1.78 of the model", means["8"])
    for heads in (1, 2):
        assert tuned[f"first {heads}"] < tuned[f"mean {heads}"] < tuned[f"fresh {heads}"]


def test_every_number_of_the_text_stands_in_a_phrase_that_is_checked_or_given() -> None:
    assert LESSON.unchecked(__file__) == []


def test_arithmetic_of_the_text_is_right() -> None:
    assert 14_336 == 3.5 * 4_096
    assert pytest.approx(3.8e25, rel=0.01) == 6 * 405e9 * 15.6e12
    assert pytest.approx(500e12, rel=0.02) == 6 * 405e9 * 15.6e12 / (54 * 86_400 * 16_384)
    assert round(989 / 3.35) == 295
    assert [f"{n:,}" in PROSE for n in (128_256, 28_672, 53_248)] == [True] * 3
