"""Vision Transformers against Hugging Face's with the same weights, convolutions, and loops from the formulas."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import SwinConfig, ViTConfig, ViTForImageClassification
from transformers.models.swin.modeling_swin import SwinLayer

from tfcourse.vit import (
    VisionTransformer,
    interpolate_position_embedding,
    local_relation,
    patchify,
    unpatchify,
    vit_parameters,
    window_attention,
)

D, H, FF, L, P, C, CLASSES, SIZE = 12, 3, 17, 2, 4, 3, 5, 12
WIDTHS: dict[str, Any] = {"d_model": D, "n_heads": H, "d_ff": FF, "n_layers": L}


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def near(one: Tensor, other: Tensor, tolerance: float = 1e-5) -> None:
    torch.testing.assert_close(one, other, atol=tolerance, rtol=tolerance)


# ---------------------------------------------------------------------------------------------------------------- patches


def test_a_patch_holds_its_pixels_row_by_row_with_their_channels_together() -> None:
    images = randn(2, 3, 6, 8)
    patches = patchify(images, 2)
    assert patches.shape == (2, 12, 12)
    for row in range(3):
        for column in range(4):
            cut = images[:, :, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2]
            assert torch.equal(patches[:, 4 * row + column], cut.permute(0, 2, 3, 1).flatten(1))


def test_patches_are_those_of_unfold_in_another_order() -> None:
    images = randn(2, 3, 6, 8)
    theirs = F.unfold(images, 2, stride=2).mT.reshape(2, 12, 3, 4).transpose(2, 3).flatten(2)
    assert torch.equal(patchify(images, 2), theirs)


def test_a_map_of_patches_is_a_convolution_with_a_stride() -> None:
    torch.manual_seed(1)
    convolution, linear = nn.Conv2d(C, D, P, P), nn.Linear(P * P * C, D)
    with torch.no_grad():
        linear.weight.copy_(convolution.weight.permute(0, 2, 3, 1).flatten(1))
        assert convolution.bias is not None
        linear.bias.copy_(convolution.bias)
    images = randn(2, C, 8, 12)
    near(linear(patchify(images, P)), convolution(images).flatten(2).mT)


def test_unpatchify_undoes_patchify() -> None:
    for shape, patch in (((2, 3, 6, 8), 2), ((1, 1, 9, 3), 3), ((3, 2, 4, 5), 1)):
        images = randn(*shape)
        grid = (shape[2] // patch, shape[3] // patch)
        assert torch.equal(unpatchify(patchify(images, patch), patch, grid), images)


@pytest.mark.parametrize(("shape", "patch"), [((1, 1, 7, 6), 3), ((1, 1, 6, 7), 3), ((1, 1, 6, 6), 0)])
def test_pictures_that_patches_do_not_fill_are_refused(shape: tuple[int, ...], patch: int) -> None:
    with pytest.raises(ValueError, match="cannot be cut into patches"):
        patchify(randn(*shape), patch)


@pytest.mark.parametrize(("shape", "grid"), [((1, 6, 8), (2, 2)), ((1, 6, 6), (2, 3))])
def test_a_grid_or_patches_that_do_not_fit_are_refused(shape: tuple[int, ...], grid: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="no grid"):
        unpatchify(randn(*shape), 2, grid)


# -------------------------------------------------------------------------------------------------------------- positions


def cubic(d: float, a: float = -0.75) -> float:
    d = abs(d)
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def bicubic_loop(picture: Tensor, rows: int, columns: int) -> Tensor:
    """A square picture (side, side, D), resized with clamped borders."""
    side = len(picture)
    result = torch.zeros(rows, columns, picture.shape[-1], dtype=picture.dtype)
    for i in range(rows):
        for j in range(columns):
            y, x = (i + 0.5) * side / rows - 0.5, (j + 0.5) * side / columns - 0.5
            for v in range(math.floor(y) - 1, math.floor(y) + 3):
                for u in range(math.floor(x) - 1, math.floor(x) + 3):
                    number = picture[min(max(v, 0), side - 1), min(max(u, 0), side - 1)]
                    result[i, j] += cubic(y - v) * cubic(x - u) * number
    return result


@pytest.mark.parametrize("grid", [(4, 6), (3, 9), (7, 2), (1, 25)])
def test_positions_are_those_of_a_bicubic_loop(grid: tuple[int, int]) -> None:
    table = randn(27, D, dtype=torch.float64)
    result = interpolate_position_embedding(table, grid, n_extra=2)
    assert torch.equal(result[:2], table[:2])
    near(result[2:], bicubic_loop(table[2:].view(5, 5, D), *grid).flatten(0, 1))


def test_the_same_grid_gives_the_same_numbers_and_a_list_will_do() -> None:
    table = randn(26, D)
    assert torch.equal(interpolate_position_embedding(table, (5, 5)), table)
    assert torch.equal(interpolate_position_embedding(table, [2, 3]), interpolate_position_embedding(table, (2, 3)))  # type: ignore[arg-type]


def test_positions_stay_in_their_dtype_and_gradients_reach_all_of_them() -> None:
    table = randn(17, D).requires_grad_()
    (grad,) = torch.autograd.grad(interpolate_position_embedding(table, (6, 5)).square().sum(), table)
    assert bool((grad != 0).all())
    half = table.detach().bfloat16()
    near(
        interpolate_position_embedding(half, (6, 5)),
        interpolate_position_embedding(half.float(), (6, 5)).bfloat16(),
        0.0,
    )


@pytest.mark.parametrize(("length", "n_extra"), [(13, 1), (16, 1), (1, 1), (2, 3)])
def test_positions_that_fill_no_square_are_refused(length: int, n_extra: int) -> None:
    with pytest.raises(ValueError, match="square"):
        interpolate_position_embedding(randn(length, D), (3, 4), n_extra=n_extra)


# -------------------------------------------------------------------------------------------------------------- the model


def their_model() -> Any:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"num_labels": CLASSES}
    config = ViTConfig(
        hidden_size=D,
        num_hidden_layers=L,
        num_attention_heads=H,
        intermediate_size=FF,
        image_size=SIZE,
        patch_size=P,
        num_channels=C,
        **sizes,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        layer_norm_eps=1e-5,
    )
    config._attn_implementation = "eager"
    model: Any = ViTForImageClassification(config)
    model.eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_(std=0.3)
    return model


def ours_of(theirs: Any, **options: Any) -> VisionTransformer:
    """Our model with the weights of theirs."""
    state = theirs.state_dict()
    embeddings = "vit.embeddings."
    weight = state[f"{embeddings}patch_embeddings.projection.weight"]
    mine = {
        "class_token": state[f"{embeddings}cls_token"].flatten(),
        "position_table": state[f"{embeddings}position_embeddings"][0],
        "patch_proj.weight": weight.permute(0, 2, 3, 1).flatten(1),
        "patch_proj.bias": state[f"{embeddings}patch_embeddings.projection.bias"],
    }
    model = VisionTransformer(SIZE, P, C, CLASSES, **WIDTHS, **options).eval()
    names = {
        **{f"self_attention.{letter}_proj": f"attention.{letter}_proj" for letter in "qkvo"},
        "self_attention_norm": "layernorm_before",
        "feed_forward_norm": "layernorm_after",
        "feed_forward.up_proj": "mlp.fc1",
        "feed_forward.down_proj": "mlp.fc2",
    }
    for kind in ("weight", "bias"):
        mine[f"norm.{kind}"], mine[f"head.{kind}"] = state[f"vit.layernorm.{kind}"], state[f"classifier.{kind}"]
        for number in range(L):
            for name, there in names.items():
                mine[f"layers.{number}.{name}.{kind}"] = state[f"vit.layers.{number}.{there}.{kind}"]
    model.load_state_dict(mine)
    return model


@pytest.mark.parametrize(("high", "wide"), [(12, 12), (20, 8), (8, 16)])
def test_logits_are_those_of_hugging_faces_model_at_every_size(high: int, wide: int) -> None:
    theirs, images = their_model(), randn(3, C, high, wide, seed=2)
    expected = theirs(pixel_values=images, interpolate_pos_encoding=True).logits
    near(ours_of(theirs)(images), expected)


def test_the_mean_is_taken_of_the_patches_behind_the_norm() -> None:
    theirs, images = their_model(), randn(3, C, SIZE, SIZE, seed=3)
    hidden = theirs.vit(pixel_values=images).last_hidden_state[:, 1:]
    near(ours_of(theirs, pooling="mean")(images), theirs.classifier(hidden.mean(dim=1)))


def test_class_token_and_positions_are_drawn_small_and_the_rest_by_pytorch() -> None:
    torch.manual_seed(4)
    model = VisionTransformer(64, 4, 3, 10, d_model=128, n_heads=4, d_ff=64, n_layers=1)
    assert model.position_table.std().item() == pytest.approx(0.02, rel=0.05)
    assert model.class_token.std().item() == pytest.approx(0.02, rel=0.3)
    assert bool((model.norm.weight == 1).all())


def test_dropout_falls_on_the_embeddings_and_in_the_layers_while_training_only() -> None:
    torch.manual_seed(5)
    model, images = VisionTransformer(SIZE, P, C, CLASSES, **WIDTHS, dropout=1.0), randn(2, C, SIZE, SIZE)
    near(model(images), model.head(model.norm.bias).expand(2, -1))
    plain = VisionTransformer(SIZE, P, C, CLASSES, **WIDTHS)
    plain.load_state_dict(model.state_dict())
    near(model.eval()(images), plain(images))


def test_without_positions_the_order_of_the_patches_does_not_matter() -> None:
    torch.manual_seed(6)
    model, images = VisionTransformer(SIZE, P, C, CLASSES, **WIDTHS), randn(2, C, SIZE, SIZE)
    order = torch.randperm(9)
    shuffled = unpatchify(patchify(images, P)[:, order], P, (3, 3))
    assert not torch.allclose(model(images), model(shuffled), atol=1e-4)
    with torch.no_grad():
        model.position_table.zero_()
    near(model(images), model(shuffled))


def test_a_patch_that_does_not_divide_and_an_unknown_pooling_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot be cut"):
        VisionTransformer(10, 4, C, CLASSES, **WIDTHS)
    with pytest.raises(ValueError, match="'max'"):
        VisionTransformer(12, 4, C, CLASSES, **WIDTHS, pooling="max")  # type: ignore[arg-type]


# -------------------------------------------------------------------------------------------------------------- counting


def test_the_published_models_have_as_many_parameters_as_they_say() -> None:
    base = vit_parameters(224, 16, 3, 768, 3072, 12, 1000)
    assert base == (590_592, 768, 151_296, 12 * 7_087_872, 1_536, 769_000)
    assert sum(base) == 86_567_656
    assert sum(vit_parameters(224, 16, 3, 768, 3072, 12, None)) == 85_798_656
    sizes = {192: (768, 12, 16), 384: (1536, 12, 16), 1024: (4096, 24, 16), 1280: (5120, 32, 14)}
    counted = [sum(vit_parameters(224, patch, 3, d, ff, n, 1000)) for d, (ff, n, patch) in sizes.items()]
    assert counted == [5_717_416, 22_050_664, 304_326_632, 632_045_800]


def test_as_many_parameters_are_counted_as_the_model_has() -> None:
    model = VisionTransformer(SIZE, P, C, CLASSES, **WIDTHS)
    counted = vit_parameters(SIZE, P, C, D, FF, L, CLASSES)
    assert sum(counted) == sum(parameter.numel() for parameter in model.parameters())
    assert counted.layers == sum(parameter.numel() for parameter in model.layers.parameters())


# ---------------------------------------------------------------------------------------------------------------- windows


def window_loop(q: Tensor, k: Tensor, v: Tensor, window: int, shift: int, bias: Tensor | None) -> Tensor:
    """For every place: which places share its window and its side of the edges, by coordinates."""
    rows, columns = q.shape[2:4]
    result = torch.zeros(*q.shape[:4], v.shape[-1], dtype=q.dtype)
    places = [(y, x) for y in range(rows) for x in range(columns)]

    def home(y: int, x: int) -> tuple[int, ...]:
        return ((y - shift) % rows // window, (x - shift) % columns // window, int(y < shift), int(x < shift))

    def number(y: int, x: int) -> int:
        return (y - shift) % rows % window * window + (x - shift) % columns % window

    for y, x in places:
        seen = [place for place in places if home(*place) == home(y, x)]
        scores = torch.stack([(q[:, :, y, x] * k[:, :, b, a]).sum(-1) / math.sqrt(q.shape[-1]) for b, a in seen], -1)
        if bias is not None:
            scores = scores + bias[:, number(y, x)][:, [number(*place) for place in seen]]
        weights = scores.softmax(-1)
        result[:, :, y, x] = sum(weights[..., n, None] * v[:, :, b, a] for n, (b, a) in enumerate(seen))
    return result


@pytest.mark.parametrize(
    ("window", "shift", "grid"), [(2, 0, (4, 6)), (2, 1, (4, 6)), (3, 1, (6, 3)), (3, 2, (3, 6)), (4, 3, (4, 8))]
)
def test_windows_are_those_of_a_loop_over_places(window: int, shift: int, grid: tuple[int, int]) -> None:
    q, k, v = randn(2, 3, *grid, 5), randn(2, 3, *grid, 5, seed=1), randn(2, 3, *grid, 4, seed=2)
    for bias in (None, randn(3, window**2, window**2, seed=3)):
        near(window_attention(q, k, v, window, shift=shift, bias=bias), window_loop(q, k, v, window, shift, bias))


@pytest.mark.parametrize("shift", [0, 2])
def test_windows_are_those_of_swin(shift: int) -> None:
    torch.manual_seed(7)
    config = SwinConfig(window_size=4, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, drop_path_rate=0.0)
    config._attn_implementation = "eager"
    theirs = SwinLayer(config, D, (8, 12), H, shift_size=shift).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.normal_(std=0.3)
    x, attention = randn(2, 96, D, seed=8), theirs.attention
    normed = theirs.layernorm_before(x)
    q, k, v = (
        maps(normed).view(2, 8, 12, H, D // H).permute(0, 3, 1, 2, 4)
        for maps in (attention.q_proj, attention.k_proj, attention.v_proj)
    )
    heads = window_attention(q, k, v, 4, shift=shift, bias=attention.relative_position_bias()[0])
    ours = x + attention.o_proj(heads.permute(0, 2, 3, 1, 4).reshape(2, 96, D))
    ours = ours + theirs.mlp(theirs.layernorm_after(ours))
    near(ours, theirs(x, (8, 12))[0])


def test_half_precision_is_computed_in_float32_and_rounded_once() -> None:
    q, k, v = (randn(1, 2, 4, 4, 6, seed=seed, dtype=torch.bfloat16) for seed in range(3))
    wide = window_attention(q.float(), k.float(), v.float(), 2, shift=1)
    assert torch.equal(window_attention(q, k, v, 2, shift=1), wide.bfloat16())


@pytest.mark.parametrize(("window", "shift"), [(3, 0), (4, 0), (0, 0), (2, 2), (2, -1)])
def test_windows_that_do_not_fit_are_refused(window: int, shift: int) -> None:
    q = randn(1, 1, 4, 6, 2)
    with pytest.raises(ValueError, match="window"):
        window_attention(q, q, q, window, shift=shift)


# -------------------------------------------------------------------------------------------------------- local relations


def relation_loop(x: Tensor, q: Tensor, k: Tensor, prior: Tensor) -> Tensor:
    """Channel by channel, place by place, neighbour by neighbour."""
    result, half, share = torch.zeros_like(x), prior.shape[-1] // 2, x.shape[1] // q.shape[1]
    for channel in range(x.shape[1]):
        group = channel // share
        for y in range(x.shape[2]):
            for z in range(x.shape[3]):
                total: Any = 0
                for dy in range(-half, half + 1):
                    for dx in range(-half, half + 1):
                        if 0 <= y + dy < x.shape[2] and 0 <= z + dx < x.shape[3]:
                            score = prior[group, half + dy, half + dx]
                            score = score - (q[:, group, y, z] - k[:, group, y + dy, z + dx]) ** 2
                            total = total + score.exp()
                            result[:, channel, y, z] += score.exp() * x[:, channel, y + dy, z + dx]
                result[:, channel, y, z] /= total
    return result


@pytest.mark.parametrize(("side", "share"), [(3, 1), (3, 2), (5, 3), (1, 2)])
def test_local_relations_are_those_of_the_loop(side: int, share: int) -> None:
    x = randn(2, 2 * share, 4, 5)
    q, k, prior = randn(2, 2, 4, 5, seed=1), randn(2, 2, 4, 5, seed=2), randn(2, side, side, seed=3)
    near(local_relation(x, q, k, prior), relation_loop(x, q, k, prior))


def test_a_prior_that_is_sure_of_an_offset_moves_the_picture() -> None:
    x, zeros = randn(1, 1, 4, 5), torch.zeros(1, 1, 4, 5)
    prior = torch.zeros(1, 3, 3)
    prior[0, 0, 1] = 60  # the neighbour above
    near(local_relation(x, zeros, zeros, prior)[:, :, 1:], x[:, :, :-1])


def test_an_even_side_and_uneven_groups_are_refused() -> None:
    x = randn(1, 6, 4, 4)
    with pytest.raises(ValueError, match="middle"):
        local_relation(x, x[:, :2], x[:, :2], randn(2, 4, 4))
    with pytest.raises(ValueError, match="share"):
        local_relation(x[:, :5], x[:, :2], x[:, :2], randn(2, 3, 3))
