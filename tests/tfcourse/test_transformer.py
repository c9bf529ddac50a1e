"""The whole model: against PyTorch's stacks with copied weights, and its size."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tfcourse.positions import sinusoidal_positions
from tfcourse.transformer import Transformer

norm_first = pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])
SOURCE = torch.tensor([[3, 5, 4, 6, 2], [6, 3, 2, 0, 0], [4, 4, 5, 2, 0]])
TARGET = torch.tensor([[1, 4, 3, 6], [1, 5, 0, 0], [1, 3, 3, 4]])
MASK = SOURCE != 0


def randn(*shape: int, seed: int) -> Tensor:
    """Random numbers in float64."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def small(seed: int = 5, **options: Any) -> Transformer:
    """A small model in float64 and evaluation mode, every weight of it drawn anew."""
    sizes = {"source_vocab_size": 7, "target_vocab_size": 7, "d_model": 8, "n_heads": 2, "d_ff": 12, "n_layers": 2}
    model = Transformer(**{**sizes, **options}).double().eval()
    with torch.no_grad():
        for number, parameter in enumerate(model.parameters()):
            parameter.copy_(randn(*parameter.shape, seed=seed + number) / 2)
    return model


def copy_attention(theirs: nn.MultiheadAttention, ours: nn.Module) -> None:
    """Put our four maps where PyTorch keeps them."""
    maps = [getattr(ours, f"{letter}_proj") for letter in "qkv"]
    theirs.in_proj_weight.copy_(torch.cat([m.weight for m in maps]))
    theirs.in_proj_bias.copy_(torch.cat([m.bias for m in maps]))
    theirs.out_proj.load_state_dict(ours.o_proj.state_dict())  # type: ignore[union-attr]


@torch.no_grad()
def as_pytorch(model: Transformer, *, pre_norm: bool) -> nn.Transformer:
    """PyTorch's two stacks with the weights of a model."""
    theirs = nn.Transformer(8, 2, 2, 2, 12, 0.0, norm_first=pre_norm, batch_first=True).double().eval()
    for ours, layer in zip(model.encoder_layers, theirs.encoder.layers, strict=True):
        copy_attention(layer.self_attn, ours.self_attention)
        layer.linear1.load_state_dict(ours.feed_forward.up_proj.state_dict())
        layer.linear2.load_state_dict(ours.feed_forward.down_proj.state_dict())
        layer.norm1.load_state_dict(ours.self_attention_norm.state_dict())
        layer.norm2.load_state_dict(ours.feed_forward_norm.state_dict())
    for ours, layer in zip(model.decoder_layers, theirs.decoder.layers, strict=True):
        copy_attention(layer.self_attn, ours.self_attention)
        copy_attention(layer.multihead_attn, ours.cross_attention)
        layer.linear1.load_state_dict(ours.feed_forward.up_proj.state_dict())
        layer.linear2.load_state_dict(ours.feed_forward.down_proj.state_dict())
        layer.norm1.load_state_dict(ours.self_attention_norm.state_dict())
        layer.norm2.load_state_dict(ours.cross_attention_norm.state_dict())
        layer.norm3.load_state_dict(ours.feed_forward_norm.state_dict())
    if pre_norm:
        theirs.encoder.norm.load_state_dict(model.encoder_norm.state_dict())
        theirs.decoder.norm.load_state_dict(model.decoder_norm.state_dict())
    else:
        # PyTorch's whole model has a norm behind each stack in post-norm, too; the original has none.
        theirs.encoder.norm = theirs.decoder.norm = None
    return theirs


@norm_first
@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
def test_the_logits_are_those_of_pytorchs_stacks_between_our_embeddings_and_the_output(pre_norm, tied):
    model = small(pre_norm=pre_norm, tie_weights=tied)
    theirs = as_pytorch(model, pre_norm=pre_norm)
    read, write, out = (
        (model.embedding.weight,) * 3
        if tied
        else (model.source_embedding.weight, model.target_embedding.weight, model.output.weight)
    )
    source = read[SOURCE] * math.sqrt(8) + sinusoidal_positions(5, 8)
    target = write[TARGET] * math.sqrt(8) + sinusoidal_positions(4, 8)
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    padding = ~MASK
    hidden = theirs(source, target, tgt_mask=future, src_key_padding_mask=padding, memory_key_padding_mask=padding)
    torch.testing.assert_close(model(SOURCE, TARGET, MASK), hidden @ out.T)
    hidden = theirs(source, target, tgt_mask=future)
    torch.testing.assert_close(model(SOURCE, TARGET), hidden @ out.T)


def test_the_base_model_has_63_million_parameters_with_37000_tokens_and_the_papers_65_with_40700():
    with torch.device("meta"):
        base = Transformer(37_000, 37_000)
    # The paper says "about 37000 tokens" and "65 million": within 3 %, and met exactly by some 40 700 tokens.
    total = sum(parameter.numel() for parameter in base.parameters())
    assert total == 63_082_496
    assert round((65e6 - (total - 37_000 * 512)) / 512, -2) == 40_700


def test_a_learned_table_may_have_an_odd_width():
    assert small(d_model=9, n_heads=3, positions="learned", max_length=9)(SOURCE, TARGET).shape == (3, 4, 7)


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda: small(d_model=9, n_heads=3), "9"),
        (lambda: small()(SOURCE, TARGET, MASK[:, :-1]), r"\(3, 4\)"),
        (lambda: small()(SOURCE, TARGET, MASK.long()), "torch.int64"),
        (lambda: small().decode(TARGET, randn(3, 5, 8, seed=1), MASK[:1]), r"\(1, 5\)"),
    ],
)
def test_masks_and_widths_that_do_not_fit_are_refused_with_their_values(call, value):
    with pytest.raises(ValueError, match=value):
        call()
