"""The layers against PyTorch's own with copied weights, in both directions, and against loops written from the formulas."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tfcourse.attention import causal_mask, padding_mask
from tfcourse.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    gelu,
    layer_norm,
    residual_post_norm,
    residual_pre_norm,
)
from tfcourse.multihead import MultiHeadAttention

precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
half = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
norm_first = pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])
activations = pytest.mark.parametrize("activation", ["relu", "gelu"])
LENGTHS = torch.tensor([5, 2, 4])


def randn(*shape: int, seed: int = 3, dtype: torch.dtype = torch.float64) -> Tensor:
    """Random inputs in float64, then rounded, so that every dtype sees the same numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def shuffled(module: nn.Module, seed: int = 5) -> nn.Module:
    """The module in float64 and evaluation mode, every weight, factor and bias of it drawn anew."""
    module = module.double().eval()
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            parameter.copy_(randn(*parameter.shape, seed=seed + number) / 2)
    return module


# ------------------------------------------------------------------------------------------------------ norm and gelu


@precise
@given(shape=st.lists(st.integers(1, 5), min_size=1, max_size=4), eps=st.sampled_from([1e-5, 0.2]))
def test_layer_norm_and_its_gradients_equal_pytorchs(dtype, shape, eps, with_gradients, assert_near):
    shape = [*shape[:-1], shape[-1] + 1]
    x, gamma, beta = 2 * randn(*shape) + 1, randn(shape[-1], seed=4), randn(shape[-1], seed=5)
    inputs = [y.to(dtype) for y in (x, gamma, beta)]
    actual = with_gradients(lambda x, g, b: layer_norm(x, g, b, eps), *inputs)
    expected = with_gradients(lambda x, g, b: F.layer_norm(x, x.shape[-1:], g, b, eps), *(y.double() for y in inputs))
    # A row of two close numbers has a small variance, and its gradients are large: compared relative to the largest.
    sizes = [max(float(y.abs().max()), 1.0) for y in expected]
    for mine, theirs, size in zip(actual, expected, sizes, strict=True):
        assert_near(mine / size, theirs / size)


def test_every_row_has_mean_zero_and_variance_one_before_it_is_stretched_and_shifted():
    x = 50 + 7 * randn(2, 3, 100)
    rows = layer_norm(x, torch.ones(100).double(), torch.zeros(100).double())
    torch.testing.assert_close(rows.mean(-1), torch.zeros(2, 3).double(), rtol=0, atol=1e-12)
    torch.testing.assert_close(rows.var(-1, correction=0), torch.ones(2, 3).double(), rtol=0, atol=1e-5)


def test_a_row_of_equal_numbers_becomes_the_shift_and_passes_finite_gradients():
    x, gamma, beta = torch.full((2, 4), 3.0, requires_grad=True), randn(4).float(), randn(4, seed=5).float()
    output = layer_norm(x, gamma, beta)
    torch.testing.assert_close(output, beta.expand(2, 4))
    (grad,) = torch.autograd.grad(output.sum(), x)
    assert grad.isfinite().all()


@half
def test_half_precision_does_not_overflow_where_squares_would(dtype, assert_near):
    x, gamma, beta = (1000 * randn(3, 8)).to(dtype), randn(8, dtype=dtype), randn(8, seed=6, dtype=dtype)
    actual = layer_norm(x, gamma, beta)
    assert actual.dtype == dtype
    assert_near(actual / 4, layer_norm(x.double(), gamma.double(), beta.double()) / 4)


@precise
@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_and_its_gradients_equal_pytorchs(dtype, approximate, with_gradients, assert_near):
    x = torch.linspace(-6, 6, 101, dtype=torch.float64).to(dtype)
    expected = with_gradients(lambda x: F.gelu(x, approximate="tanh" if approximate else "none"), x.double())
    assert_near(with_gradients(lambda x: gelu(x, approximate=approximate), x), expected)


