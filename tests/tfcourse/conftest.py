"""What the tests of the reference package share: drawn inputs, tolerances, gradients, and one call of every exercise."""

import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

import tfcourse.attention as attention
import tfcourse.multihead as multihead

# The models of the oracles are built from a configuration with random weights: nothing is to be looked up, or fetched.
os.environ["HF_HUB_OFFLINE"] = "1"

# The same examples in every run: a red test is red again tomorrow, on every machine.
settings.register_profile("deterministic", derandomize=True, deadline=None, max_examples=40, database=None)
settings.load_profile("deterministic")

# Inputs are of order one and short. float64 and float32 then lose a few units in the last place over sums of tens of
# terms. Half precision keeps 8 (bfloat16) or 11 (float16) bits, and weights, values and output are each rounded once.
TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


@pytest.fixture(scope="session")
def assert_near() -> Callable[..., None]:
    """Compare a result with a float64 oracle, as exactly as the dtype of the result allows."""

    def compare(actual: Any, expected: Any, hint: str = "") -> None:
        if isinstance(actual, tuple):
            assert len(actual) == len(expected)
            for one, other in zip(actual, expected, strict=True):
                compare(one, other, hint)
            return
        tolerance = TOLERANCES[actual.dtype]
        torch.testing.assert_close(
            actual,
            expected,
            rtol=tolerance,
            atol=tolerance,
            check_dtype=False,
            check_device=False,
            msg=lambda seen: f"{hint}\n{seen}",
        )

    return compare


@pytest.fixture(scope="session")
def with_gradients() -> Callable[..., tuple[Tensor, ...]]:
    """Run a function and return its output, then the gradients of a random weighting of the output."""

    def run(function: Callable[..., Tensor], *inputs: Tensor) -> tuple[Tensor, ...]:
        leaves = [x.detach().clone().requires_grad_() for x in inputs]
        output = function(*leaves)
        generator = torch.Generator().manual_seed(output.numel())
        weighting = torch.randn(output.shape, generator=generator, dtype=torch.float64)
        gradients = torch.autograd.grad(output, leaves, weighting.to(output))
        return (output.detach(), *gradients)

    return run


@st.composite
def _attention_inputs(
    draw: st.DrawFn, dtype: torch.dtype = torch.float64, masked: bool = True, blind: bool = True
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Draw q, k, v and a mask; sizes pairwise distinct. With `blind`, some queries may attend to nothing."""
    T, S, Dh, Dv = draw(st.lists(st.integers(1, 9), min_size=4, max_size=4, unique=True))
    leading = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32 - 1)))
    q, k, v = (
        torch.randn(*leading, *shape, generator=generator, dtype=torch.float64).to(dtype)
        for shape in ((T, Dh), (S, Dh), (S, Dv))
    )
    if not masked or draw(st.integers(0, 4)) == 0:
        return q, k, v, None
    shape = draw(st.sampled_from([(*leading, T, S), (T, S), (*leading, 1, S)]))
    mask = torch.rand(shape, generator=generator) < draw(st.sampled_from([0.3, 0.7]))
    if blind:
        mask[..., draw(st.integers(0, shape[-2] - 1)), :] = False
    else:
        mask[..., draw(st.integers(0, S - 1))] = True
    return q, k, v, mask


@pytest.fixture(scope="session")
def attention_inputs() -> Callable[..., st.SearchStrategy[tuple[Tensor, Tensor, Tensor, Tensor | None]]]:
    """The strategy that draws q, k, v and a mask."""
    return _attention_inputs


@pytest.fixture(scope="session")
def exercise_call() -> Callable[..., tuple[Callable[..., Any], tuple[Any, ...]]]:
    """One call of the named exercise: the function and its arguments, on a device and in a dtype."""

    def make(name: str, dtype: torch.dtype = torch.float64, device: str = "cpu") -> Any:
        generator = torch.Generator().manual_seed(20)

        def randn(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device, dtype)

        B, H, T, S, D, Dh, Dv = 2, 3, 4, 5, 12, 6, 7
        q, k, v, grad_output = randn(B, T, Dh), randn(B, S, Dh), randn(B, S, Dv), randn(B, T, Dv)
        x, context = randn(B, T, D), randn(B, S, D)
        w_q, w_k, w_v = randn(D, Dh), randn(D, Dh), randn(D, Dv)
        mask = torch.rand(B, T, S, generator=generator) < 0.6
        mask[:, 1] = False
        mask = mask.to(device)
        if name == "MultiHeadAttention":
            layer = multihead.MultiHeadAttention(D, H)
            with torch.no_grad():
                for parameter in layer.parameters():
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
            return layer.to(device, dtype), (x, context, mask)
        calls: dict[str, tuple[Any, ...]] = {
            "soft_lookup": (q[0, 0], k[0], v[0]),
            "masked_attention_weights": (q, k, mask),
            "scaled_dot_product_attention": (q, k, v, mask),
            "causal_mask": (T, device),
            "padding_mask": (torch.tensor([3, 5, 1], device=device), S),
            "attention_projections": (x, context, w_q, w_k, w_v),
            "projected_attention": (x, context, w_q, w_k, w_v, mask),
            "cosine_attention": (q, k, v, mask),
            "score_variance": (q, k),
            "merge_query_key": (w_q, w_k),
            "attention_backward": (q, k, v, grad_output, mask),
            "tiled_attention": (q, k, v, 2),
            "attention_cost": (T, S, Dh, Dv),
            "split_heads": (x, H),
            "merge_heads": (randn(B, H, T, Dh),),
            "attention_parameters": (D, H, Dh, Dv, T),
            "merge_value_output": (randn(H, D, Dv), randn(H * Dv, S)),
            "head_ablation": (randn(B, H, T, Dh), randn(D, H * Dh), randn(D)),
        }
        return getattr(attention if hasattr(attention, name) else multihead, name), calls[name]

    return make
