"""The recorded vision: nothing examined that was read, models that run, a loss in order that needs no matching, and a complete record."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.beyond import hungarian_matching_loss
from tfcourse.data import scenes


@pytest.fixture(scope="module")
def vision(experiment: Callable[[str], ModuleType]) -> Any:
    return experiment("vision")


def test_a_picture_moves_to_the_right_and_paper_comes_in(vision: Any) -> None:
    images = torch.arange(8.0).expand(1, 1, 8, 8)
    assert vision.shifted(images, 2)[0, 0, 3].tolist() == [-1, -1, 0, 1, 2, 3, 4, 5]


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