def test_gelu_is_x_times_the_probability_of_a_normal_number_below_x():
    for x in (-2.0, -0.5, 0.0, 1.0, 3.0):
        below = (1 + math.erf(x / math.sqrt(2))) / 2
        assert gelu(torch.tensor(x, dtype=torch.float64)).item() == pytest.approx(x * below, rel=1e-12)


def test_the_two_forms_of_gelu_differ_by_less_than_a_thousandth_but_do_differ():
    x = torch.linspace(-5, 5, 1001)
    gap = (gelu(x) - gelu(x, approximate=True)).abs().max().item()
    assert 1e-4 < gap < 1e-3


@half
def test_gelu_in_half_precision_is_computed_wide(dtype, assert_near):
    x = torch.linspace(-4, 4, 33).to(dtype)
    for approximate in (False, True):
        actual = gelu(x, approximate=approximate)
        assert actual.dtype == dtype
        assert_near(actual, gelu(x.double(), approximate=approximate))


# ------------------------------------------------------------------------------------------------ feed-forward network


@activations
def test_the_feed_forward_network_is_two_maps_with_a_bend_between_them_row_by_row(activation):
    network, x = shuffled(FeedForward(4, 7, activation=activation)), randn(2, 3, 4)
    bend = F.relu if activation == "relu" else F.gelu
    for b in range(2):
        for t in range(3):
            inner = bend(network.up_proj.weight @ x[b, t] + network.up_proj.bias)
            torch.testing.assert_close(network(x)[b, t], network.down_proj.weight @ inner + network.down_proj.bias)


def test_the_feed_forward_network_has_two_maps_with_biases_and_nothing_else():
    shapes = {name: tuple(weight.shape) for name, weight in FeedForward(4, 7).state_dict().items()}
    assert shapes == {
        "up_proj.weight": (7, 4),
        "up_proj.bias": (7,),
        "down_proj.weight": (4, 7),
        "down_proj.bias": (4,),
    }


# ------------------------------------------------------------------------------------------------ residual connections


@precise
def test_both_orders_of_norm_and_sum_are_those_of_their_formulas(dtype, with_gradients, assert_near):
    x, gamma, beta, w = (randn(*s, seed=i, dtype=dtype) for i, s in enumerate([(2, 3, 4), (4,), (4,), (4, 4)]))

    def norm(x: Tensor, gamma: Tensor, beta: Tensor) -> Tensor:
        return F.layer_norm(x, (4,), gamma, beta)

    post = with_gradients(lambda x, g, b, w: residual_post_norm(x, lambda y: (y @ w).tanh(), g, b), x, gamma, beta, w)
    pre = with_gradients(lambda x, g, b, w: residual_pre_norm(x, lambda y: (y @ w).tanh(), g, b), x, gamma, beta, w)
    wide = [y.double() for y in (x, gamma, beta, w)]
    expected_post = with_gradients(lambda x, g, b, w: norm(x + (x @ w).tanh(), g, b), *wide)
    expected_pre = with_gradients(lambda x, g, b, w: x + (norm(x, g, b) @ w).tanh(), *wide)
    assert_near(tuple(y / 10 for y in post), tuple(y / 10 for y in expected_post))
    assert_near(tuple(y / 10 for y in pre), tuple(y / 10 for y in expected_pre))


@pytest.mark.parametrize("residual", [residual_post_norm, residual_pre_norm])
def test_dropout_falls_on_what_the_sublayer_says_and_scales_what_it_keeps(residual):
    torch.manual_seed(0)
    seen: list[Tensor] = []

    def sublayer(x: Tensor) -> Tensor:
        seen.append(torch.ones(400, 50))
        return seen[-1]

    x, gamma, beta = torch.zeros(400, 50), torch.ones(50), torch.zeros(50)
    if residual is residual_pre_norm:
        answer = residual(x, sublayer, gamma, beta, dropout=0.25)
        kept = (answer != 0).double().mean().item()
        assert answer.unique().tolist() == [0.0, pytest.approx(4 / 3)]
        # 20000 draws: the share that is kept has a standard deviation of 0.003.
        assert abs(kept - 0.75) < 0.015
    else:
        # What is normalised is x + dropped: two values a row, and of zeros only where everything was kept.
        answer = residual(x, sublayer, gamma, beta, dropout=0.25)
        assert all(len(row.unique()) == 2 for row in answer)
        assert abs((answer > 0).double().mean().item() - 0.75) < 0.015
    assert len(seen) == 1, "the sublayer is asked once"


