"""Attention beyond text and patches against PyTorch, Hugging Face's detectors and streams, SciPy, and loops from the formulas."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from scipy.optimize import linear_sum_assignment
from torch import Tensor, nn
from transformers import LxmertConfig, VisualBertConfig, VisualBertModel
from transformers.image_transforms import center_to_corners_format
from transformers.loss.loss_for_object_detection import HungarianMatcher, ImageLoss, generalized_box_iou
from transformers.models.lxmert.modeling_lxmert import LxmertCrossAttentionLayer, LxmertIntermediate, LxmertOutput

from tfcourse.beyond import (
    CoAttentionLayer,
    FeatureTokenizer,
    SelfAttention2d,
    assign,
    generalized_iou,
    hungarian_matching_loss,
    matching_cost,
)
from tfcourse.layers import EncoderLayer

KINDS = 4


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def redrawn(module: nn.Module, seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.3, generator=generator)
    return module.eval()


def near(one: Tensor, other: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


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


def test_attention_on_a_map_is_a_loop_over_places() -> None:
    layer = SelfAttention2d(4, 2).double()
    redrawn(layer)
    x = randn(1, 4, 2, 3, dtype=torch.float64)
    q, k, v = (project(x)[0].flatten(1) for project in (layer.q_proj, layer.k_proj, layer.v_proj))
    for place in range(6):
        weights = torch.softmax(torch.stack([q[:, place] @ k[:, other] for other in range(6)]), dim=0)
        read = sum((weight * v[:, other] for other, weight in enumerate(weights)), start=torch.zeros(2).double())
        added = layer.o_proj.weight[:, :, 0, 0] @ read + layer.o_proj.bias
        near(layer(x)[0].flatten(1)[:, place], x[0].flatten(1)[:, place] + layer.gamma * added, 1e-12)


def test_at_the_start_attention_on_a_map_adds_nothing() -> None:
    x = randn(2, 16, 3, 4)
    layer = SelfAttention2d(16)
    assert torch.equal(layer(x), x)
    assert layer.q_proj.out_channels == 2
    layer(x).sum().backward()
    assert layer.gamma.grad is not None
    assert layer.gamma.grad.abs() > 0


@pytest.mark.parametrize(("channels", "inner", "width"), [(64, None, 8), (5, None, 1), (5, 4, 4)])
def test_queries_have_an_eighth_of_the_channels(channels: int, inner: int | None, width: int) -> None:
    assert SelfAttention2d(channels, inner).q_proj.weight.shape == (width, channels, 1, 1)


# ------------------------------------------------------------------------------------------------------------------ boxes


def test_generalized_iou_is_that_of_hugging_face() -> None:
    a, b = boxes(9), boxes(6, seed=1)
    near(generalized_iou(a, b), generalized_box_iou(center_to_corners_format(a), center_to_corners_format(b)), 1e-6)


def test_generalized_iou_is_a_count_of_small_squares() -> None:
    a, b = torch.tensor([[3.0, 4.0, 4.0, 6.0], [8.0, 8.0, 2.0, 2.0]]), torch.tensor([[5.0, 5.0, 4.0, 2.0]])
    centre = torch.arange(12) + 0.5

    def covered(box: Tensor) -> Tensor:
        across, down = ((centre - box[axis]).abs() < box[2 + axis] / 2 for axis in (0, 1))
        return down[:, None] & across

    for n in range(2):
        one, other = covered(a[n]), covered(b[0])
        shared, union = (one & other).sum(), (one | other).sum()
        rows, columns = (one | other).any(dim=1).nonzero(), (one | other).any(dim=0).nonzero()
        hull = (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1)
        near(generalized_iou(a, b)[n, 0], (shared / union - (hull - union) / hull).squeeze())


def test_generalized_iou_is_one_for_equal_boxes_and_near_minus_one_for_small_ones_far_apart() -> None:
    a = boxes(5)
    near(generalized_iou(a, a).diagonal(), torch.ones(5))
    far = torch.tensor([[0.0, 0.0, 1e-3, 1e-3], [9.0, 9.0, 1e-3, 1e-3]])
    assert -1 <= generalized_iou(far[:1], far[1:]) < -0.999


def test_boxes_without_area_make_neither_nan_nor_nan_gradients() -> None:
    a = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.2, 0.2, 0.1, 0.0]], requires_grad=True)
    found = generalized_iou(a, a.detach())
    found.sum().backward()
    assert bool(found.isfinite().all())
    assert a.grad is not None
    assert bool(a.grad.isfinite().all())
    assert found[0, 0] == 0


def test_boxes_need_four_numbers() -> None:
    with pytest.raises(ValueError, match="four numbers"):
        generalized_iou(randn(2, 3), boxes(2))


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


def test_assign_gives_each_of_equal_objects_a_prediction_of_its_own() -> None:
    assert sorted(assign(torch.zeros(4, 4)).tolist()) == [0, 1, 2, 3]
    assert assign(torch.zeros(3, 0)).tolist() == []


def test_an_assignment_without_numbers_has_a_shape() -> None:
    found = assign(torch.zeros(5, 3, device="meta"))
    assert (found.shape, found.device.type) == ((3,), "meta")


def test_more_objects_than_predictions_are_refused() -> None:
    with pytest.raises(ValueError, match="3 objects cannot each have one of 2"):
        assign(torch.zeros(2, 3))


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


def test_the_loss_does_not_depend_on_the_order_of_objects_or_predictions() -> None:
    logits, found, labels, targets = a_batch((4, 3))
    usual = hungarian_matching_loss(logits, found, labels, targets)
    turned = [kind.flip(0) for kind in labels], [target.flip(0) for target in targets]
    near(hungarian_matching_loss(logits, found, *turned), usual)
    near(hungarian_matching_loss(logits.flip(1), found.flip(1), labels, targets), usual)


def test_the_loss_has_gradients_and_a_perfect_answer_costs_nothing() -> None:
    logits, found, labels, targets = a_batch((3,))
    logits.requires_grad_()
    found.requires_grad_()
    hungarian_matching_loss(logits, found, labels, targets).backward()
    assert logits.grad is not None
    assert found.grad is not None
    assert (found.grad[0].abs().sum(dim=-1) > 0).sum() == 3
    sure = F.one_hot(torch.tensor([[*labels[0].tolist(), *[KINDS] * 5]]), KINDS + 1) * 50.0
    right = torch.cat([targets[0], boxes(5, seed=9)])[None]
    assert hungarian_matching_loss(sure, right, labels, targets) < 1e-5


# ----------------------------------------------------------------------------------------------------------------- tables


def test_tokens_of_a_row_are_those_of_the_formula() -> None:
    cardinalities = [3, 5, 2]
    tokenizer = FeatureTokenizer(4, cardinalities, 6)
    redrawn(tokenizer)
    numerical, categorical = randn(7, 4), torch.stack([torch.arange(7) % size for size in cardinalities], dim=1)
    tokens = tokenizer(numerical, categorical)
    assert tokens.shape == (7, 8, 6)
    assert tokenizer.offsets.tolist() == [0, 3, 8]
    for b in range(7):
        near(tokens[b, 0], tokenizer.class_token)
        for j in range(4):
            near(tokens[b, 1 + j], numerical[b, j] * tokenizer.weight[j] + tokenizer.bias[j])
        for j in range(3):
            row = tokenizer.embedding.weight[sum(cardinalities[:j]) + categorical[b, j]]
            near(tokens[b, 5 + j], row + tokenizer.category_bias[j])


def test_tokens_are_drawn_evenly_within_one_over_the_root_of_the_width() -> None:
    torch.manual_seed(0)
    tokenizer = FeatureTokenizer(30, [40], 16)
    for name, parameter in tokenizer.named_parameters():
        assert parameter.abs().max() <= 0.25, name
        if parameter.numel() > 100:
            assert parameter.std().item() == pytest.approx(0.25 / math.sqrt(3), rel=0.1), name


def test_offsets_go_with_the_tokenizer_and_are_not_learned() -> None:
    tokenizer = FeatureTokenizer(1, [2, 2], 4).to("meta")
    assert tokenizer.offsets.device.type == "meta"
    assert "offsets" not in dict(tokenizer.named_parameters())


@pytest.mark.parametrize(("numbers", "cardinalities"), [(3, []), (0, [2, 3])])
def test_a_table_may_have_columns_of_one_kind_alone(numbers: int, cardinalities: list[int]) -> None:
    tokenizer = FeatureTokenizer(numbers, cardinalities, 4)
    tokens = tokenizer(randn(5, numbers), torch.zeros(5, len(cardinalities), dtype=torch.long))
    assert tokens.shape == (5, 1 + numbers + len(cardinalities), 4)


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


def test_both_streams_read_what_the_other_was_on_its_way_in() -> None:
    layer = CoAttentionLayer(8, 2, 16)
    redrawn(layer)
    text, image = randn(1, 3, 8), randn(1, 4, 8, seed=1)
    usual = layer(text, image)[1]
    with torch.no_grad():
        layer.text_cross_attention_norm.weight.mul_(3)
    assert torch.equal(layer(text, image)[1], usual)


def test_dropout_falls_on_what_sublayers_say() -> None:
    layer = CoAttentionLayer(8, 2, 16, dropout=1.0)
    redrawn(layer)
    text, image = randn(1, 3, 8), randn(1, 4, 8, seed=1)
    layer.train()
    expected = layer.text_feed_forward_norm(layer.text_cross_attention_norm(text))
    near(layer(text, image)[0], expected)


def test_one_stream_is_the_encoder_over_words_and_regions_as_visualbert_has_it() -> None:
    config = VisualBertConfig(
        vocab_size=11,
        hidden_size=12,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=17,
        visual_embedding_dim=5,
        max_position_embeddings=9,
    )
    theirs: Any = VisualBertModel(config, add_pooling_layer=False)
    redrawn(theirs)
    layers = [EncoderLayer(12, 3, 17, activation="gelu") for _ in range(2)]
    pairs = (
        ("self_attention.q_proj", "attention.self.query"),
        ("self_attention.k_proj", "attention.self.key"),
        ("self_attention.v_proj", "attention.self.value"),
        ("self_attention.o_proj", "attention.output.dense"),
        ("self_attention_norm", "attention.output.LayerNorm"),
        ("feed_forward.up_proj", "intermediate.dense"),
        ("feed_forward.down_proj", "output.dense"),
        ("feed_forward_norm", "output.LayerNorm"),
    )
    for ours, layer in zip(layers, theirs.encoder.layer, strict=True):
        for own, their in pairs:
            ours.get_submodule(own).load_state_dict(layer.get_submodule(their).state_dict())
        ours.self_attention_norm.eps = ours.feed_forward_norm.eps = 1e-12
        ours.eval()
    tokens, regions = torch.tensor([[3, 1, 4, 1]]), randn(1, 6, 5)
    parts = theirs.embeddings
    text = parts.word_embeddings(tokens) + parts.position_embeddings.weight[:4] + parts.token_type_embeddings.weight[0]
    seen = parts.visual_projection(regions) + parts.visual_position_embeddings.weight[0]
    x = parts.LayerNorm(torch.cat([text, seen + parts.visual_token_type_embeddings.weight[1]], dim=1))
    for layer in layers:
        x = layer(x)
    found = theirs(
        input_ids=tokens,
        attention_mask=torch.ones(1, 4),
        visual_embeds=regions,
        visual_attention_mask=torch.ones(1, 6),
    )
    near(x, found.last_hidden_state)
