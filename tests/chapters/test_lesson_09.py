"""The lesson of chapter 09 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import math
import re
from statistics import mean
from typing import Any

import pytest
import torch

from tfcourse.data import BOS, EOS, PAD, number_to_words, recorded_gpt, recorded_writing
from tfcourse.gpt import BESIROGLU_2024, chinchilla_loss, chinchilla_optimal, next_token_loss
from tfcourse.layers import EncoderLayer
from tfcourse.lessons.figures.scenes import ch09_gpt as drawings
from tfcourse.number_names import NumberNames

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "V": "V",
    "everything": "[len(all_texts), everything]",
    "underflow": "[underflow, total]",
    "uniform": "[by_hand, uniform]",
    "block": "[block_difference, apart]",
    "choices": "[dict(zip(pieces, surprisal.exp().tolist())), of_name]",
    "by_loop": "names.is_name(tokens[0, 1:-1].tolist())",
    "waits": "waits",
    "cached": "[again, read]",
    "optimum": "[best_size, searched, small, short]",
    "bert": "[bert_parameters(30_522, d, n, 4 * d, pooler=True).total for d, n in ((768, 12), (1024, 24))]",
    "moved": "moved",
    "grown": "grown",
    "training": "[least, losses[0], unseen_loss, parameters]",
    "valid": "{str(heat): share for heat, share in valid.items()}",
    "bits": "[one_byte_each, larger_pieces]",
    "seconds": "[seconds[False], seconds[True], result.shape[1]]",
    "caches": "[of_gpt2, of_gpt3]",
    "totals": "{name: count.total for name, count in counted.items()}",
    "shares": "[counted['GPT-2'].tokens / counted['GPT-2'].total, counted['GPT-3'].tokens / counted['GPT-3'].total]",
    "of_rule": "of_rule",
    "cost": "[flops, years]",
    "per_parameter": "per_parameter",
    "famous": "{name: [n, d, chinchilla_loss(n, d)] for name, (n, d) in FAMOUS.items()}",
    "last_rates": "last_rates",
    "loaded": "loaded_apart",
}
# Numbers of the prose that come from the papers it cites, or are settings of the code next to them.
GIVEN = {
    "reach perplexities of 29.41, 22.76, 19.93 and 18.34 on WikiText-2,",
    "which gives 117M, 345M, 762M and 1,542M:",
    "the rounded 175.0 billion was published",
    "| two digits | 76.9 | 99.6 | 100.0 |",
    "| three digits | 34.2 | 65.5 | 80.4 |",
    "| four digits | 4.0 | 14.0 | 25.5 |",
    "| five digits | 0.7 | 3.5 | 9.3 |",
    "learn more slowly, by a factor of 2.6 from",
    "$p(\\text{is} \\mid h') = 0.1$",
    "$3.35 \\cdot 10^{12}$ bytes per second.",
}

LESSON = Lesson("09_gpt", ASKED, GIVEN, beside=r"\| (?:BERT|GPT)[\w -]* \| \d+ \|[^M]*M \|")
SOURCE, PROSE, check = LESSON.source, LESSON.prose, LESSON.check
RECORD = recorded_gpt()


# ---------------------------------------------------------------------------------------------- the page


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def test_explorer_shows_the_text_and_what_it_costs(pages: list[str]) -> None:
    (page,) = [page for page in pages if page.startswith("<cache-explorer")]
    data = json.loads(re.search(r"<script[^>]*>(.*?)</script>", page)[1])  # type: ignore[index]
    ratios = [without / with_one for without, with_one, _ in data["steps"]]
    assert ratios == sorted(ratios), "it grows with the text"
    tokens = [NumberNames().vocabulary.tokens.index(word) for word in data["words"]]
    assert NumberNames().is_name(tokens)


def test_drawn_texts_are_names_of_numbers() -> None:
    names = NumberNames()
    ids = {token: number for number, token in enumerate(names.vocabulary.tokens)}
    gap = tuple(drawings.HIDDEN if word == "[MASK]" else word for word in drawings.GAPPED)
    for words in (drawings.SENTENCE[:-1], drawings.READ[1:], gap, (*drawings.OLD, *drawings.NEW, "one")):
        assert names.is_name([ids[word] for word in words]), words
    solved = [*drawings.SOLVED, (drawings.ASKED, " ".join(drawings.ANSWER))]
    assert [number_to_words(int(number), "en") for number, _ in solved] == [name for _, name in solved]


# ------------------------------------------------------------------------------------------- its numbers


def test_all_texts_together_have_a_probability_of_one(values: dict[str, Any]) -> None:
    assert values["everything"] == [81, pytest.approx(1, abs=1e-5)]


def test_a_product_is_rounded_to_zero_where_a_sum_is_not(values: dict[str, Any]) -> None:
    underflow, total = values["underflow"]
    assert underflow == 0
    assert total == pytest.approx(400 * math.log(0.05), rel=1e-4)
    assert "It underflows after 35 tokens," in PROSE
    assert torch.full((35,), 0.05).prod().item() == 0
    assert torch.full((34,), 0.05).prod().item() > 0


def test_loss_by_hand_is_the_functions_and_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary(
    values: dict[str, Any],
) -> None:
    by_hand, function = values["uniform"]
    assert by_hand == pytest.approx(function) == pytest.approx(math.log(12))


def test_past_does_not_move_when_the_future_does(values: dict[str, Any]) -> None:
    assert max(values["moved"][:4]) < 1e-5
    assert min(values["moved"][4:]) > 1e-3


def test_lessons_of_a_pass_are_counted() -> None:
    assert "About 77 for BERT, 15 % of them, and 511 for GPT," in PROSE
    assert round(0.15 * 512) == 77
    assert 6.5 < 511 / 77 < 7


def test_stream_grows_where_the_maps_are_not_drawn_smaller(values: dict[str, Any]) -> None:
    smaller, alike = values["grown"]["o_proj and down_proj smaller"], values["grown"]["all drawn alike"]
    assert alike > 10, "more than tenfold"
    assert smaller < 2, "does not even double"


def test_block_line_by_line_is_the_block_and_the_cache_gives_the_rows_of_the_whole_text(values: dict[str, Any]) -> None:
    assert max(values["block"]) < 1e-5


def test_choices_are_one_where_the_grammar_decides_and_ten_at_a_digit(values: dict[str, Any]) -> None:
    choices, product = values["choices"]
    assert max(choices["hundred"], choices["and"]) < 1.1
    for digit in ("six", "two", "thirty-", "##one"):
        assert 6 < choices[digit] < 16, digit
    assert choices["thousand,"] == max(choices.values())
    assert 4e5 < product < 2.5e6


def test_model_comes_near_the_line_that_nobody_passes(values: dict[str, Any]) -> None:
    least, first, unseen, _ = values["training"]
    assert least < unseen < least + 0.1, "within a tenth"
    assert first > 3
    assert values["V"] == 54


def test_names_are_written_at_the_model_s_own_temperature(values: dict[str, Any]) -> None:
    valid = values["valid"]
    assert valid["1.0"] > 0.85, "more than the masked model of chapter 08"
    assert valid["0.5"] > 0.85
    assert valid["1.5"] < valid["1.0"]


def test_bits_of_bytes(values: dict[str, Any]) -> None:
    assert values["bits"][0] == pytest.approx(8)
    assert values["bits"][1] == pytest.approx(4 / math.log(2) / 4)
    check(
        "looks worse than 1.5 nats per byte. It is better: 1.44 bits per byte against 2.16.",
        values["bits"][1],
        1.5 / math.log(2),
    )
    check("the formula gives $(4 + 2 \\cdot 0.1) / (6 + 2) = 0.525$.", (4 + 2 * 0.1) / 8, form=".3f")
    assert round(math.exp(4)) == 55


def test_recorded_race_is_told_as_it_was() -> None:
    race = RECORD["prose"]
    curve = {step: (seconds, bits) for step, seconds, bits in race["curve"]}
    for name, order in (("one token of context", "2"), ("two tokens: the trigram", "3"), ("three tokens", "4")):
        assert f"| counts, {name} | a second | {race['counts'][order]:.3f} |" in PROSE
    check("| counts, one token of context | a second | 2.285 |")
    check("| counts, two tokens: the trigram | a second | 1.845 |")
    check("| counts, three tokens | a second | 1.843 |")
    check("| GPT after 100 steps | half a minute | 2.74 |", curve[100][1])
    assert 25 < curve[100][0] < 40
    check("the GPT passes the trigram between step 1,000 and step 1,250.", 1000, 1250, form=",d")
    assert curve[1000][1] > race["counts"]["3"] > curve[1250][1]
    check("| GPT after 3,000 steps | fifteen minutes | 1.69 |", curve[3000][1])
    _, tokens, n_bytes = race["tokens"]
    check("its perplexity is 14.3 per token,", 2 ** (curve[3000][1] * n_bytes / tokens), form=".1f")
    assert "after thirty-one passes over the text" in PROSE
    assert round(3000 * 16 * 128 / race["tokens"][0]) == 31
    assert 870 < curve[3000][0] < 930, "fifteen minutes"
    assert race["parameters"] == 875_264


def test_a_checkpoint_s_thirds_are_queries_keys_and_values(values: dict[str, Any]) -> None:
    assert values["loaded"] < 1e-4


def test_the_recorded_text_is_what_the_page_says() -> None:
    writing = recorded_writing()
    assert "key/value pair" in writing["text"]
    assert "the value of the value of the value" in writing["text"], "one phrase repeats itself"
    assert "Nowhift" in writing["text"], "some words are invented"
    assert "--temperature 0.5" in writing["command"]
    assert '"temperature", {"t": 0.5}' in SOURCE
    assert 0.9e6 < writing["parameters"] < 1.1e6, "a million"


def test_cache_gives_the_same_and_is_faster(values: dict[str, Any]) -> None:
    assert values["by_loop"]
    without, with_one, length = values["seconds"]
    assert length == 241
    assert without > with_one > 0


def test_caches_are_counted(values: dict[str, Any]) -> None:
    of_gpt2, of_gpt3 = values["caches"]
    assert of_gpt2 / 2**20 == 36
    assert of_gpt3 / 2**30 == 9
    assert "GPT-3 needs 9 GiB per full-length text," in PROSE


def test_published_models_are_counted_to_the_last_parameter(values: dict[str, Any]) -> None:
    totals = values["totals"]
    assert totals == {
        "GPT-2": 124_439_808,
        "GPT-2 medium": 354_823_168,
        "GPT-2 large": 774_030_080,
        "GPT-2 XL": 1_557_611_200,
        "GPT-3": 174_604_259_328,
    }
    assert [round(total / 1e6) for total in values["bert"]] == [109, 335]
    assert "| 109M |" in PROSE
    assert "| 335M |" in PROSE
    assert f"| {totals['GPT-2 XL'] / 1e6:,.0f}M |" in PROSE
    assert "| 124M |" in PROSE
    assert 0.3 < values["shares"][0] < 1 / 3, "nearly a third"
    assert values["shares"][1] < 0.01, "more than 99 %"
    assert values["of_rule"]["GPT-3"] > 0.99


def test_training_gpt3_is_counted(values: dict[str, Any]) -> None:
    flops, years = values["cost"]
    assert flops == pytest.approx(3.143e23, rel=1e-3)
    assert years == pytest.approx(flops / 1e13 / 31_536_000)


def test_recorded_sizes_are_a_valley() -> None:
    runs = {size: losses for size, _, losses in RECORD["scaling"]["runs"]}
    means = {size: mean(losses) for size, losses in runs.items()}
    smallest, good, fair, *_, largest = runs
    check("| 16,832 | 2,969,600 | 3.81 |", means[smallest])
    check("| 29,856 | 1,675,264 | 3.73 |", means[good])
    check("| 45,952 | 1,087,488 | 3.74 |", means[fair])
    check("| 285,312 | 176,128 | 5.18 |", means[largest])
    for size, tokens, _ in RECORD["scaling"]["runs"]:
        assert size not in (smallest, good, fair, largest) or f"| {size:,} | {tokens:,} |" in PROSE
    assert min(runs[good]) < max(runs[fair])
    assert min(runs[fair]) < max(runs[good]), "cannot tell the two apart"
    assert {good, fair} == set(sorted(means, key=lambda size: means[size])[:2])
    assert min(runs[smallest]) > max(*runs[good], *runs[fair]), "in every run"
    assert min(runs[largest]) > 1 + means[fair]
    check("ours has only 196,352 tokens,", RECORD["prose"]["tokens"][0], form=",d")
    assert round(2_969_600 / 196_352) == 15
    assert RECORD["scaling"]["flops"] == 3e11
    for parameters, tokens, _ in RECORD["scaling"]["runs"]:
        assert 6 * parameters * tokens == pytest.approx(3e11, rel=0.01)


def test_published_sizes_are_in_proportion() -> None:
    rows = re.findall(r"^\| (?:BERT|GPT)[^\n]*\|$", SOURCE, flags=re.M)
    table = [row.split(" | ") for row in rows if "both sides" in row or "| left |" in row]
    assert len(table) == 6
    for _, _, *numbers in ([cell.replace(",", "") for cell in row] for row in table):
        width, heads, head_width, feed_forward = map(int, numbers[:4])
        assert width == heads * head_width
        assert feed_forward == 4 * width
    cells = {row[0].strip("| "): [int(cell.replace(",", "")) for cell in row[1:7]] for row in table}
    assert cells["BERT-Base"] == [12, 768, 12, 64, 3072, 512]
    assert cells["BERT-Large"] == [24, 1024, 16, 64, 4096, 512]
    assert cells["GPT-3"] == [96, 12_288, 96, 128, 49_152, 2048]


def test_tokens_cost_what_the_text_says(values: dict[str, Any]) -> None:
    check("4,608 tokens for GPT-2 and 73,728 for GPT-3,", 6 * 768, 6 * 12_288, form=",d")
    for computing, reading in values["waits"].values():
        assert round(reading / computing) == 295
    assert 4 < values["totals"]["GPT-3"] * 2 / 80e9 < 5, "at least five GPUs"
    check("which is about 0.35 s of arithmetic", values["waits"]["GPT-3"][0])
    check("Reading the parameters takes 0.10 s", values["waits"]["GPT-3"][1] / 1e3)
    again, read = values["cached"]
    assert again == pytest.approx(values["waits"]["GPT-3"][0] / 1e3)
    assert again > 200 * read


def test_optimum_is_what_a_search_finds_and_balances_the_terms(values: dict[str, Any]) -> None:
    best_size, searched, small, short = values["optimum"]
    assert best_size == pytest.approx(searched, rel=1e-9)
    assert small == pytest.approx(short)


def test_rule_of_twenty_does_not_follow_from_the_printed_constants(values: dict[str, Any]) -> None:
    assert "the optimum for Chinchilla's budget has 93 tokens per parameter." in PROSE
    assert "got constants that give 18." in PROSE
    assert {name: round(value) for name, value in values["per_parameter"].items()} == {"printed": 93, "corrected": 18}


def test_famous_models_are_as_far_from_the_best_as_is_said(values: dict[str, Any]) -> None:
    famous = values["famous"]
    ratios = {name: d / n for name, (n, d, _) in famous.items()}
    assert ratios["GPT-3"] < 2
    assert ratios["Gopher"] < 2
    check("it read 1,875 tokens per parameter", ratios["Llama 3 8B"], form=",.0f")
    assert famous["Llama 3 8B"][2] > famous["GPT-3"][2], "a higher loss"
    assert famous["Chinchilla"][2] < famous["Gopher"][2]
    assert famous["Gopher"][0] == 4 * famous["Chinchilla"][0]
    assert famous["Chinchilla"][1] > 4 * famous["Gopher"][1]


def test_examples_add_fewer_points_the_longer_the_numbers_are_from_three_digits_on() -> None:
    rows = re.findall(r"^\| (?:two|three|four|five) digits \| ([\d.]+) \| [\d.]+ \| ([\d.]+) \|$", SOURCE, flags=re.M)
    two, *added = [float(few) - float(zero) for zero, few in rows]
    assert len(added) == 3
    assert added == sorted(added, reverse=True)
    assert two < added[0], "from three digits on"


def test_paper_s_triangle_ends_below_zero(values: dict[str, Any]) -> None:
    theirs, ours = values["last_rates"]
    assert theirs < 0 < ours


def test_recorded_habits_do_not_help() -> None:
    table = RECORD["finetuning"]
    for labels in ("32", "128"):
        care, one_rate = table[labels]["with care"], table[labels]["one rate"]
        assert min(care) < max(one_rate), "level"
        assert min(one_rate) < max(care), "level"
    assert max(table["512"]["with care"]) < min(table["512"]["one rate"]), "worse in every run"
    assert all(len(runs) == 3 for row in table.values() for runs in row.values())


def test_after_six_a_hundred_times_more_names_go_on_with_hundred() -> None:
    check("100,100 names go on with hundred and only 1,000 with thousand", 100 + 100 * 1000, 1000, form=",d")


class Unmasked(torch.nn.Module):
    """The lesson's model, up to details, without its causal mask."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.token, self.position = torch.nn.Embedding(vocab_size, 64), torch.nn.Embedding(16, 64)
        for table in (self.token, self.position):
            torch.nn.init.normal_(table.weight, std=0.02)
        self.layers = torch.nn.ModuleList(EncoderLayer(64, 4, 256, pre_norm=True) for _ in range(2))
        self.norm = torch.nn.LayerNorm(64)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return torch.nn.functional.linear(self.norm(x), self.token.weight)