@pytest.mark.parametrize("residual", [residual_post_norm, residual_pre_norm])
def test_where_everything_is_dropped_the_input_is_left(residual):
    x, gamma, beta = randn(2, 3, 4), randn(4, seed=1), randn(4, seed=2)
    left = residual(x, lambda y: y + 1, gamma, beta, dropout=1.0)
    torch.testing.assert_close(left, layer_norm(x, gamma, beta) if residual is residual_post_norm else x)


# ---------------------------------------------------------------------------------------------- PyTorch's own layers

# Our names and PyTorch's, part by part; the three maps of an attention lie in one matrix there.
PARTS = {
    "feed_forward.up_proj": "linear1",
    "feed_forward.down_proj": "linear2",
    "self_attention.o_proj": "self_attn.out_proj",
    "cross_attention.o_proj": "multihead_attn.out_proj",
}
ENCODER_NORMS = {"self_attention_norm": "norm1", "feed_forward_norm": "norm2"}
DECODER_NORMS = {"self_attention_norm": "norm1", "cross_attention_norm": "norm2", "feed_forward_norm": "norm3"}
FUSED = {"self_attention": "self_attn", "cross_attention": "multihead_attn"}


def to_pytorch(state: dict[str, Tensor], norms: dict[str, str]) -> dict[str, Tensor]:
    """Our weights under PyTorch's names."""
    found = {}
    for mine, theirs in {**PARTS, **norms}.items():
        for kind in ("weight", "bias"):
            if f"{mine}.{kind}" in state:
                found[f"{theirs}.{kind}"] = state[f"{mine}.{kind}"]
    for mine, theirs in FUSED.items():
        if f"{mine}.q_proj.weight" in state:
            for kind in ("weight", "bias"):
                maps = [state[f"{mine}.{letter}_proj.{kind}"] for letter in "qkv"]
                found[f"{theirs}.in_proj_{kind}"] = torch.cat(maps)
    return found


def from_pytorch(state: dict[str, Tensor], norms: dict[str, str]) -> dict[str, Tensor]:
    """PyTorch's weights under our names."""
    found = {}
    for mine, theirs in {**PARTS, **norms}.items():
        for kind in ("weight", "bias"):
            if f"{theirs}.{kind}" in state:
                found[f"{mine}.{kind}"] = state[f"{theirs}.{kind}"]
    for mine, theirs in FUSED.items():
        if f"{theirs}.in_proj_weight" in state:
            for kind in ("weight", "bias"):
                for letter, part in zip("qkv", state[f"{theirs}.in_proj_{kind}"].chunk(3), strict=True):
                    found[f"{mine}.{letter}_proj.{kind}"] = part
    return found


@norm_first
@activations
@pytest.mark.parametrize("direction", ["to PyTorch", "from PyTorch"])
def test_an_encoder_layer_equals_pytorchs_with_the_same_weights(pre_norm, activation, direction):
    ours = shuffled(EncoderLayer(8, 2, 12, dropout=0.3, pre_norm=pre_norm, activation=activation))
    theirs = shuffled(
        nn.TransformerEncoderLayer(8, 2, 12, 0.3, activation, norm_first=pre_norm, batch_first=True), seed=40
    )
    if direction == "to PyTorch":
        theirs.load_state_dict(to_pytorch(ours.state_dict(), ENCODER_NORMS))
    else:
        ours.load_state_dict(from_pytorch(theirs.state_dict(), ENCODER_NORMS))
    x, mask = randn(3, 5, 8), padding_mask(LENGTHS, 5)
    torch.testing.assert_close(ours(x), theirs(x))
    real = mask[:, 0]
    padded = theirs(x, src_key_padding_mask=~real)
    torch.testing.assert_close(ours(x, mask)[real], padded[real])
    torch.testing.assert_close(ours(x, causal_mask(5)), theirs(x, src_mask=~causal_mask(5)))


