"""The layers against PyTorch's own with copied weights."""

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
    gelu,
    layer_norm,
    residual_post_norm,
    residual_pre_norm,
)

from .drawing import randn, redrawn

precise = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
norm_first = pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])
activations = pytest.mark.parametrize("activation", ["relu", "gelu"])
LENGTHS = torch.tensor([5, 2, 4])


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


@precise
@pytest.mark.parametrize("approximate", [False, True])
def test_gelu_and_its_gradients_equal_pytorchs(dtype, approximate, with_gradients, assert_near):
    x = torch.linspace(-6, 6, 101, dtype=torch.float64).to(dtype)
    expected = with_gradients(lambda x: F.gelu(x, approximate="tanh" if approximate else "none"), x.double())
    assert_near(with_gradients(lambda x: gelu(x, approximate=approximate), x), expected)


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


@norm_first
@activations
@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_layer_equals_pytorchs_with_the_same_weights(kind, eps, pre_norm, activation):
    make, norms = (EncoderLayer, ENCODER_NORMS) if kind == "encoder" else (DecoderLayer, DECODER_NORMS)
    make_theirs = nn.TransformerEncoderLayer if kind == "encoder" else nn.TransformerDecoderLayer
    ours = redrawn(make(8, 2, 12, dropout=0.3, pre_norm=pre_norm, activation=activation).double())
    for part in ours.children():
        if isinstance(part, nn.LayerNorm) and eps != 1e-5:
            part.eps = eps
    theirs = make_theirs(8, 2, 12, 0.3, activation, eps, norm_first=pre_norm, batch_first=True).double().eval()
    theirs.load_state_dict(to_pytorch(ours.state_dict(), norms))
    x, memory, mask = randn(3, 4, 8), randn(3, 5, 8, seed=9), padding_mask(LENGTHS, 5)
    if kind == "encoder":
        torch.testing.assert_close(ours(x), theirs(x))
        real, padded = mask[:, 0], theirs(memory, src_key_padding_mask=~mask[:, 0])
        torch.testing.assert_close(ours(memory, mask)[real], padded[real])
        torch.testing.assert_close(ours(x, causal_mask(4)), theirs(x, src_mask=~causal_mask(4)))
    else:
        future = ~causal_mask(4)
        torch.testing.assert_close(ours(x, memory), theirs(x, memory, tgt_mask=future))
        expected = theirs(x, memory, tgt_mask=future, memory_key_padding_mask=~mask[:, 0])
        torch.testing.assert_close(ours(x, memory, mask), expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda: gelu(torch.tensor([1, 2])),
        lambda: residual_post_norm(randn(2, 3), torch.tanh, randn(1), randn(3)),
        lambda: residual_pre_norm(randn(2, 3), torch.tanh, randn(1), randn(3)),
        lambda: EncoderLayer(6, 4, 8),
        lambda: DecoderLayer(4, 2, 8, activation="swish"),
    ],
)
def test_inputs_that_no_check_asks_about_are_refused_with_their_values(call):
    with pytest.raises(ValueError, match=r"\d|'"):
        call()
