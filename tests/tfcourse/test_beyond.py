"""Attention beyond text and patches against PyTorch, Hugging Face's detectors and streams, and SciPy."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from transformers import LxmertConfig
from transformers.image_transforms import center_to_corners_format
from transformers.loss.loss_for_object_detection import HungarianMatcher, ImageLoss, generalized_box_iou
from transformers.models.lxmert.modeling_lxmert import LxmertCrossAttentionLayer, LxmertIntermediate, LxmertOutput

from tfcourse.beyond import (
    CoAttentionLayer,
    SelfAttention2d,
    assign,
    generalized_iou,
    hungarian_matching_loss,
    matching_cost,
)

from .drawing import near, redrawn

KINDS = 4


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def boxes(count: int, seed: int = 0) -> Tensor:
    return torch.cat([0.5 + 0.2 * randn(count, 2, seed=seed), 0.1 + 0.3 * randn(count, 2, seed=seed + 50).abs()], dim=1)


# -------------------------------------------------------------------------------------------------------- maps of features


def test_attention_on_a_map_is_that_of_pytorch_without_a_scale() -> None:
    layer = SelfAttention2d(8, 3)
    redrawn(layer)
    x = randn(2, 8, 4, 5)
    q, k, v = (project(x).flatten(2).mT for project in (layer.q_proj, layer.k_proj, layer.v_proj))
    read = F.scaled_dot_product_attention(q, k, v, scale=1.0)
    near(layer(x), x + layer.gamma * layer.o_proj(read.mT.reshape(2, 3, 4, 5)))


# ------------------------------------------------------------------------------------------------------------------ boxes


def test_generalized_iou_is_that_of_hugging_face() -> None:
    a, b = boxes(9), boxes(6, seed=1)
    near(generalized_iou(a, b), generalized_box_iou(center_to_corners_format(a), center_to_corners_format(b)), 1e-6)


# --------------------------------------------------------------------------------------------------------------- matching


def test_the_cost_is_that_of_hugging_faces_matcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their matcher hands its cost to SciPy: look at what arrives there."""
    logits, found = randn(1, 7, KINDS + 1), boxes(7)[None]
    labels, targets = torch.tensor([2, 0, 3]), boxes(3, seed=2)
    seen: list[Any] = []

    def spy(cost: Any) -> Any:
        seen.append(torch.as_tensor(cost))
        return linear_sum_assignment(cost)

    monkeypatch.setattr("transformers.loss.loss_for_object_detection.linear_sum_assignment", spy)
    matcher = HungarianMatcher(class_cost=1.5, bbox_cost=4, giou_cost=3)
    matcher({"logits": logits, "pred_boxes": found}, [{"class_labels": labels, "boxes": targets}])
    ours = matching_cost(logits[0], found[0], labels, targets, class_weight=1.5, l1_weight=4, iou_weight=3)
    near(ours, seen[0])


@pytest.mark.parametrize("seed", range(40))
def test_assign_is_as_cheap_as_scipy(seed: int) -> None:
    n = 1 + seed % 9
    cost = randn(n, 1 + seed % n, seed=seed)
    chosen = assign(cost)
    rows, columns = linear_sum_assignment(cost.numpy())
    assert len(set(chosen.tolist())) == cost.shape[1]
    assert cost[chosen, torch.arange(cost.shape[1])].sum() == pytest.approx(cost[rows, columns].sum().item(), abs=1e-5)


def a_batch(objects: tuple[int, ...], seed: int = 0) -> tuple[Tensor, Tensor, list[Tensor], list[Tensor]]:
    logits = randn(len(objects), 8, KINDS + 1, seed=seed)
    found = torch.stack([boxes(8, seed=seed + 3 + i) for i in range(len(objects))])
    labels = [torch.arange(count) % KINDS for count in objects]
    return logits, found, labels, [boxes(count, seed=seed + 20 + i) for i, count in enumerate(objects)]


@pytest.mark.parametrize("objects", [(3, 5), (2, 0, 4), (0, 0), (8, 1)])
def test_the_loss_is_that_of_hugging_faces_detector(objects: tuple[int, ...]) -> None:
    logits, found, labels, targets = a_batch(objects)
    theirs = ImageLoss(HungarianMatcher(1, 5, 2), num_classes=KINDS, eos_coef=0.1, losses=["labels", "boxes"])
    parts = theirs(
        {"logits": logits, "pred_boxes": found},
        [{"class_labels": kind, "boxes": target} for kind, target in zip(labels, targets, strict=True)],
    )
    expected = parts["loss_ce"] + 5 * parts["loss_bbox"] + 2 * parts["loss_giou"]
    near(hungarian_matching_loss(logits, found, labels, targets), expected)


# ------------------------------------------------------------------------------------------------------------ two streams

CONFIG = LxmertConfig(
    hidden_size=12,
    num_attention_heads=3,
    intermediate_size=17,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def _stream(ours: CoAttentionLayer, name: str) -> tuple[nn.Module, nn.Module, nn.Module]:
    """A stream of ours, built of Hugging Face's parts."""
    attention, up, down = LxmertCrossAttentionLayer(CONFIG), LxmertIntermediate(CONFIG), LxmertOutput(CONFIG)
    own = {key: value.clone() for key, value in ours.state_dict().items()}
    pairs: list[tuple[Any, str]] = [
        *(
            (getattr(attention.att, theirs), f"{name}_cross_attention.{part}_proj")
            for part, theirs in (("q", "query"), ("k", "key"), ("v", "value"))
        ),
        (attention.output.dense, f"{name}_cross_attention.o_proj"),
        (attention.output.LayerNorm, f"{name}_cross_attention_norm"),
        (up.dense, f"{name}_feed_forward.up_proj"),
        (down.dense, f"{name}_feed_forward.down_proj"),
        (down.LayerNorm, f"{name}_feed_forward_norm"),
    ]
    with torch.no_grad():
        for theirs, key in pairs:
            for part in ("weight", "bias"):
                weight = own[f"{key}.{part}"]
                getattr(theirs, part).copy_(weight)
    return attention.eval(), up.eval(), down.eval()


def test_two_streams_are_two_of_lxmerts_layers_with_weights_of_their_own() -> None:
    ours = CoAttentionLayer(12, 3, 17)
    redrawn(ours)
    for module in ours.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-12
    text, image = randn(2, 5, 12), randn(2, 7, 12, seed=1)
    text_mask, image_mask = torch.ones(2, 1, 5, dtype=torch.bool), torch.ones(2, 1, 7, dtype=torch.bool)
    text_mask[1, :, 3:] = False
    image_mask[0, :, :2] = False
    found = ours(text, image, text_mask, image_mask)
    streams = (("text", text, image, image_mask), ("image", image, text, text_mask))
    for got, (name, own, other, mask) in zip(found, streams, strict=True):
        attention, up, down = _stream(ours, name)
        hidden = torch.zeros(mask.shape).masked_fill(~mask, -1e9)[:, None]
        state = attention(own, other, hidden)[0]
        near(got, down(up(state), state))