@norm_first
@activations
@pytest.mark.parametrize("direction", ["to PyTorch", "from PyTorch"])
def test_a_decoder_layer_equals_pytorchs_with_the_same_weights(pre_norm, activation, direction):
    ours = shuffled(DecoderLayer(8, 2, 12, dropout=0.3, pre_norm=pre_norm, activation=activation))
    theirs = shuffled(
        nn.TransformerDecoderLayer(8, 2, 12, 0.3, activation, norm_first=pre_norm, batch_first=True), seed=40
    )
    if direction == "to PyTorch":
        theirs.load_state_dict(to_pytorch(ours.state_dict(), DECODER_NORMS))
    else:
        ours.load_state_dict(from_pytorch(theirs.state_dict(), DECODER_NORMS))
    x, memory, mask = randn(3, 4, 8), randn(3, 5, 8, seed=9), padding_mask(LENGTHS, 5)
    past = ~causal_mask(4)
    torch.testing.assert_close(ours(x, memory), theirs(x, memory, tgt_mask=past))
    expected = theirs(x, memory, tgt_mask=past, memory_key_padding_mask=~mask[:, 0])
    torch.testing.assert_close(ours(x, memory, mask), expected)


@norm_first
@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_the_eps_of_the_norms_is_used_as_in_pytorchs_layers(kind, pre_norm):
    ours = shuffled(kind(8, 2, 12, pre_norm=pre_norm))
    for part in ours.children():
        if isinstance(part, nn.LayerNorm):
            part.eps = 0.1
    make = nn.TransformerEncoderLayer if kind is EncoderLayer else nn.TransformerDecoderLayer
    theirs = make(8, 2, 12, 0.0, layer_norm_eps=0.1, norm_first=pre_norm, batch_first=True).double().eval()
    theirs.load_state_dict(to_pytorch(ours.state_dict(), ENCODER_NORMS if kind is EncoderLayer else DECODER_NORMS))
    x, memory = randn(3, 4, 8), randn(3, 5, 8, seed=9)
    if kind is EncoderLayer:
        torch.testing.assert_close(ours(x), theirs(x))
    else:
        torch.testing.assert_close(ours(x, memory), theirs(x, memory, tgt_mask=~causal_mask(4)))


@norm_first
def test_gradients_of_a_decoder_layer_equal_pytorchs(pre_norm):
    ours = shuffled(DecoderLayer(8, 2, 12, pre_norm=pre_norm))
    theirs = nn.TransformerDecoderLayer(8, 2, 12, 0.0, norm_first=pre_norm, batch_first=True).double()
    theirs.load_state_dict(to_pytorch(ours.state_dict(), DECODER_NORMS))
    x, memory, weighting = randn(3, 4, 8), randn(3, 5, 8, seed=9), randn(3, 4, 8, seed=10)
    (ours(x, memory) * weighting).sum().backward()
    (theirs(x, memory, tgt_mask=~causal_mask(4)) * weighting).sum().backward()
    gradients = to_pytorch({name: w.grad for name, w in ours.named_parameters()}, DECODER_NORMS)
    assert gradients.keys() == dict(theirs.named_parameters()).keys()
    for name, weight in theirs.named_parameters():
        torch.testing.assert_close(gradients[name], weight.grad, msg=lambda seen, name=name: f"{name}: {seen}")


# ---------------------------------------------------------------------------------------------------------- properties


