"""The recorded vision: nothing examined that was read, models that run, a loss in order that needs no matching, and a complete record."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.beyond import hungarian_matching_loss
from tfcourse.data import recorded_vision, scenes

RECORD = recorded_vision()


@pytest.fixture(scope="module")
def vision(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("vision")


def test_digits_of_the_examination_are_not_among_those_that_are_read(vision: Any) -> None:
    train, test = vision.digits()
    assert (len(train.labels), len(test.labels)) == (1297, 500)
    read = {tuple(image.flatten().tolist()) for image in train.images}
    assert not [image for image in test.images if tuple(image.flatten().tolist()) in read]
    assert train.images.min() == -1
    assert train.images.max() == 1


def test_a_picture_moves_to_the_right_and_paper_comes_in(vision: Any) -> None:
    images = torch.arange(8.0).expand(1, 1, 8, 8)
    assert vision.shifted(images, 2)[0, 0, 3].tolist() == [-1, -1, 0, 1, 2, 3, 4, 5]


def test_without_positions_a_model_cannot_tell_the_order_of_patches(vision: Any) -> None:
    torch.manual_seed(0)
    images = torch.randn(2, 1, 8, 8)
    moved = images.roll(2, dims=-1)  # whole patches
    for positions in (False, True):
        model = vision.vit(positions=positions).eval()
        same = torch.allclose(model(images), model(moved), atol=1e-5)
        assert same != positions


def test_in_order_and_matched_are_one_loss_where_the_order_is_the_cheapest_match(vision: Any) -> None:
    made = scenes(5, seed=3)
    boxes = torch.rand(5, 6, 4) * 0.01 + 5
    for number, target in enumerate(made.boxes):
        boxes[number, : len(target)] = target + 0.01
    logits = torch.randn(5, 6, 4, generator=torch.Generator().manual_seed(0))
    matched = hungarian_matching_loss(logits, boxes, made.labels, made.boxes)
    torch.testing.assert_close(vision.loss_in_order(logits, boxes, made.labels, made.boxes), matched)


def test_objects_are_found_once_and_what_is_said_beside_them_is_too_much(vision: Any) -> None:
    made = scenes(4, seed=1)

    class Knows(torch.nn.Module):
        def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            logits, boxes = torch.zeros(4, 7, 4), torch.full((4, 7, 4), 0.1)
            logits[:, :, 3] = 5
            for number, (kind, target) in enumerate(zip(made.labels, made.boxes, strict=True)):
                for twice in (0, 3):
                    logits[number, torch.arange(len(kind)) + twice, kind] = 9
                    boxes[number, twice : twice + len(kind)] = target
            return logits, boxes

    found, extra = vision.found_objects(Knows(), made)
    assert found == 1
    assert extra == pytest.approx(sum(map(len, made.labels)) / 4)


def test_the_record_has_all_runs(vision: Any) -> None:
    digits = RECORD["digits"]
    for way, found in digits["ways"].items():
        assert {len(run) for run in found["right"]} == {len(vision.SHIFTS)}, way
    assert {name: len(rows) for name, rows in digits["fewer"].items()} == dict.fromkeys(
        digits["fewer"], len(vision.FEWER)
    )
    assert [len(RECORD["scenes"][way]) for way in ("matched", "in order", "in order, longer")] == [2, 2, 1]
    for table in RECORD["tables"].values():
        assert {len(table[way]) for way in ("feature tokens", "boosted trees", "linear")} == {len(vision.SPLITS)}
    assert vision.COMMAND in RECORD["generated"]
