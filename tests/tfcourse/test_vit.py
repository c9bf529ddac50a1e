"""Vision Transformers against Hugging Face's with the same weights, PyTorch's unfold, and published counts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import SwinConfig, ViTConfig, ViTForImageClassification
from transformers.models.swin.modeling_swin import SwinLayer

from tfcourse.vit import (
    VisionTransformer,
    patchify,
    vit_parameters,
    window_attention,
)

from .drawing import near

D, H, FF, L, P, C, CLASSES, SIZE = 12, 3, 17, 2, 4, 3, 5, 12
WIDTHS: dict[str, Any] = {"d_model": D, "n_heads": H, "d_ff": FF, "n_layers": L}


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


# ---------------------------------------------------------------------------------------------------------------- patches


def test_patches_are_those_of_unfold_in_another_order() -> None:
    images = randn(2, 3, 6, 8)
    theirs = F.unfold(images, 2, stride=2).mT.reshape(2, 12, 3, 4).transpose(2, 3).flatten(2)
    assert torch.equal(patchify(images, 2), theirs)


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
