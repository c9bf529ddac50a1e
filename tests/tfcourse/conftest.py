"""What the tests of the reference package share: drawn inputs, tolerances, gradients, and one call of every exercise."""

import inspect
import os
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

import tfcourse.alignment as alignment
import tfcourse.attention as attention
import tfcourse.layers as layers
import tfcourse.multihead as multihead
import tfcourse.positions as positions
import tfcourse.recurrent as recurrent
import tfcourse.rotary as rotary
import tfcourse.seq2seq as seq2seq
import tfcourse.training as training
import tfcourse.transformer as transformer
from autograder.checking.draw import Draw
from autograder.checking.props import build
from autograder.checking.subject import prepared
from autograder.checks import exercise

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


def _recurrent_calls(randn: Callable[..., Tensor], tokens: Tensor, device: str) -> dict[str, tuple[Any, ...]]:
    """One call of every function of chapter 01."""
    B, T, E, D, V = 2, 5, 3, 4, 6
    x, h, c = randn(B, T, E), randn(B, D), randn(B, D)
    plain, memory, back, gated = (
        (randn(gates * D, E), randn(gates * D, D), randn(gates * D), randn(gates * D)) for gates in (1, 4, 4, 3)
    )
    above = (randn(4 * D, D), randn(4 * D, D), randn(4 * D), randn(4 * D))
    mask = torch.arange(T, device=device) < torch.tensor([[5], [2]], device=device)
    return {
        "rnn_cell": (x[:, 0], h, *plain),
        "rnn_forward": (x, *plain, h),
        "gradient_norm_through_time": (x, *plain, c, h),
        "clip_gradient_norm": ([x, h, c], 1.0),
        "lstm_cell": (x[:, 0], h, c, *memory),
        "lstm_forward": (x, *memory, (h, c), mask),
        "gru_cell": (x[:, 0], h, *gated),
        "bidirectional_forward": (x, memory, back, mask),
        "stacked_forward": (x, [memory, above], mask),
        "language_model_blocks": (tokens.flatten(), 3),
        "sequence_negative_log_likelihood": (randn(B, T, V), tokens, mask),
        "sample_autoregressive": (lambda seen: torch.nn.functional.one_hot(seen, V).to(x), tokens, 3),
    }


def _alignment_calls(randn: Callable[..., Tensor], device: str) -> dict[str, tuple[Any, ...]]:
    """One call of every function of chapter 02."""
    B, T, S, D, Da, longest = 2, 4, 5, 6, 7, 8
    queries, keys, scores = randn(B, T, D), randn(B, S, D), randn(B, T, S)
    real = torch.arange(S, device=device) < torch.tensor([[5], [3]], device=device)
    return {
        "content_score": (queries, keys),
        "additive_score": (queries, randn(B, S, Da), randn(D, Da), randn(Da, Da), randn(Da)),
        "location_score": (queries, randn(D, longest), S),
        "general_score": (queries, randn(B, S, Da), randn(D, Da)),
        "dot_score": (queries, keys),
        "scaled_dot_score": (queries, keys),
        "masked_softmax": (scores, real[:, None]),
        "attend": (scores, keys, real),
        "hard_attend": (scores, keys, real),
    }


def _alignment_model(name: str) -> tuple[torch.nn.Module, Callable[..., tuple[Any, ...]]]:
    """A module of chapter 02, and what it is called with, given tokens and annotations."""
    if name == "BidirectionalEncoder":
        return alignment.BidirectionalEncoder(6, 3, 4), lambda tokens, mask, annotations: (tokens, mask)
    if name == "AttentionDecoder":
        decoder = alignment.AttentionDecoder(6, 3, 4)
        return decoder, lambda tokens, mask, annotations: (tokens[:, :4], annotations, mask)
    translator = alignment.AttentionSeq2Seq(6, 6, 3, 4, score="general")
    return translator, lambda tokens, mask, annotations: (tokens, tokens[:, :4], mask)


