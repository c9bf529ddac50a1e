"""The whole model: against PyTorch's stacks with copied weights, its size part by part, and what its options do."""

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
    parts = {name: sum(p.numel() for p in part.parameters()) for name, part in base.named_children()}
    attention, network, norm = 4 * (512 * 512 + 512), 512 * 2048 + 2048 + 2048 * 512 + 512, 2 * 512
    assert parts == {
        "embedding": 37_000 * 512,
        "encoder_layers": 6 * (attention + network + 2 * norm),
        "decoder_layers": 6 * (2 * attention + network + 3 * norm),
        "encoder_norm": 0,
        "decoder_norm": 0,
    }
    assert (parts["embedding"], parts["encoder_layers"], parts["decoder_layers"]) == (
        18_944_000,
        18_914_304,
        25_224_192,
    )
    total = sum(parameter.numel() for parameter in base.parameters())
    assert total == sum(parts.values()) == 63_082_496
    # The paper says "about 37000 tokens" and "65 million": within 3 %, and met exactly by some 40 700 tokens.
    assert 0.97 < total / 65e6 < 0.98
    assert round((65e6 - (total - parts["embedding"])) / 512, -2) == 40_700
    # The matrix counts once: without tying there would be two more of it.
    assert [name for name, _ in base.named_parameters() if "embedding" in name or "output" in name] == [
        "embedding.weight"
    ]


def test_without_tying_there_are_three_matrices_and_no_bias():
    with torch.device("meta"):
        model = Transformer(30, 20, d_model=8, n_heads=2, d_ff=12, n_layers=1, tie_weights=False)
    shapes = {name: tuple(p.shape) for name, p in model.named_parameters() if "layers" not in name}
    assert shapes == {
        "source_embedding.weight": (30, 8),
        "target_embedding.weight": (20, 8),
        "output.weight": (20, 8),
    }


def test_the_shared_matrix_learns_from_source_target_and_output():
    model = small()
    model(SOURCE[:1, :2], TARGET[:1, :2]).sum().backward()
    gradient = model.embedding.weight.grad
    assert gradient is not None
    assert (gradient.abs().sum(-1) > 0).all(), "as output, the matrix sends a gradient to every row"
    untied = small(tie_weights=False)
    with torch.no_grad():
        for matrix in (untied.source_embedding, untied.target_embedding, untied.output):
            matrix.weight.copy_(model.embedding.weight)
        rest = {name: x for name, x in model.state_dict().items() if name != "embedding.weight"}
        untied.load_state_dict(rest, strict=False)
    untied(SOURCE[:1, :2], TARGET[:1, :2]).sum().backward()
    three = [untied.source_embedding.weight.grad, untied.target_embedding.weight.grad, untied.output.weight.grad]
    torch.testing.assert_close(gradient, sum(three))


@norm_first
def test_later_target_tokens_change_no_earlier_logits_and_padding_changes_nothing(pre_norm):
    model = small(pre_norm=pre_norm)
    before = model(SOURCE, TARGET, MASK)
    later = TARGET.clone()
    later[:, 2:] = 6 - later[:, 2:]
    torch.testing.assert_close(model(SOURCE, later, MASK)[:, :2], before[:, :2], rtol=0, atol=1e-12)
    padded = torch.where(MASK, SOURCE, 5)
    torch.testing.assert_close(model(padded, TARGET, MASK), before, rtol=0, atol=1e-12)
    alone = model(SOURCE[1:2, :3], TARGET[1:2])
    torch.testing.assert_close(before[1:2], alone, rtol=0, atol=1e-12)


def test_without_positions_the_order_of_the_source_would_not_matter_and_with_them_it_does():
    order = torch.tensor([4, 2, 0, 3, 1])
    blind = small(positions="learned", max_length=9)
    with torch.no_grad():
        blind.position_table.zero_()  # type: ignore[union-attr]
    torch.testing.assert_close(blind(SOURCE[:, order], TARGET), blind(SOURCE, TARGET))
    for model in (small(), small(positions="learned", max_length=9)):
        assert (model(SOURCE[:, order], TARGET) - model(SOURCE, TARGET)).abs().max() > 1e-3


