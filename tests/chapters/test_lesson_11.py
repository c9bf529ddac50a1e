"""The lesson of chapter 11 runs, shows figures that everybody can read, and states no number that is not true."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
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
    "on_object": "on_object",
    "reached": "reached",
    "gradients": "[sizes['gamma'], sizes['q_proj'], sizes['v_proj']]",
    "equal": "[difference, vit_gap, (patches - patchify(digit[None], 2)[0]).abs().max(), (tokens[:, 1:3] - scaled).abs().max()]",
    "accuracies": "[small, untrained, tuned]",
    "shapes": "[flattened.shape, larger.shape, kinds.shape, boxes.shape, tokens.shape, to_text.shape, to_regions.shape, sequence.shape]",
    "giou": "[iou.tolist(), giou.tolist()]",
    "assigned": "[chosen.tolist(), greedy.tolist()]",
    "clip": "[by_image.tolist(), by_caption.tolist(), clip_loss.item()]",
    "llava": "causal[256:].sum(-1).tolist()",
}
# Numbers of the prose that come from the papers it cites, are settings of the code, or are worked out on the spot.
GIVEN = "1,797 61.4 64.2 64.0 0.1 1,297 1.3 0.2 0.5 0.3 0.08 0.02 3,200 118,000 10,000"

LESSON = Lesson("11_vision", ASKED, GIVEN)
RECORD = recorded_vision()


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def interval(one: list[float], other: list[float], *, shared: float = 0.0) -> tuple[float, float]:
    """The mean of five paired differences, and half of its 95% interval.

    ``shared`` is the number of test rows per training row if the runs share training rows (Nadeau and Bengio's correction).
    """
    differences = [a - b for a, b in zip(one, other, strict=True)]
    return mean(differences), 2.776 * stdev(differences) * (1 / 5 + shared) ** 0.5


def test_what_is_equal_in_algebra_differs_by_rounding_and_shapes_are_those_of_the_table(values: dict[str, Any]) -> None:
    assert max(values["equal"]) < 1e-5
    expected = [[1, 196, 768], [65, 64], [1, 5, 4], [1, 5, 4], [1, 5, 8], [1, 5, 16], [1, 9, 16], [1, 260, 64]]
    assert values["shapes"] == expected
    assert values["llava"] == [257, 258, 259, 260], "each word attends to all patches and to no later word"
    gamma, *behind = values["gradients"]
    assert all(gamma)
    assert all(first == 0 < second for first, second in behind)


def test_the_last_window_has_the_corners_and_three_layers_reach_all(
    values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {0, 7, 56, 63} <= {position for line in values["corners"] for position in line}
    assert values["reached"][-1] == 64
    assert layers_until_all_met("neighbours", 32) == 11
    monkeypatch.setattr(reaches, "WINDOW", 8)
    assert layers_until_all_met("shifted windows", 32) == 7


def test_parameters_of_vit_base_are_those_of_the_formula() -> None:
    P, C, D, F, L, N = 16, 3, 768, 3072, 12, 196
    by_formula = (P * P * C + 1) * D + D + (1 + N) * D + L * (4 * (D * D + D) + 2 * D * F + F + D + 4 * D) + 2 * D
    assert sum(vit_parameters(224, 16, 3, 768, 3072, 12, None)) == by_formula


def test_few_digits_put_the_transformer_last() -> None:
    fewer = RECORD["digits"]["fewer"]
    assert max(fewer["ViT"][0]) < min(fewer["CNN"][0]), "behind the CNN in every run"
    assert min(*fewer["linear"][0], *fewer["three neighbours"][0]) > mean(fewer["CNN"][0]), "ahead of both"


def test_pooling_makes_the_answer_invariant_and_equivariant_maps_alone_do_not() -> None:
    ways = {name: way["right"] for name, way in RECORD["digits"]["moved"].items()}
    pooled, flat = ways["CNN"], ways["CNN without pooling"]
    assert max(run[0] - run[2] for run in pooled) < 0.1, "less than ten points"
    assert max(run[2] for way in ("ViT", "linear", "three neighbours") for run in ways[way]) < 0.25, "the three others"
    assert max(run[0] for run in pooled) < min(run[0] for run in flat), "its price"
    assert max(run[2] for run in flat) < 0.5 * min(run[2] for run in pooled)
    difference, half = interval([run[2] for run in pooled], [run[2] for run in flat])
    assert difference - half > 0.5, "most of the tolerance is gone"
    assert max(run[1] for run in RECORD["digits"]["ways"]["no positions"]["right"]) < 0.25, "the bag"


def test_only_the_linear_model_has_a_clear_lead_and_only_on_diabetes() -> None:
    tables = RECORD["tables"]
    models = list(combinations(("feature tokens", "boosted trees", "linear"), 2))
    for name, (one, other) in product(("cancer", "wine"), models):
        difference, half = interval(tables[name][one], tables[name][other])
        assert abs(difference) < half, "every interval contains 0, the wider one as well"
    for one, other, clear in (("linear", "feature tokens", True), ("feature tokens", "boosted trees", False)):
        scores = tables["diabetes"]
        assert all(a > b for a, b in zip(scores[one], scores[other], strict=True)), "in all five splits"
        difference, half = interval(scores[one], scores[other], shared=1 / 3)
        assert (difference > half) == clear


def test_the_mean_box_is_best_by_squares_and_a_box_on_an_object_by_detrs_loss(values: dict[str, Any]) -> None:
    squares, detr = values["on_object"].values()
    assert not any(squares)
    assert sum(detr) > 0.9 * len(detr), "nearly always better"


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
    assert kept == {1: pytest.approx(0, abs=0.01), 2: pytest.approx(0.83, abs=0.005)}
    assert vision.SCENE_STEPS * vision.SCENE_BATCH == 4 * vision.SCENES == 4 * 3_200
    bag, framed = vision.vit(12, positions=False).eval(), vision.on_paper(vision.digits()[1]).images[:9]
    torch.testing.assert_close(bag(vision.shifted(framed, 2)), bag(framed))  # the same patches in another order
    assert (images[..., 6:] > -1).flatten(1).any(1).double().mean() > 0.9, "most would lose ink at the right edge"


def test_matched_detectors_agree_overshoot_and_specialise() -> None:
    matched = RECORD["scenes"]["matched"]
    assert len({f"{run['found']:.0%}" for run in matched}) == 1
    assert all(0.8 < run["extra"] < 1 for run in matched), "nearly one box too many per image"
    centres = torch.tensor(matched[0]["centres"]).mean(dim=1) > 0.6  # (N, 2)
    assert {(True, False), (False, True)} <= {tuple(side) for side in centres.tolist()}, "upper right, lower left"


def test_another_size_costs_accuracy_until_the_model_is_tuned(values: dict[str, Any]) -> None:
    small, untrained, tuned = values["accuracies"]
    assert small > 0.95
    assert untrained < 0.9 < tuned


def test_boxes_and_assignments_are_those_of_the_text(values: dict[str, Any]) -> None:
    iou, giou = values["giou"]
    assert iou == pytest.approx([1, 1 / 3, 0, 0], abs=1e-6)
    assert giou == pytest.approx([1, 1 / 3, -0.2, -0.14 / 0.22], abs=1e-6)
    assert values["assigned"] == [[1, 0], [0, 1]]


def test_clips_loss_is_small_for_a_pair_that_matches_and_large_for_one_that_does_not(values: dict[str, Any]) -> None:
    by_image, by_caption, loss = values["clip"]
    assert by_image[0] < 0.01 < 1 < by_image[1], "image 1 finds no caption"
    assert by_caption[1] > 1
    # The library's own loss, for the same scores.
    images = torch.eye(4, 16)
    texts = images[[0, 3, 2, 3]]
    assert loss == pytest.approx(image_text_contrastive_loss(texts @ images.T / 0.1).item(), abs=1e-5)