def test_without_a_mask_the_loss_falls_below_the_least_possible_and_no_names_are_written(
    values: dict[str, Any],
) -> None:
    names = NumberNames()
    torch.manual_seed(0)
    texts = names.batch(torch.randperm(1_000_000)[:4000].tolist())
    model = Unmasked(len(names.vocabulary))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(200):
        batch = texts[torch.randint(len(texts), (64,))]
        loss = next_token_loss(model(batch), batch, pad=PAD)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert loss < 0.5 * values["training"][0], "below the least possible loss"
    rows = torch.full((50, 1), BOS)
    with torch.no_grad():
        for _ in range(12):
            rows = torch.cat([rows, torch.multinomial(model(rows)[:, -1].softmax(-1), 1)], dim=1)
    written = [row[1 : row.index(EOS)] if EOS in row else row[1:] for row in rows.tolist()]
    assert sum(names.is_name(row) for row in written) <= 5


def test_a_model_that_is_used_more_is_cheapest_smaller() -> None:
    c = BESIROGLU_2024
    best, text = chinchilla_optimal(5.76e23, c)
    target = chinchilla_loss(best, text, c)
    sizes = [best * 1.02**i for i in range(-60, 40)]
    cheapest = []
    for use in (0.0, 1e12, 1e13):
        costs = {}
        for size in sizes:
            left = target - c["E"] - c["A"] / size ** c["alpha"]
            if left > 0:
                tokens = (c["B"] / left) ** (1 / c["beta"])
                costs[6 * size * tokens + 2 * size * use] = size
        cheapest.append(costs[min(costs)])
    assert cheapest[0] == pytest.approx(best, rel=0.03)
    assert cheapest[0] > cheapest[1] > cheapest[2]
