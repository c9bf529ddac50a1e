"""Every exercise on a CUDA device: the device of the result, and the numbers of the CPU."""

import pytest
import torch
from torch import Tensor

import tfcourse.attention
import tfcourse.multihead
from tfcourse.attention import attention_backward, padding_mask, scaled_dot_product_attention, tiled_attention

DEVICE = "cuda"
NAMES = [*tfcourse.attention.__all__, *tfcourse.multihead.__all__]
MAKES_TENSORS = [
    n for n in NAMES if n not in {"attention_cost", "AttentionCost", "attention_parameters", "AttentionParameters"}
]
# Of chapter 05, what has the dtype of its inputs; sinusoids are float32 and tokens integers, whatever goes in.
MAKES_TENSORS += [
    "add_positions",
    "layer_norm",
    "gelu",
    "FeedForward",
    "residual_post_norm",
    "residual_pre_norm",
    "EncoderLayer",
    "DecoderLayer",
    "Transformer",
    "cross_entropy",
]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: torch.cuda.is_available() is False"),
]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MAKES_TENSORS)
def test_every_exercise_stays_on_the_device_and_equals_the_cpu(name, dtype, exercise_call, assert_near):
    function, args = exercise_call(name, dtype, DEVICE)
    actual = function(*args)
    # The same numbers, already rounded to the dtype, computed in float64 on the CPU.
    reference, args = exercise_call(name, dtype)
    if isinstance(reference, torch.nn.Module):
        reference = reference.double()
    expected = reference(*(x.double() if isinstance(x, Tensor) and x.is_floating_point() else x for x in args))
    for x, y in zip(*(r if isinstance(r, tuple) else (r,) for r in (actual, expected)), strict=True):
        assert x.device.type == DEVICE
        if x.dtype == torch.bool:
            assert torch.equal(x.cpu(), y)
        else:
            assert x.dtype == dtype
            # Relative to the largest number: sums of products are not of order one.
            assert_near(x.cpu() / y.abs().max(), y / y.abs().max())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_on_the_device_equal_those_by_hand_on_the_cpu(dtype, exercise_call, assert_near):
    _, (q, k, v, grad_output, mask) = exercise_call("attention_backward", dtype, DEVICE)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    actual = torch.autograd.grad(scaled_dot_product_attention(*leaves, mask), leaves, grad_output)
    on_cpu = [x.detach().cpu().double() for x in (*leaves, grad_output)]
    assert_near(tuple(x.cpu() for x in actual), attention_backward(*on_cpu, mask.cpu()))
    assert not actual[0][:, 1].any(), "a fully masked row passes no gradient"


def test_padding_mask_without_a_length_is_made_on_the_device_of_the_lengths():
    mask = padding_mask(torch.tensor([2, 3], device=DEVICE))
    assert mask.device.type == DEVICE
    assert mask.tolist() == [[[True, True, False]], [[True, True, True]]]


def test_tiled_attention_needs_less_memory_than_the_weights_it_never_holds():
    N = 4096
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(N, 32, generator=generator).to(DEVICE) for _ in range(3))
    tiled_attention(q, k, v)  # the first product reserves a workspace, which is not to be counted
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    output = tiled_attention(q, k, v)
    torch.cuda.synchronize()
    weights = 4 * N * N
    assert torch.cuda.max_memory_allocated() - before < weights / 4
    torch.testing.assert_close(output, scaled_dot_product_attention(q, k, v), rtol=1e-4, atol=1e-4)
