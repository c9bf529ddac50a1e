"""The lesson of chapter 10 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import math
from statistics import mean
from typing import Any

import pytest
import torch

from tfcourse.data import recorded_t5
from tfcourse.lessons.explorers.spans import span_explorer
from tfcourse.lessons.figures.scenes import ch10_t5 as drawings
from tfcourse.t5 import T5, random_span_mask, relative_position_bucket

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "ours": "ours",
    "texts": "[score_to_text(2.5), text_to_score('chicken')]",
    "restored": "[words[i] for i in restored]",
    "by_hand": "[words, noise.int().tolist(), drawings.WORDS, drawings.HIDDEN]",
    "parts": "[hidden_parts, kept_parts, mask.int().tolist()]",
    "corrupted": "[int(hidden.sum()), spans, len(source), len(target)]",
    "numbers": "numbers",
    "counts": "[seen.count(drawn) for drawn in set(seen)]",
    "seen": "seen",
    "stacks": "[count.decoder / count.encoder for count in counted.values()]",
    "firsts": "[firsts_both, firsts_back]",
    "buckets": "both[torch.tensor([140, 141, 49, 231, 120])].tolist()",
    "difference": "difference",
    "decoder": "[list(step_logits.shape), gap, following.item()]",
    "answers": "[answer(f'translate English to {language}: {number}') for language in LANGUAGES]",
    "prefixes": "[hits[at_the_end], hits['{}']]",
    "right": "[sum(right[:60]), sum(right[60:]), number in {text.split(': ')[1] for text, _ in lessons_read}]",
    "first_losses": "list(first_losses.values())",
    "repeats": "repeats",
    "quarter": "[F == 4 * H * Dh for D, H, Dh, F, L in SIZES.values()]",
    "moved": "[moved[0.0], moved[1.0]]",
    "mean_square": "mean_square",
    "entropies": "[entropies[1], entropies[8]]",
    "deviations": "[deviations[1], deviations[8]]",
    "totals": "{name: count.total for name, count in counted.items()}",
    "shapes": "[list(bias.shape), list(memory.shape), list(logits.shape), list(bucket.shape)]",
}
# Numbers of the prose that come from the T5 paper (tables 1, 2, 4 to 7, 12), are settings of the code, or are worked out on the spot.
GIVEN = """
83.28 80.88 26.98 82.81 80.63 26.72 84.44 81.82 78.94 26.43 74.70 61.14 25.09 0.235 80.69 73.17 82.96 81.27 83.49 39.82 66.22 50.31 39.77
0.090 81.42 83.11 0.2 0.0 5.0 2.5 2.6 2.4 3.8 32,128 32,099 32,098 0.15 76.8 25.67 1,500 1,000 1.1 4,500 3,072 2,048
"""

LESSON = Lesson("10_t5", ASKED, GIVEN)
RECORD = recorded_t5()


# ---------------------------------------------------------------------------------------------- the page


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def test_drawn_answer_is_what_the_drawn_text_hides() -> None:
    source, target = drawings._source_and_target()
    hidden = [word for word, gone in zip(drawings.WORDS, drawings.HIDDEN, strict=True) if gone]
    assert [word for word, tone in target if tone == "query"] == hidden
    assert [word for word, tone in source if tone == "key"] == list(drawings.SENTINELS[:-1])
    assert " ".join(word for word, _ in target) == "<0> to Lyon <1> six <2> two <3>"


def test_drawn_buckets_are_those_that_their_caption_names() -> None:
    offsets, buckets = drawings._offsets_of(len(drawings.OFFSET_WORDS))
    assert offsets[1] == [-1, 0, 1, 2, 3]
    assert buckets[1] == [1, 0, 17, 18, 19]


def test_masks_of_figure_10_3_all_differ() -> None:
    masks = span_explorer(drawings.WORDS, caption="c", seed=4).drawn
    assert len(set(masks)) == 4


# ------------------------------------------------------------------------------------------- its numbers


def test_three_machines_are_counted(values: dict[str, Any]) -> None:
    assert values["ours"] == {"BERT-Base": 109_482_240, "GPT-2": 124_439_808, "T5-Base": 222_903_552}


def test_scores_are_written_and_read(values: dict[str, Any]) -> None:
    assert values["texts"] == ["2.6", None]
    assert round((5 - 0) / 0.2) + 1 == 26
    assert round((5 - 1) / 0.2) + 1 == 21


def test_corrupted_text_has_the_lengths_that_are_told(values: dict[str, Any]) -> None:
    words, noise, drawn, gone = values["by_hand"]
    assert words == list(drawn)
    assert noise == [int(hidden) for hidden in gone], "the loop hides what Figure 10.3 hides"
    assert values["restored"] == [word for word in words if word != "two"], "the span that the answer lacks"
    assert values["corrupted"] == [77, 26, 461, 104]


def test_published_differences_are_those_of_the_table() -> None:
    assert pytest.approx(2, abs=0.01) == (83.28 - 82.81) / 0.235, "two standard deviations between runs"
    assert (83.28 - 81.27) / (83.28 - 80.69) > 0.7, "hiding 50% loses most of that"
    assert 83.49 - 82.96 < 3 * 0.235, "the rows at 15% lie close together"
    assert pytest.approx(10, abs=0.5) == (82.96 - 80.69) / 0.235, "about ten standard deviations"
    assert pytest.approx(17, abs=0.1) == 83.28 - 66.22
    assert pytest.approx(30, abs=0.6) == 80.88 - 50.31
    assert abs(39.82 - 39.77) < 0.090


def test_price_of_spans_is_compared_with_bert_and_a_full_rewrite() -> None:
    source, target, whole = 461, 104, 512
    scores = source**2 + target**2 + source * target
    assert scores > whole**2, "not cheaper than BERT"
    assert scores < 2 * whole**2 + whole**2, "cheaper than a decoder that writes all of it"


def test_spans_hide_the_same_number_and_coins_do_not(values: dict[str, Any]) -> None:
    least, most = values["numbers"]["a coin for each token"]
    assert least < most
    assert values["numbers"]["counted spans"] == [12, 12]
    hidden, kept, mask = values["parts"]
    assert (len(hidden), sum(hidden), len(kept), sum(kept)) == (4, 12, 4, 28)
    assert min(hidden + kept) >= 1
    drawn = random_span_mask(40, torch.Generator().manual_seed(0), noise_density=0.3)
    assert mask == drawn.int().tolist(), "the cell does what the function does"


def test_all_masks_come_equally_often(values: dict[str, Any]) -> None:
    counts = values["counts"]
    assert len(counts) == 8 == 2 * 4
    assert sum(counts) == 800
    assert min(counts) > 60
    assert max(counts) < 140


def test_masks_begin_kept_and_end_hidden(values: dict[str, Any]) -> None:
    masks = [random_span_mask(40, torch.Generator().manual_seed(seed)) for seed in range(50)]
    assert not any(mask[0] for mask in masks)
    assert all(mask[-1] for mask in masks)
    assert all((mask[0], mask[-1]) == (0, 1) for mask in values["seen"])


def test_squares_in_half_precision_give_zeros() -> None:
    row = torch.tensor([300.0, 400.0], dtype=torch.float16)
    assert (row * torch.rsqrt(row.square().mean() + 1e-6)).tolist() == [0, 0]


def test_buckets_begin_where_the_text_says(values: dict[str, Any]) -> None:
    both, back = values["firsts"]
    assert both == [0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91]
    assert back[-1] == 113
    assert values["buckets"] == [0, 17, 15, 31, 10]


def test_without_biases_the_encoder_is_blind_to_order_and_the_decoder_is_not(values: dict[str, Any]) -> None:
    without, with_it = values["moved"]
    assert without[0] < 1e-4
    assert min(without[1], *with_it) > 0.05


def test_norm_and_beginnings(values: dict[str, Any]) -> None:
    assert values["mean_square"] == pytest.approx(1, abs=1e-3)
    even, made_up = values["entropies"]
    assert math.exp(even) == pytest.approx(40, abs=4), "about 40 of the 64 keys"
    assert math.exp(made_up) < 2, "fewer than two"
    assert values["deviations"][0] == pytest.approx(1, abs=0.15)
    assert values["deviations"][1] == pytest.approx(8, rel=0.15)


def test_recorded_beginnings_are_told_as_they_were() -> None:
    last = {float(spread): losses[-1] for spread, losses in RECORD["beginnings"].items()}
    assert last[1.0] < last[4.0] < last[8.0]


def test_encoder_in_the_page_is_the_encoder(values: dict[str, Any]) -> None:
    assert values["difference"] < 1e-6


def test_decoder_in_the_page_is_the_decoder(values: dict[str, Any]) -> None:
    shape, gap, following = values["decoder"]
    assert shape == [1, 3, 30]
    assert gap < 1e-5
    assert following in range(30)


def test_one_text_with_two_prefixes_has_two_answers(values: dict[str, Any]) -> None:
    assert values["answers"] == ["dreihunderteinundsiebzig", "trois cent soixante et onze"]
    german, french, known = values["right"]
    assert min(german, french) >= 40, "most of the unseen numbers"
    assert not known, "the number is not among the training pairs"


def test_prefix_works_at_the_end_and_its_absence_costs_the_language(values: dict[str, Any]) -> None:
    (german, french), (guessed_german, guessed_french) = values["prefixes"]
    assert german >= 40
    assert french <= 5
    assert guessed_german + guessed_french < german, "fewer together than with the prefix"


def test_an_untrained_t5_repeats_because_its_matrix_is_tied() -> None:
    torch.manual_seed(0)
    read, written = torch.randint(1000, (2, 8, 20))
    repeats, losses = {}, {}
    for tied in (True, False):
        model = T5(1000, d_model=256, n_heads=4, d_head=64, d_ff=512, n_layers=2, tie_weights=tied)
        with torch.no_grad():
            logits = model(read, written[:, :-1])
        repeats[tied] = (logits.argmax(-1) == written[:, :-1]).float().mean().item()
        losses[tied] = torch.nn.functional.cross_entropy(logits.flatten(0, 1), written[:, 1:].flatten()).item()
    assert repeats[True] > 0.95
    assert repeats[False] < 0.05
    assert losses[False] < losses[True]


def test_far_offsets_occur_in_few_pairs() -> None:
    offsets = torch.arange(512) - torch.arange(512)[:, None]
    assert [int((offsets == offset).sum()) for offset in (511, 1)] == [1, 511]


def test_bucket_16_is_never_used() -> None:
    used = set(relative_position_bucket(torch.arange(-600, 601), bidirectional=True).tolist())
    assert used == set(range(32)) - {16}


def test_first_loss_without_the_factor_is_far_too_large(values: dict[str, Any]) -> None:
    scaled, unscaled = values["first_losses"]
    assert math.log(1000) < scaled < 1.5 * math.log(1000)
    assert unscaled / math.log(1000) == pytest.approx(19, abs=1)
    assert values["repeats"] == 1, "at every position"
    assert 256**0.5 == 16


def test_published_sizes_come_out_to_the_unit(values: dict[str, Any]) -> None:
    assert values["totals"] == {
        "small": 60_506_624,
        "base": 222_903_552,
        "large": 737_668_096,
        "3B": 2_851_598_336,
        "11B": 11_307_321_344,
    }
    assert values["quarter"] == [True] * 5
    assert values["stacks"] == pytest.approx([4 / 3] * 5, rel=1e-4), "less than a ten-thousandth"


def of(labels: int, way: str, task: int) -> list[float]:
    """The shares of a task, over the seeds."""
    return [run["right"][task] for run in RECORD["runs"][str(labels)][way]]


def test_recorded_worth_of_span_corruption_is_told_as_it_was() -> None:
    scratch = {labels: [mean(of(labels, "from scratch", task)) for task in range(3)] for labels in (200, 600, 1500)}
    spans = {labels: [mean(of(labels, "spans first", task)) for task in range(3)] for labels in (200, 600, 1500)}
    for labels in (600, 1500):
        for task in range(3):
            assert max(of(labels, "spans first", task)) < min(of(labels, "from scratch", task)), "every single run"
    better = [(labels, task) for labels in spans for task in range(3) if spans[labels][task] > scratch[labels][task]]
    assert better == [(200, 1)], "German to English with 200 pairs"


def test_shapes_are_those_of_the_table(values: dict[str, Any]) -> None:
    assert values["shapes"] == [[4, 12, 12], [1, 12, 32], [8, 19, 1000], [10, 10]]