@norm_first
@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_dropout_falls_in_training_alone_and_takes_all_that_the_sublayers_say(kind, pre_norm):
    layer, x = shuffled(kind(8, 2, 12, dropout=1.0, pre_norm=pre_norm)), randn(2, 4, 8)
    inputs = (x,) if kind is EncoderLayer else (x, randn(2, 3, 8, seed=8))
    layer.train()
    names = [name for name, part in layer.named_children() if isinstance(part, nn.LayerNorm)]
    expected = x
    for name in names if not pre_norm else []:
        norm = getattr(layer, name)
        expected = layer_norm(expected, norm.weight, norm.bias)
    torch.testing.assert_close(layer(*inputs), expected)
    assert (layer.eval()(*inputs) - expected).abs().max() > 0.1
    again = kind(8, 2, 12, pre_norm=pre_norm).double().eval()
    again.load_state_dict(layer.state_dict())
    torch.testing.assert_close(layer(*inputs), again(*inputs), rtol=0, atol=0)


@norm_first
def test_the_future_of_the_target_changes_nothing_before_it(pre_norm):
    layer = shuffled(DecoderLayer(8, 2, 12, pre_norm=pre_norm))
    x, memory = randn(2, 5, 8), randn(2, 3, 8, seed=8)
    changed = x.clone()
    changed[:, 3:] += 1.0
    before, after = layer(x, memory), layer(changed, memory)
    torch.testing.assert_close(before[:, :3], after[:, :3], rtol=0, atol=1e-13)
    assert (before[:, 3:] - after[:, 3:]).abs().min() > 1e-9


def test_padding_in_the_memory_is_never_read():
    layer, mask = shuffled(DecoderLayer(8, 2, 12)), padding_mask(LENGTHS, 5)
    x, memory = randn(3, 4, 8), randn(3, 5, 8, seed=8)
    other = torch.where(mask.transpose(1, 2), memory, memory + 100.0)
    torch.testing.assert_close(layer(x, memory, mask), layer(x, other, mask), rtol=0, atol=0)


def test_layers_are_built_of_the_parts_that_are_promised():
    encoder, decoder = EncoderLayer(8, 2, 12), DecoderLayer(8, 2, 12)
    kinds = {"self_attention": MultiHeadAttention, "feed_forward": FeedForward, "dropout": nn.Dropout}
    norms = dict.fromkeys(ENCODER_NORMS, nn.LayerNorm)
    assert {name: type(part) for name, part in encoder.named_children()} == kinds | norms
    kinds["cross_attention"] = MultiHeadAttention
    norms = dict.fromkeys(DECODER_NORMS, nn.LayerNorm)
    assert {name: type(part) for name, part in decoder.named_children()} == kinds | norms


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: layer_norm(randn(2, 3), randn(1), randn(3)), r"shape \(3,\).*\(2, 3\), got \(1,\) and \(3,\)"),
        (lambda: layer_norm(randn(2, 3), randn(3), randn(2, 3)), r"got \(3,\) and \(2, 3\)"),
        (lambda: layer_norm(torch.ones(2, 3).long(), randn(3), randn(3)), "floating-point numbers, got torch.int64"),
        (lambda: gelu(torch.tensor([1, 2])), "floating-point numbers, got torch.int64"),
        (lambda: residual_post_norm(randn(2, 3), torch.tanh, randn(1), randn(3)), r"got \(1,\) and \(3,\)"),
        (lambda: residual_pre_norm(randn(2, 3), torch.tanh, randn(1), randn(3)), r"got \(1,\) and \(3,\)"),
        (lambda: FeedForward(4, 8, activation="tanh"), "'relu' or 'gelu', got 'tanh'"),
        (lambda: EncoderLayer(6, 4, 8), "d_model=6 cannot be divided into n_heads=4"),
        (lambda: DecoderLayer(4, 2, 8, activation="swish"), "'swish'"),
    ],
)
def test_wrong_inputs_are_refused_with_their_values_and_shapes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
