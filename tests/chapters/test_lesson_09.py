"""The lesson of chapter 09 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import json
import math
import re
from statistics import mean
from typing import Any

import pytest
import torch

from tfcourse.data import recorded_gpt
from tfcourse.figures.scenes import ch09_gpt as drawings
from tfcourse.number_names import NumberNames

from .lesson import Lesson, described

# Labels that known mistakes name, and what a student is then told to read.
HEADINGS = {
    "chain-rule": "A product of next tokens",
    "one-pass-many-lessons": "One pass, many lessons",
    "the-gpt-block": "The block",
    "train-on-names": "Train it on names",
    "counts-against-gpt": "A table of counts against a GPT",
    "generating-is-slow": "Generating is slow",
    "how-large-is-gpt": "How large is GPT?",
    "how-large-should-it-be": "How large should it have been?",
    "before-gpt": "Before GPT",
    "shapes-09": "Shapes at a glance",
    "what-goes-wrong-09": "What goes wrong",
}

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "V": "V",
    "everything": "[len(all_texts), everything]",
    "underflow": "[underflow, total]",
    "uniform": "next_token_loss(logits, text, pad=PAD).item() if logits.shape[-1] == 12 else None",
    "moved": "moved",
    "grown": "grown",
    "training": "[least, losses[0], unseen_loss, parameters]",
    "valid": "{str(t): share for t, share in valid.items()}",
    "bits": "[one_byte_each, larger_pieces]",
    "apart": "apart",
    "seconds": "[seconds[False], seconds[True], result.shape[1]]",
    "caches": "[of_gpt2, of_gpt3]",
    "totals": "{name: count.total for name, count in counted.items()}",
    "shares": "[counted['GPT-2'].tokens / counted['GPT-2'].total, counted['GPT-3'].tokens / counted['GPT-3'].total]",
    "of_rule": "of_rule",
    "cost": "[flops, years]",
    "per_parameter": "per_parameter",
    "famous": "{name: [n, d, chinchilla_loss(n, d)] for name, (n, d) in FAMOUS.items()}",
    "last_rates": "last_rates",
}
# Numbers of the prose that come from the papers it cites, or are settings of the code next to them.
GIVEN = {
    "slower it learns, 2.6 times slower",
    "from GPT-3.5 on,",
}

LESSON = Lesson("09_gpt", ASKED, GIVEN)
SOURCE, PROSE, check = LESSON.source, LESSON.prose, LESSON.check
RECORD = recorded_gpt()


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
    assert 3000 <= len(without_folds.split()) <= 6000


def test_lesson_carries_the_header_that_myst_needs() -> None:
    assert LESSON.has_header()


def test_a_picture_comes_before_the_first_heading_of_a_section_and_objectives_too() -> None:
    top = SOURCE[: SOURCE.index("(chain-rule)=")]
    assert "figures.show(drawings." in top
    assert len(re.findall(r"^- ", top, flags=re.M)) in range(3, 6)
    assert "**You need**" in top
    assert "**It takes**" in top


def test_readers_are_asked_to_guess_and_the_answers_are_folded() -> None:
    folded = re.findall(r"^```\{admonition\} Guess: [^\n]*[?.]\n:class: dropdown", SOURCE, flags=re.M)
    asked = re.findall(r"^```\{admonition\} Guess first\n:class: guess.*?\n```\n\n(.*?)\n", SOURCE, flags=re.M | re.S)
    assert len(folded) >= 3
    assert len(asked) >= 3
    for cell in re.findall(
        r"Guess first\n:class: guess.*?\n```\n\n```\{code-cell\} ipython3\n(:tags: .*?)\n", SOURCE, re.S
    ):
        assert "hide-output" in cell


def test_code_that_is_shown_fits_the_page() -> None:
    for tags, code in cell_sources():
        if not {"hide-input", "remove-input"} & set(tags):
            assert len(code.splitlines()) <= 20, code
            assert max(map(len, code.splitlines())) <= 80, code


def test_nothing_is_written_to_stderr(cells: list[Any]) -> None:
    assert not [output.text for cell in cells for output in cell.outputs if output.get("name") == "stderr"]


def test_every_figure_has_a_description_and_a_caption(pages: list[str]) -> None:
    assert described(pages) == [True] * 11
    assert LESSON.captions() == list(range(1, 13))


def test_explorer_shows_the_text_and_what_it_costs(pages: list[str]) -> None:
    (page,) = [page for page in pages if page.startswith("<cache-explorer")]
    data = json.loads(re.search(r"<script[^>]*>(.*?)</script>", page)[1])  # type: ignore[index]
    ratios = [without / with_one for without, with_one, _ in data["steps"]]
    assert ratios == sorted(ratios), "it grows with the text"
    tokens = [NumberNames().vocabulary.tokens.index(word) for word in data["words"]]
    assert NumberNames().is_name(tokens)


def test_drawn_tokens_are_those_of_a_name() -> None:
    words = [*drawings.OLD, *drawings.NEW]
    assert all(word in NumberNames().vocabulary.tokens for word in words)


# ------------------------------------------------------------------------------------------- its numbers


def test_all_texts_together_have_a_probability_of_one(values: dict[str, Any]) -> None:
    assert values["everything"] == [81, pytest.approx(1, abs=1e-5)]


def test_a_product_is_rounded_to_zero_where_a_sum_is_not(values: dict[str, Any]) -> None:
    underflow, total = values["underflow"]
    assert underflow == 0
    assert total == pytest.approx(400 * math.log(0.05), rel=1e-4)
    assert torch.full((35,), 0.05).prod().item() == 0, "after some forty tokens"
    assert torch.full((33,), 0.05).prod().item() > 0


def test_past_does_not_move_when_the_future_does(values: dict[str, Any]) -> None:
    assert max(values["moved"][:4]) < 1e-5
    assert min(values["moved"][4:]) > 1e-3


def test_lessons_of_a_pass_are_counted() -> None:
    assert "About 77 for BERT, 15% of them; 511 for GPT" in PROSE
    assert round(0.15 * 512) == 77
    assert 6.5 < 511 / 77 < 7


def test_stream_grows_where_the_maps_are_not_drawn_smaller(values: dict[str, Any]) -> None:
    smaller, alike = values["grown"]["o_proj and down_proj smaller"], values["grown"]["all drawn alike"]
    assert alike > 4 * smaller
    assert smaller < 4


def test_model_comes_near_the_line_that_nobody_passes(values: dict[str, Any]) -> None:
    least, first, unseen, _ = values["training"]
    assert least < unseen < least + 0.1, "within a few hundredths"
    assert first > 3
    assert values["V"] == 54


def test_names_are_written_at_the_model_s_own_temperature(values: dict[str, Any]) -> None:
    valid = values["valid"]
    assert valid["1.0"] > 0.85, "nine in ten or more"
    assert valid["0.5"] > 0.85
    assert valid["1.5"] < valid["1.0"]


def test_bits_of_bytes(values: dict[str, Any]) -> None:
    assert values["bits"][0] == pytest.approx(8)
    assert values["bits"][1] == pytest.approx(4 / math.log(2) / 4)


def test_recorded_race_is_told_as_it_was() -> None:
    race = RECORD["prose"]
    curve = {step: (seconds, bits) for step, seconds, bits in race["curve"]}
    check("It needs 1.845 bits a byte with two tokens of memory,", race["counts"]["3"], form=".3f")
    check("after 100 steps and half a minute, needs 2.74.", curve[100][1])
    assert 25 < curve[100][0] < 40
    check("It passes the pairs (2.285) before step 400,", race["counts"]["2"], form=".3f")
    assert curve[400][1] < race["counts"]["2"] < curve[200][1]
    check("only between step 1,000 and step 1,250,", 1000, 1250, form=",d")
    assert curve[1000][1] > race["counts"]["3"] > curve[1250][1]
    assert 280 < curve[1000][0] < curve[1250][0] < 380, "some five minutes"
    check("thirty-one times through the text, it needs 1.69.", curve[3000][1])
    assert round(3000 * 16 * 128 / race["tokens"][0]) == 31
    assert 870 < curve[3000][0] < 930, "fifteen minutes"
    check("with three tokens of memory it needs 1.843,", race["counts"]["4"], form=".3f")
    assert race["parameters"] == 875_264


def test_cache_gives_the_same_and_is_faster(values: dict[str, Any]) -> None:
    assert values["apart"] < 1e-5
    without, with_one, length = values["seconds"]
    assert length == 241
    assert without > with_one > 0


def test_caches_are_counted(values: dict[str, Any]) -> None:
    of_gpt2, of_gpt3 = values["caches"]
    assert of_gpt2 / 2**20 == 36
    assert of_gpt3 / 2**30 == 9
    assert "Nine GiB for one reader of GPT-3." in PROSE


def test_published_models_are_counted_to_the_last_parameter(values: dict[str, Any]) -> None:
    totals = values["totals"]
    assert totals == {
        "GPT-2": 124_439_808,
        "GPT-2 medium": 354_823_168,
        "GPT-2 large": 774_030_080,
        "GPT-2 XL": 1_557_611_200,
        "GPT-3": 174_604_259_328,
    }
    check("its own code and everybody since counts 124,439,808.", totals["GPT-2"], form=",d")
    assert 0.3 < values["shares"][0] < 1 / 3, "nearly a third"
    assert values["shares"][1] < 0.01, "hardly any"
    assert values["of_rule"]["GPT-3"] > 0.99


def test_training_gpt3_is_counted(values: dict[str, Any]) -> None:
    flops, years = values["cost"]
    assert flops == pytest.approx(3.143e23, rel=1e-3)
    assert years == pytest.approx(flops / 1e13 / 31_536_000)


def test_recorded_sizes_are_a_valley() -> None:
    runs = RECORD["scaling"]["runs"]
    losses = [loss for _, _, loss in runs]
    best = min(runs, key=lambda run: run[2])
    assert runs.index(best) in range(1, len(runs) - 1)
    check("The best of the six has 45,952 parameters and needs 3.73 nats a token;", best[0], form=",d")
    check("The best of the six has 45,952 parameters and needs 3.73 nats a token;", best[2])
    check("nearly three million tokens, needs 3.81;", losses[0])
    assert 2.9e6 < runs[0][1] < 3e6
    check("with 285,312 parameters and 176,128 tokens,", *runs[-1][:2], form=",d")
    check("has had 86 batches to learn from and needs 5.33.", losses[-1])
    assert runs[-1][1] == 86 * 16 * 128
    assert RECORD["scaling"]["flops"] == 3e11
    for parameters, tokens, _ in runs:
        assert 6 * parameters * tokens == pytest.approx(3e11, rel=0.01)


def test_rule_of_twenty_does_not_follow_from_the_printed_constants(values: dict[str, Any]) -> None:
    assert "has 93 tokens a parameter, not 20." in PROSE
    assert "got constants that give 18" in PROSE
    assert {name: round(value) for name, value in values["per_parameter"].items()} == {"printed": 93, "corrected": 18}


def test_famous_models_are_as_far_from_the_best_as_is_said(values: dict[str, Any]) -> None:
    famous = values["famous"]
    ratios = {name: d / n for name, (n, d, _) in famous.items()}
    assert ratios["GPT-3"] < 2
    assert ratios["Gopher"] < 2
    assert 1900 < ratios["Llama 3 8B"] < 2000, "nearly two thousand"
    assert famous["Chinchilla"][2] < famous["Gopher"][2]
    assert famous["Gopher"][0] == 4 * famous["Chinchilla"][0]
    assert famous["Chinchilla"][1] > 4 * famous["Gopher"][1]


def test_paper_s_triangle_ends_below_zero(values: dict[str, Any]) -> None:
    theirs, ours = values["last_rates"]
    check("with 25 steps its last rate is −0.0018.", -theirs, form=".4f")
    assert theirs < 0 < ours


def test_recorded_care_is_told_as_it_was() -> None:
    table = RECORD["finetuning"]
    means = {labels: {way: mean(runs) for way, runs in row.items()} for labels, row in table.items()}
    check(
        "From scratch nothing is learnt at all, 0.53 at best.", max(max(row["from scratch"]) for row in table.values())
    )
    check(
        "With 32 labels it is ahead on average, 0.63 against 0.58;", means["32"]["with care"], means["32"]["one rate"]
    )
    assert abs(means["128"]["with care"] - means["128"]["one rate"]) < 0.02, "there is no difference"
    check("with 512 it is behind, 0.71 against 0.84,", means["512"]["with care"], means["512"]["one rate"])
    assert max(table["512"]["with care"]) < min(table["512"]["one rate"]), "in every single run"


def test_prose_has_no_number_that_is_not_checked() -> None:
    assert LESSON.unchecked(__file__) == []
