"""The head explorer tells the truth about the weights; the recorder sees what a layer does."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tfcourse.attention import causal_mask
from tfcourse.lessons.explorers.heads import head_explorer, record_heads
from tfcourse.multihead import MultiHeadAttention

WORDS = ["the", "aunt", "near"]


def weights_of(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0)).softmax(-1)


STACK = weights_of(2, 4, 3, 3)


@pytest.mark.parametrize(
    ("given", "heads"),
    [
        (STACK, [4, 4]),
        (STACK[0], [4]),
        (list(STACK), [4, 4]),
        ([STACK[0], STACK[1, :2]], [4, 2]),
        *((STACK.to(dtype).requires_grad_(), [4, 4]) for dtype in (torch.float16, torch.bfloat16, torch.float64)),
    ],
)
def test_each_form_and_precision_of_the_weights_is_accepted(given: Tensor | list[Tensor], heads: list[int]) -> None:
    assert [len(layer) for layer in head_explorer(WORDS, given, caption="c").weights] == heads


def test_rows_that_do_not_sum_to_one_are_shown_as_they_are() -> None:
    weights = weights_of(1, 2, 3, 3)
    weights[0, 1, 2] = 0.0  # a fully masked row
    weights[0, 0, 1] = 0.9
    rows = head_explorer(WORDS, weights, caption="c").weights
    assert (rows[0][1][2], rows[0][0][1]) == ((0, 0, 0), (0.9, 0.9, 0.9))


@pytest.fixture
def layer() -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(12, 3)


def by_loop(layer: MultiHeadAttention, x: Tensor, context: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Weights and outputs of every head, one head and one example at a time; mask (B, H, T, S)."""
    q, k, v = layer.q_proj(x), layer.k_proj(context), layer.v_proj(context)
    mask = torch.tensor(True).expand(len(x), 3, x.shape[1], context.shape[1]) if mask is None else mask
    weights, outputs = [], []
    for b in range(len(x)):
        for h in range(3):
            cut = slice(4 * h, 4 * h + 4)
            scores = (q[b, :, cut] @ k[b, :, cut].T / 2.0).masked_fill(~mask[b, h], -torch.inf)
            weights.append(scores.softmax(-1))
            outputs.append(weights[-1] @ v[b, :, cut])
    return torch.stack(weights).unflatten(0, (len(x), 3)), torch.stack(outputs).unflatten(0, (len(x), 3))


MASKS = {
    "none": None,
    "for everybody": torch.rand(5, 7, generator=torch.Generator().manual_seed(1)) < 0.6,
    "by example": torch.rand(2, 5, 7, generator=torch.Generator().manual_seed(2)) < 0.6,
    "by head": torch.rand(2, 3, 5, 7, generator=torch.Generator().manual_seed(3)) < 0.6,
}


@pytest.mark.parametrize("by_position", [True, False], ids=["by position", "by keyword"])
@pytest.mark.parametrize("name", MASKS)
def test_recorded_weights_and_outputs_are_those_of_a_loop_over_heads(
    layer: MultiHeadAttention, name: str, by_position: bool
) -> None:
    x, context, mask = torch.randn(2, 5, 12), torch.randn(2, 7, 12), MASKS[name]
    if mask is not None:
        mask = mask.clone()
        mask[..., 0] = True  # no empty row: the loop's softmax over nothing is NaN
    with record_heads([layer]) as records:
        layer(x, context, mask) if by_position else layer(x, context=context, mask=mask)
    full = None if mask is None else (mask.unsqueeze(1) if mask.ndim == 3 else mask).expand(2, 3, 5, 7)
    weights, outputs = by_loop(layer, x, context, full)
    record = records[0]
    assert record is not None
    torch.testing.assert_close(record.weights, weights)
    torch.testing.assert_close(record.outputs, outputs)


def test_recording_changes_neither_outputs_nor_gradients(layer: MultiHeadAttention) -> None:
    x = torch.randn(2, 5, 12, requires_grad=True)
    plain = layer(x, mask=causal_mask(5))
    (expected,) = torch.autograd.grad(plain.square().sum(), x)
    with record_heads([layer]) as records:
        recorded = layer(x, mask=causal_mask(5))
    (grad,) = torch.autograd.grad(recorded.square().sum(), x)
    torch.testing.assert_close(recorded, plain, rtol=0, atol=0)
    torch.testing.assert_close(grad, expected, rtol=0, atol=0)
    assert records[0] is not None
    assert not records[0].weights.requires_grad


def test_record_is_that_of_the_last_pass_without_an_earlier_mask_and_stays_after_the_block(
    layer: MultiHeadAttention,
) -> None:
    first, second, third = torch.randn(3, 2, 5, 12)
    with record_heads([layer]) as records:
        assert records == [None]
        layer(first, mask=causal_mask(5))
        before = records[0]
        layer(second)
    layer(third)  # the hooks are gone
    assert before is not None
    assert records[0] is not None
    torch.testing.assert_close(records[0].weights, by_loop(layer, second, second, None)[0])
    causal = causal_mask(5).expand(2, 3, 5, 5)
    torch.testing.assert_close(before.weights, by_loop(layer, first, first, causal)[0])


def test_hooks_are_removed_when_the_model_fails(layer: MultiHeadAttention) -> None:
    with pytest.raises(ValueError, match="shape"), record_heads([layer]):
        layer(torch.randn(12))
    assert not layer._forward_hooks
    assert not layer._forward_pre_hooks
    assert not any(projection._forward_hooks or projection._forward_pre_hooks for projection in layer.children())


def test_each_layer_of_a_model_has_its_own_record() -> None:
    torch.manual_seed(1)
    layers = [MultiHeadAttention(12, 3), MultiHeadAttention(12, 2)]
    x = torch.randn(2, 5, 12)
    with record_heads(layers) as records:
        layers[1](layers[0](x))
    assert [record.weights.shape[1] for record in records if record is not None] == [3, 2]
