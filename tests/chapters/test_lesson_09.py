"""The lesson of chapter 09 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import math
import re
from functools import partial
from statistics import mean
from typing import Any

import pytest
import torch

import tfcourse.gpt
from tfcourse.data import BOS, EOS, PAD, number_to_words, recorded_gpt, recorded_writing
from tfcourse.gpt import BESIROGLU_2024, Gpt, chinchilla_loss, chinchilla_optimal, next_token_loss
from tfcourse.lessons.figures.scenes import ch09_gpt as drawings
from tfcourse.number_names import NumberNames

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "everything": "[len(all_texts), everything]",
    "underflow": "[underflow, total]",
    "uniform": "[by_hand, uniform]",
    "differences": "[block_difference, apart, loaded_apart, *moved[:4]]",
    "choices": "[dict(zip(pieces, surprisal.exp().tolist())), of_name]",
    "by_loop": "names.is_name(tokens[0, 1:-1].tolist())",
    "cached": "again / read",
    "optimum": "[best_size, searched, small, short]",
    "moved": "moved[4:]",
    "grown": "list(grown.values())",
    "training": "[least, losses[0], unseen_loss]",
    "valid": "list(valid.values())",
    "seconds": "[seconds[False], seconds[True], result.shape[1]]",
    "totals": "{name: count.total for name, count in counted.items()}",
    "shares": "[counted['GPT-2'].tokens / counted['GPT-2'].total, counted['GPT-3'].blocks / counted['GPT-3'].total]",
    "famous": "{name: [n, d, chinchilla_loss(n, d)] for name, (n, d) in FAMOUS.items()}",
    "late": "{' '.join(key): means.tolist() for key, means in late.items()}",
}
# Numbers of the prose that come from the papers it cites, or are settings of the code next to them.
GIVEN = """
29.41 22.76 19.93 18.34 1,542 175.0 76.9 99.6 100.0 34.2 65.5 80.4 4.0 14.0 25.5 0.7 3.5 9.3 2.6 0.1 3.35 1.5 1,000 1,250 3,000
3,072 1,024 4,096 1,600 6,400 12,288 49,152 2,048 175,000
"""

LESSON = Lesson("09_gpt", ASKED, GIVEN)
RECORD = recorded_gpt()
NAMES = NumberNames()


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def test_drawn_texts_are_names_of_numbers() -> None:
    ids = {token: number for number, token in enumerate(NAMES.vocabulary.tokens)}
    gap = tuple(drawings.HIDDEN if word == "[MASK]" else word for word in drawings.GAPPED)
    for words in (drawings.SENTENCE[:-1], drawings.READ[1:], gap, (*drawings.OLD, *drawings.NEW, "one")):
        assert NAMES.is_name([ids[word] for word in words]), words
    solved = [*drawings.SOLVED, (drawings.ASKED, " ".join(drawings.ANSWER))]
    assert [number_to_words(int(number), "en") for number, _ in solved] == [name for _, name in solved]


# ------------------------------------------------------------------------------------------- its numbers


def test_all_texts_together_have_a_probability_of_one(values: dict[str, Any]) -> None:
    assert values["everything"] == [81, pytest.approx(1, abs=1e-5)]


def test_a_product_is_rounded_to_zero_where_a_sum_is_not(values: dict[str, Any]) -> None:
    assert values["underflow"] == [0, pytest.approx(400 * math.log(0.05), rel=1e-4)]
    assert torch.full((34,), 0.05).prod() > torch.full((35,), 0.05).prod() == 0


def test_loss_by_hand_is_the_functions_and_a_model_that_knows_nothing_has_the_perplexity_of_its_vocabulary(
    values: dict[str, Any],
) -> None:
    assert values["uniform"] == pytest.approx([math.log(12)] * 2)


def test_what_the_page_computes_in_two_ways_agrees_and_the_future_moves(values: dict[str, Any]) -> None:
    assert max(values["differences"]) < 1e-4
    assert min(values["moved"]) > 1e-3


def test_stream_grows_where_the_maps_are_not_drawn_smaller(values: dict[str, Any]) -> None:
    smaller, alike = values["grown"]
    assert smaller < 2 < 10 < alike, "one does not even double, the other grows more than tenfold"


def test_choices_are_one_where_the_grammar_decides_and_ten_at_a_digit(values: dict[str, Any]) -> None:
    choices, product = values["choices"]
    assert max(choices["hundred"], choices["and"]) < 1.1
    assert all(6 < choices[digit] < 16 for digit in ("six", "two", "thirty-", "##one"))
    assert choices["thousand,"] == max(choices.values())
    assert 4e5 < product < 2.5e6


def test_model_comes_near_the_line_that_nobody_passes_and_writes_names(values: dict[str, Any]) -> None:
    least, first, unseen = values["training"]
    assert least < unseen < least + 0.1 < 3 < first, "within a tenth"
    cool, own, hot = values["valid"]
    assert min(cool, own) > 0.85, "more than the masked model of chapter 08"
    assert hot < own


def test_recorded_race_is_told_as_it_was() -> None:
    race = RECORD["prose"]
    seconds = {step: seconds for step, seconds, _ in race["curve"]}
    bits = {step: bits for step, _, bits in race["curve"]}
    assert 25 < seconds[100] < 40, "half a minute"
    assert 870 < seconds[3000] < 930, "fifteen minutes"
    assert bits[1000] > race["counts"]["3"] > bits[1250], "the GPT passes the trigram"
    assert round(3000 * 16 * 128 / race["tokens"][0]) == 31, "passes over the text"
    assert race["parameters"] == 875_264


def test_the_recorded_text_is_what_the_page_says() -> None:
    writing = recorded_writing()
    for phrase in ("key/value pair", "the value of the value of the value", "Nowhift"):
        assert phrase in writing["text"]
    assert "--temperature 0.5" in writing["command"]
    assert 0.9e6 < writing["parameters"] < 1.1e6, "a million"


def test_cache_gives_the_same_and_is_faster(values: dict[str, Any]) -> None:
    assert values["by_loop"]
    without, with_one, length = values["seconds"]
    assert length == 241
    assert without > with_one > 0
    assert values["cached"] > 200


def test_published_models_are_counted_to_the_last_parameter(values: dict[str, Any]) -> None:
    assert values["totals"] == {
        "GPT-2": 124_439_808,
        "GPT-2 medium": 354_823_168,
        "GPT-2 large": 774_030_080,
        "GPT-2 XL": 1_557_611_200,
        "GPT-3": 174_604_259_328,
    }
    assert values["totals"]["GPT-3"] * 2 > 4 * 80e9, "at least five GPUs"
    tokens, blocks = values["shares"]
    assert 0.3 < tokens < 1 / 3, "nearly a third"
    assert blocks > 0.99


def test_recorded_sizes_are_a_valley() -> None:
    runs = {size: losses for size, _, losses in RECORD["scaling"]["runs"]}
    smallest, good, fair, *_, largest = runs
    assert min(runs[good]) < max(runs[fair])
    assert min(runs[fair]) < max(runs[good]), "cannot tell the two apart"
    assert {good, fair} == set(sorted(runs, key=lambda size: mean(runs[size]))[:2])
    assert min(runs[smallest]) > max(*runs[good], *runs[fair]), "in every run"
    assert min(runs[largest]) > 1 + mean(runs[fair])
    assert round(RECORD["scaling"]["runs"][0][1] / RECORD["prose"]["tokens"][0]) == 15, "times"
    budgets = [6 * parameters * tokens for parameters, tokens, _ in RECORD["scaling"]["runs"]]
    assert budgets == pytest.approx([3e11] * len(runs), rel=0.01)


def test_published_sizes_are_in_proportion() -> None:
    rows = re.findall(r"^\| (?:BERT|GPT)[^|]*((?:\| [\d,]+ ){5})", LESSON.source, flags=re.M)
    assert len(rows) == 6
    for row in rows:
        _, width, heads, head_width, feed_forward = (int(cell) for cell in re.findall(r"\d+", row.replace(",", "")))
        assert (width, feed_forward) == (heads * head_width, 4 * width)


def test_optimum_is_what_a_search_finds_and_balances_the_terms(values: dict[str, Any]) -> None:
    best_size, searched, small, short = values["optimum"]
    assert [best_size, small] == pytest.approx([searched, short], rel=1e-6)


def test_famous_models_are_as_far_from_the_best_as_is_said(values: dict[str, Any]) -> None:
    gpt3, gopher, chinchilla, llama = values["famous"].values()
    assert max(tokens / size for size, tokens, _ in (gpt3, gopher)) < 2
    assert llama[2] > gpt3[2], "a higher loss"
    assert chinchilla[2] < gopher[2]
    assert gopher[0] == 4 * chinchilla[0]
    assert chinchilla[1] > 4 * gopher[1]


def test_examples_add_fewer_points_the_longer_the_numbers_are_from_three_digits_on() -> None:
    two, *added = (100.0 - 76.9, 80.4 - 34.2, 25.5 - 4.0, 9.3 - 0.7)
    assert two < added[0] == max(added)
    assert added == sorted(added, reverse=True)


def test_two_layers_learn_from_a_text_that_repeats_and_from_nothing_else(values: dict[str, Any]) -> None:
    late = values["late"]
    assert max(late["2 repeated"]) < min(late["1 repeated"]) < math.log(64) < min(late["2 fresh"]), "in every run"


def test_recorded_habits_do_not_help() -> None:
    care, one_rate = (
        {labels: RECORD["finetuning"][labels][way] for labels in ("32", "128", "512")}
        for way in ("with care", "one rate")
    )
    for labels in ("32", "128"):
        assert min(care[labels]) < max(one_rate[labels]), "level"
        assert min(one_rate[labels]) < max(care[labels]), "level"
    assert max(care["512"]) < min(one_rate["512"]), "worse in every run"


def test_without_a_mask_the_loss_falls_below_the_least_possible_and_no_names_are_written(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    unmasked = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(tfcourse.gpt, "cached_attention", lambda q, k, v, _: (unmasked(q, k, v), (k, v)))
    torch.manual_seed(0)
    texts = NAMES.batch(torch.randperm(1_000_000)[:4000].tolist())
    model = Gpt(len(NAMES.vocabulary), 16, d_model=64, n_heads=4, n_layers=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(200):
        batch = texts[torch.randint(len(texts), (64,))]
        loss = next_token_loss(model(batch)[0], batch, pad=PAD)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    assert loss < 0.5 * values["training"][0], "below the least possible loss"
    rows = torch.full((200, 1), BOS)
    with torch.no_grad():
        for _ in range(12):
            rows = torch.cat([rows, torch.multinomial(model(rows)[0][:, -1].softmax(-1), 1)], dim=1)
    written = [row[1 : row.index(EOS)] if EOS in row else row[1:] for row in rows.tolist()]
    longer = [row for row in written if len(row) > 1]
    assert len(longer) > 20
    assert not any(NAMES.is_name(row) for row in longer), "a single word may happen to be one"


def test_a_model_that_is_used_more_is_cheapest_smaller() -> None:
    c = BESIROGLU_2024
    best, text = chinchilla_optimal(5.76e23, c)
    left = chinchilla_loss(best, text, c) - c["E"]

    def cost(size: float, use: float) -> float:
        """FLOP of training to the same loss, and of use."""
        for_text = left - c["A"] / size ** c["alpha"]
        return 6 * size * (c["B"] / for_text) ** (1 / c["beta"]) + 2 * size * use if for_text > 0 else math.inf

    sizes = [best * 1.02**i for i in range(-60, 40)]
    cheapest = [min(sizes, key=partial(cost, use=use)) for use in (0.0, 1e12, 1e13)]
    assert cheapest[0] == pytest.approx(best, rel=0.03)
    assert cheapest[0] > cheapest[1] > cheapest[2]