def _transformer_call(name: str, randn: Callable[..., Tensor], device: str, dtype: torch.dtype) -> Any:
    """One call of an exercise of chapter 05, or of one that is given a device by name; None if it is neither."""
    B, T, S, D, V = 2, 4, 5, 6, 7
    tokens = torch.tensor([[1, 4, 3, 6], [1, 5, 2, 0]], device=device)
    source = torch.tensor([[3, 5, 4, 6, 2], [6, 3, 2, 0, 0]], device=device)
    x, memory, mask = randn(B, T, D), randn(B, S, D), source != 0
    modules: dict[str, tuple[Callable[[], torch.nn.Module], tuple[Any, ...]]] = {
        "FeedForward": (lambda: layers.FeedForward(D, 8), (x,)),
        "EncoderLayer": (lambda: layers.EncoderLayer(D, 2, 8), (memory, mask[:, None])),
        "DecoderLayer": (lambda: layers.DecoderLayer(D, 2, 8), (x, memory, mask[:, None])),
        "Transformer": (
            lambda: transformer.Transformer(V, V, d_model=D, n_heads=2, d_ff=8, n_layers=1),
            (source, tokens, mask),
        ),
    }
    if name in modules:
        make, inputs = modules[name]
        module = make().eval()
        generator = torch.Generator().manual_seed(21)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
        return module.to(device, dtype), inputs
    calls: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "sinusoidal_positions": (positions.sinusoidal_positions, (T, D, device)),
        "rotary_frequencies": (rotary.rotary_frequencies, (D, 10_000.0, device)),
        "add_positions": (positions.add_positions, (x, randn(S, D), 1)),
        "layer_norm": (layers.layer_norm, (x, randn(D), randn(D))),
        "gelu": (layers.gelu, (x,)),
        "residual_post_norm": (layers.residual_post_norm, (x, torch.tanh, randn(D), randn(D))),
        "residual_pre_norm": (layers.residual_pre_norm, (x, torch.tanh, randn(D), randn(D))),
        "shift_right": (training.shift_right, (tokens,)),
        "cross_entropy": (training.cross_entropy, (randn(B, T, V), tokens)),
    }
    return calls.get(name)


def _declared_call(name: str, dtype: torch.dtype, device: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The first case of an exercise's check, as a call of the reference."""
    about = exercise(name)
    case = about.rows[0].probes(Draw("an example call", name))[0].requests[0]
    request = case.map_tensors(lambda value: value.to(device, dtype if value.is_floating_point() else None))
    call = prepared(about.reference, request)
    given = inspect.signature(call).bind(**request.arguments, **build(request.props or {}))
    return lambda *args: call(*args, **given.kwargs), given.args


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
        if (call := _transformer_call(name, randn, device, dtype)) is not None:
            return call
        tokens = torch.tensor([[1, 4, 0, 2, 3], [5, 2, 2, 0, 1]], device=device)
        if name in {"NeuralProbabilisticLM", "Seq2Seq"}:
            window = name == "NeuralProbabilisticLM"
            model = recurrent.NeuralProbabilisticLM(6, 3, 4, 5) if window else seq2seq.Seq2Seq(6, 7, 4, 5, n_layers=2)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) / 2)
            return model.to(device, dtype), (tokens,) if window else (tokens, tokens[:, :4])
        if name in {"BidirectionalEncoder", "AttentionDecoder", "AttentionSeq2Seq"}:
            model, arguments = _alignment_model(name)
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
            real = torch.arange(5, device=device) < torch.tensor([[5], [3]], device=device)
            return model.to(device, dtype), arguments(tokens, real, randn(2, 5, 4))
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
            **_recurrent_calls(lambda *shape: randn(*shape) / 2, tokens, device),
            **_alignment_calls(randn, device),
        }
        if name not in calls:
            return _declared_call(name, dtype, device)
        modules = (attention, multihead, recurrent, alignment)
        return getattr(next(module for module in modules if hasattr(module, name)), name), calls[name]

    return make