def test_a_learned_table_may_have_an_odd_width():
    assert small(d_model=9, n_heads=3, positions="learned", max_length=9)(SOURCE, TARGET).shape == (3, 4, 7)


def test_a_learned_table_that_holds_the_sinusoids_gives_the_same_logits_and_learns():
    given, learned = small(), small(positions="learned", max_length=9)
    learned.load_state_dict(given.state_dict(), strict=False)
    with torch.no_grad():
        learned.position_table.copy_(sinusoidal_positions(9, 8))  # type: ignore[union-attr]
    logits = learned(SOURCE, TARGET, MASK)
    torch.testing.assert_close(logits, given(SOURCE, TARGET, MASK))
    logits.square().sum().backward()
    used = learned.position_table.grad.abs().sum(-1) > 0  # type: ignore[union-attr]
    assert used.tolist() == [True] * 5 + [False] * 4, "the source has five places, and no more were used"


def test_positions_at_every_layer_are_added_before_each_and_change_nothing_where_there_is_one_layer():
    once, every = small(), small(positions_every_layer=True)
    every.load_state_dict(once.state_dict())
    assert (every(SOURCE, TARGET) - once(SOURCE, TARGET)).abs().max() > 1e-3
    rows = sinusoidal_positions(5, 8).double()
    x = once.embedding(SOURCE) * math.sqrt(8)
    for layer in once.encoder_layers:
        x = layer(x + rows)
    torch.testing.assert_close(every.encode(SOURCE), x)
    once, every = small(n_layers=1), small(n_layers=1, positions_every_layer=True)
    every.load_state_dict(once.state_dict())
    torch.testing.assert_close(every(SOURCE, TARGET), once(SOURCE, TARGET), rtol=0, atol=0)


def test_in_training_dropout_falls_on_embeddings_and_sublayers_and_in_evaluation_on_nothing():
    model = small(dropout=1.0, pre_norm=True)
    with_dropout, without = model(SOURCE, TARGET), small(dropout=0.0, pre_norm=True)
    torch.testing.assert_close(with_dropout, without(SOURCE, TARGET), rtol=0, atol=0)
    model.train()
    # Everything is dropped: what is left is the norm of nothing, which is its shift.
    expected = model.decoder_norm.bias @ model.embedding.weight.T
    torch.testing.assert_close(model(SOURCE, TARGET), expected.expand(3, 4, 7))


def test_scaled_embeddings_and_logits_are_of_order_one_at_the_start():
    torch.manual_seed(0)
    model = Transformer(1000, 1000, d_model=64, n_heads=4, d_ff=128, n_layers=1).eval()
    tokens = torch.arange(3, 600)[None]
    scaled = model.embedding(tokens) * 8
    assert 0.9 < scaled.std().item() < 1.1
    assert 0.5 < model(tokens[:, :30], tokens[:, :30]).std().item() < 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Transformer(30, 20), "one vocabulary, got 30 source and 20 target tokens"),
        (lambda: small(positions="rotary"), "'sinusoidal' or 'learned', got 'rotary'"),
        (lambda: small(n_heads=3), "d_model=8 cannot be divided into n_heads=3"),
        (lambda: small(positions="learned", max_length=4)(SOURCE, TARGET), "places 0 … 4 are asked for"),
        (lambda: small(d_model=9, n_heads=3), "must be even, got 9"),
        (lambda: small(activation="swish"), "'swish'"),
        (lambda: small()(SOURCE, TARGET, MASK[:, :-1]), r"source_mask \(3, 5\), got torch.bool \(3, 4\)"),
        (lambda: small()(SOURCE, TARGET, MASK.long()), r"boolean source_mask \(3, 5\), got torch.int64"),
        (lambda: small().decode(TARGET, randn(3, 5, 8, seed=1), MASK[:1]), r"source_mask \(3, 5\), got .*\(1, 5\)"),
    ],
)
def test_wrong_inputs_are_refused_with_their_values(call, message):
    with pytest.raises(ValueError, match=message):
        call()
