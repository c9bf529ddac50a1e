"""The lesson of chapter 11 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import combinations
from statistics import stdev
from typing import Any

import pytest
import torch
from transformers.models.clip.modeling_clip import image_text_contrastive_loss

from tfcourse.beyond import SelfAttention2d
from tfcourse.data import recorded_vision
from tfcourse.lessons.explorers import reaches
from tfcourse.lessons.explorers.reaches import layers_until_all_met
from tfcourse.vit import patchify, vit_parameters, window_attention

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "corners": "windows[3].tolist()",
    "mask": "[allowed.sum(-1)[3].tolist(), leaked, allowed.tolist()]",
    "loss": "[ours, theirs.item(), match.tolist()]",
    "pooling": "[pooling, gains.mean().item(), half.item()]",
    "reached": "reached",
    "gradients": "sizes",
    "patch": "[patches[1].tolist(), digit[0, :2, 2:4].flatten().tolist(), torch.equal(patches, patchify(digit[None], 2)[0])]",
    "convolution": "[list(words.shape), difference]",
    "vit": "[list(logits.shape), vit_gap]",
    "accuracies": "[small, untrained, tuned]",
    "larger": "list(larger.shape)",
    "decoder": "[list(kinds.shape), list(boxes.shape)]",
    "giou": "[iou.tolist(), giou.tolist()]",
    "assigned": "[chosen.tolist(), cost[chosen, objects].sum(), greedy.tolist(), cost[greedy, objects].sum()]",
    "row": "[tokenizer.offsets.tolist(), rows.tolist(), list(tokens.shape), (tokens[:, 1:3] - scaled).abs().max()]",
    "clip": "[by_image.tolist(), by_caption.tolist(), clip_loss.item()]",
    "llava": "[list(sequence.shape), causal[256:].tolist()]",
    "streams": "[list(to_text.shape), list(to_regions.shape)]",
}
# Numbers of the prose that come from the papers it cites, or are settings of the code next to them.
GIVEN: set[str] = {
    "like the 1,797 scanned digits",
    "| none | 61.4% |",
    "numbered 1 to N | 64.2% |",
    "| one learned row per line and one per column | 64.0% |",
    "| relative positions in the attention | 64.0% |",
    "with 0.1 added against rounding: `scale_factor=(w + 0.1) / sqrt(N)`",
    "1,297 digits for training",
    "Trained on 1.3 million images",
    "in the cross-entropy is 0.1.",
    "The last three lie within 0.2 points",
    "GIoU above 0.5",
    "| 1,297 | 98% |",
    "the published one saw 118,000 images up to 500 times",
    "On tables of about 10,000 rows",
}

LESSON = Lesson("11_vision", ASKED, GIVEN)
SOURCE, PROSE, check = LESSON.source, LESSON.prose, LESSON.check
RECORD = recorded_vision()


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def interval(one: list[float], other: list[float]) -> tuple[float, float]:
    """The mean of five paired differences, and half of its 95% interval."""
    differences = [a - b for a, b in zip(one, other, strict=True)]
    return mean(differences), 2.776 * stdev(differences) / 5**0.5


def percent(phrase: str, *shares: float) -> None:
    """The prose has the phrase, and its percentages are these shares, rounded."""
    assert phrase in PROSE, f"the lesson no longer says {phrase!r}"
    assert [int(number) for number in re.findall(r"(\d+)%", phrase)] == [round(100 * share) for share in shares]


def test_pixels_and_pairs_are_counted() -> None:
    check("64 · 64 = 4,096 pairs", 64 * 64, form=",")
    check("a photograph has 50,176 tokens", 224 * 224, form=",")
    assert round(4 * 224**4 / 1e9) == 10
    assert "50,176 tokens and 10 GB of scores" in PROSE
    check("a grid of 56 × 56 = 3,136 tokens", 56**2, form=",")
    check("| every position | 56⁴ = 9.8 million |", 56**4 / 1e6, form=".1f")
    check("of 7 × 7 | 56² · 49 = 154 thousand |", 56**2 * 49 / 1e3, form=".0f")
    check("its row | 56² · 56 = 176 thousand |", 56**2 * 56 / 1e3, form=".0f")


def test_a_key_across_the_edge_hardly_counts() -> None:
    check("e^{-4} \\approx 0.018", math.exp(-((2 - 0) ** 2)), form=".3f")


def test_the_last_window_has_the_corners_and_three_layers_reach_all(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    positions = {position for line in values["corners"] for position in line}
    assert {0, 7, 56, 63} <= positions
    assert values["reached"] == [16, 36, 64]
    assert "the window of 16 positions, two reach 36, three reach all 64" in PROSE
    assert layers_until_all_met("neighbours", 32) == 11
    assert "Eleven. A layer carries information three positions" in PROSE
    monkeypatch.setattr(reaches, "WINDOW", 8)
    assert layers_until_all_met("shifted windows", 32) == 7
    assert "Shifted windows of 8 × 8 need seven" in PROSE


def test_gamma_alone_learns_at_first(values: dict[str, Any]) -> None:
    gradients = values["gradients"]
    assert all(gradients["gamma"])
    for name in ("q_proj", "v_proj"):
        assert gradients[name][0] == 0
        assert gradients[name][1] > 0


def test_patches_are_those_of_the_function_and_of_a_convolution(values: dict[str, Any]) -> None:
    patch, pixels, same = values["patch"]
    assert patch == pixels
    assert same
    shape, difference = values["convolution"]
    assert shape == [1, 196, 768]
    assert difference < 1e-5
    assert values["vit"] == [[1, 10], 0]


def test_vit_base_is_counted() -> None:
    check("It has 85,798,656 parameters without", sum(vit_parameters(224, 16, 3, 768, 3072, 12, None)), form=",")
    check("It has 87,455,232 without a head", sum(vit_parameters(224, 32, 3, 768, 3072, 12, None)), form=",")
    check("and 86,567,656 with one", sum(vit_parameters(224, 16, 3, 768, 3072, 12, 1000)), form=",")
    P, C, D, F, L, N = 16, 3, 768, 3072, 12, 196
    by_formula = (P * P * C + 1) * D + D + (1 + N) * D + L * (4 * (D * D + D) + 2 * D * F + F + D + 4 * D) + 2 * D
    assert by_formula == 85_798_656


def test_recorded_digits_are_told_as_they_were() -> None:
    ways, fewer = RECORD["digits"]["ways"], RECORD["digits"]["fewer"]
    few, many = ({name: mean(found[place]) for name, found in fewer.items()} for place in (0, -1))
    for images, means in (("1,297", many), ("100", few)):
        row = " | ".join(f"{100 * means[way]:.0f}%" for way in ("ViT", "CNN", "linear", "three neighbours"))
        assert f"| {images} | {row} |" in PROSE
    assert max(fewer["ViT"][0]) < min(fewer["CNN"][0]), "behind the CNN in every run"
    assert min(few["linear"], few["three neighbours"]) > max(few["ViT"], few["CNN"]), "ahead of both"
    percent("a Vision Transformer reaches 76%, a CNN 85%", few["ViT"], few["CNN"])
    for phrase in ("(69 thousand parameters)", "a CNN (19 thousand)"):
        assert phrase in PROSE
    assert [round(ways[way]["parameters"] / 1000) for way in ("patches of 2", "CNN")] == [69, 19]


def test_the_table_of_shifts_is_the_record() -> None:
    columns = ("CNN", "patches of 2", "linear", "three neighbours")
    ways = RECORD["digits"]["ways"]
    for pixels, name in ((1, "1 pixel"), (2, "2 pixels")):
        cells = []
        for way in columns:
            low, high = (round(100 * end([run[pixels] for run in ways[way]["right"]])) for end in (min, max))
            cells.append(f"{low}%" if low == high else f"{low} to {high}%")
        assert f"| {name} | {' | '.join(cells)} |" in PROSE
    others = [run[2] for way in columns[1:] for run in ways[way]["right"]]
    assert min(run[2] for run in ways["CNN"]["right"]) > max(others)


def test_pooling_explains_a_part_of_what_the_cnn_tolerates(values: dict[str, Any]) -> None:
    runs, gain, half = values["pooling"]
    assert min(run[0] for name in runs for run in runs[name]) > 0.93, "both read digits that have not moved"
    assert 0.17 < mean([run[1] for run in runs["flat"]]) < 0.33, "about a quarter"
    assert gain > 0.03, "better than without pooling"
    assert mean([run[1] for run in runs["flat"]]) > mean(
        [run[2] for run in RECORD["digits"]["ways"]["patches of 2"]["right"]]
    )
    assert half > 0.05, "the interval is wide"


def test_mask_of_the_page_is_that_of_the_function(values: dict[str, Any]) -> None:
    keys, leaked, allowed = values["mask"]
    assert set(keys) == {4}, "the last window has four pieces of four positions"
    assert leaked == 0
    for query in range(0, 64, 7):
        marked = torch.zeros(1, 1, 8, 8, 1)
        marked[0, 0, query // 8, query % 8] = 1.0
        ones = torch.ones(1, 1, 8, 8, 1)
        hit = (window_attention(ones, ones, marked, 4, shift=2) > 0).roll((-2, -2), dims=(2, 3))
        row, column = (query // 8 - 2) % 8, (query % 8 - 2) % 8
        window, inside = row // 4 * 2 + column // 4, row % 4 * 4 + column % 4
        assert int(hit.sum()) == sum(allowed[window][inside])


def test_loss_of_the_page_is_that_of_the_function(values: dict[str, Any]) -> None:
    ours, theirs, match = values["loss"]
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert len(set(match)) == 2


def test_everything_behind_gamma_learns_in_the_first_step_unless_gamma_is_zero() -> None:
    features = torch.randn(1, 32, 8, 8)
    for start, moves in ((0.0, False), (1.0, True)):
        layer = SelfAttention2d(32)
        torch.nn.init.constant_(layer.gamma, start)
        layer(features).square().sum().backward()
        assert bool(layer.q_proj.weight.grad.norm() > 0) == moves
        assert torch.equal(layer(features), features) == (not moves), "inserted with 1, it changes the answers"


def test_a_move_by_a_patch_keeps_the_patches_and_a_move_by_a_pixel_does_not(experiment: Any) -> None:
    vision = experiment("vision")
    images = vision.digits()[1].images
    kept = {}
    for pixels in (1, 2):
        same = ink = 0
        for before, after in zip(patchify(images, 2), patchify(vision.shifted(images, pixels), 2), strict=True):
            patches = Counter(map(tuple, before.tolist()))
            patches.pop((-1.0,) * 4, None)
            same += sum((patches & Counter(map(tuple, after.tolist()))).values())
            ink += patches.total()
        kept[pixels] = same / ink
    percent("A move by two pixels keeps 83% of the patches", kept[2])
    assert kept[1] < 0.01


def test_a_bag_of_patches_does_not_mind_a_move_by_a_patch() -> None:
    ways = RECORD["digits"]["ways"]
    bag, ordered = ways["no positions"]["right"], ways["patches of 2"]["right"]
    percent(
        "reaches 73% without positions and 98% with them",
        mean([run[0] for run in bag]),
        mean([run[0] for run in ordered]),
    )
    percent("its accuracy is still 71%", mean([run[2] for run in bag]))
    assert max(run[2] for run in ordered) < 0.17
    assert max(run[1] for run in bag) < 0.25


def test_recorded_scenes_are_told_as_they_were() -> None:
    found = {way: [run["found"] for run in runs] for way, runs in RECORD["scenes"].items()}
    percent(
        "finds 93% with matching, in both runs, and 22% in the given order.",
        *set(found["matched"]),
        mean(found["in order"]),
    )
    percent("makes it 36%", found["in order, longer"][0])
    percent("22% against 93%", mean(found["in order"]), mean(found["matched"]))
    assert all(0.8 < run["extra"] < 1 for run in RECORD["scenes"]["matched"])
    upper_right, lower_left = (
        [
            query
            for query, centres in enumerate(RECORD["scenes"]["matched"][0]["centres"])
            if (mean([x for x, _ in centres]) > 0.6) == right and (mean([y for _, y in centres]) > 0.6) != right
        ]
        for right in (True, False)
    )
    assert upper_right
    assert lower_left


def test_recorded_tables_are_told_as_they_were() -> None:
    tables = RECORD["tables"]
    for name in ("cancer", "wine"):
        for one, other in combinations(("feature tokens", "boosted trees", "linear"), 2):
            difference, half = interval(tables[name][one], tables[name][other])
            assert abs(difference) < half, "every interval contains 0"
    diabetes = tables["diabetes"]
    check(
        "by 0.073 ± 0.024 in explained variance", *interval(diabetes["linear"], diabetes["feature tokens"]), form=".3f"
    )


def test_another_size_costs_accuracy_until_the_model_is_tuned(values: dict[str, Any]) -> None:
    small, untrained, tuned = values["accuracies"]
    assert small > 0.95
    assert untrained < 0.9 < tuned
    assert "falls below nine in ten at the new size and is above nine in ten again after two epochs" in PROSE
    assert values["larger"] == [65, 64]


def test_boxes_and_assignments_are_those_of_the_text(values: dict[str, Any]) -> None:
    assert values["decoder"] == [[1, 5, 4], [1, 5, 4]]
    iou, giou = values["giou"]
    assert iou == pytest.approx([1, 1 / 3, 0, 0], abs=1e-6)
    assert giou == pytest.approx([1, 1 / 3, -0.2, -0.14 / 0.22], abs=1e-6)
    check("two squares of side 0.2 and move one by 0.3", 0.2, 0.3, form=".1f")
    check("the union is 0.08", 2 * 0.2**2)
    check("the hull is 0.5 · 0.2 = 0.1,", 0.5 * 0.2, form=".1f")
    check("0 − 0.02/0.1 = −0.2", (0.1 - 0.08) / 0.1, form=".1f")
    chosen, least, greedy, more = values["assigned"]
    assert [chosen, greedy] == [[1, 0], [0, 1]]
    check("from 2.1 to 0.5", more, least, form=".1f")


def test_the_small_detector_saw_what_the_text_says(experiment: Any) -> None:
    vision = experiment("vision")
    check("It saw 12,800 images", vision.SCENE_STEPS * vision.SCENE_BATCH, form=",")


def test_clips_loss_is_small_for_a_pair_that_matches_and_large_for_one_that_does_not(values: dict[str, Any]) -> None:
    by_image, by_caption, loss = values["clip"]
    assert by_image[0] < 0.01 < 1 < by_image[1], "image 1 finds no caption"
    assert by_caption[1] > 1
    # The library's own loss, for the same scores.
    images = torch.eye(4, 16)
    texts = images[[0, 3, 2, 3]]
    assert loss == pytest.approx(image_text_contrastive_loss(texts @ images.T / 0.1).item(), abs=1e-5)


def test_every_word_of_llavas_prompt_attends_to_all_patches_and_to_no_later_word(values: dict[str, Any]) -> None:
    shape, words = values["llava"]
    assert shape == [1, 256 + 4, 64]
    for number, row in enumerate(words):
        assert row == [True] * (256 + number + 1) + [False] * (3 - number)


def test_tokens_of_a_row_and_of_two_streams(values: dict[str, Any]) -> None:
    assert values["row"] == [[0, 3], [[1, 3]], [1, 5, 8], 0]
    assert values["streams"] == [[1, 5, 16], [1, 9, 16]]
