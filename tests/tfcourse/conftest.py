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

from autograder.checking.draw import Draw
from autograder.checking.props import build_fixtures
from autograder.checking.request import Request
from autograder.checking.subject import prepare_candidate
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


def _fullest(name: str) -> Request:
    """Of the plain calls with which an exercise's check asks for numbers, the first with the most arguments: masks are among them."""
    rows = [row.probes(Draw("an example call", name)) for row in exercise(name).rows]
    requests = [
        request for probes in rows for probe in probes if probe.judge != "answers" for request in probe.requests
    ]
    calls = [call for call in requests if call.action == "call" and call.method is None and not call.training]
    return max(calls, key=lambda call: sum(value is not None for value in call.arguments.values()))


@pytest.fixture(scope="session")
def exercise_call() -> Callable[..., tuple[Callable[..., Any], tuple[Any, ...]]]:
    """One call of the named exercise: the function and its arguments, on a device and in a dtype, after a rounding to another."""

    def make(name: str, dtype: torch.dtype = torch.float64, device: str = "cpu", rounded: Any = None) -> Any:
        def change(x: Tensor) -> Tensor:
            return (x.to(rounded or dtype).to(dtype) if x.is_floating_point() else x).to(device)

        request = _fullest(name).map_tensors(change)
        call = prepare_candidate(exercise(name).reference, request)
        takes = inspect.signature(call)
        where = {"device": device} if "device" in takes.parameters else {}
        given = takes.bind(**request.arguments | build_fixtures(request.props or {}) | where)
        return (lambda *args: call(*args, **given.kwargs)), given.args

    return make
