"""One small failing question in words: what went in, what came out, what was expected."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from autograder.checking.request import Observation, Request, Value

# Of more numbers than these only the shape is told.
MOST_NUMBERS = 12


def example(requests: Sequence[Request], given: Sequence[Observation], expected: Sequence[Observation]) -> str:
    """Return the first request that was answered wrongly, with both answers; empty where there is nothing to show.

    Args:
        requests: what was asked, visible questions only.
        given: what came back.
        expected: what should have come back.
    """
    for request, mine, theirs in zip(requests, given, expected, strict=True):
        if request.action not in ("call", "gradients") or mine.error or theirs.error:
            continue
        different = [name for name, value in theirs.outputs.items() if not _equal(mine.outputs.get(name), value)]
        if not different:
            continue
        name = min(different, key=lambda item: _size(theirs.outputs[item]))
        went_in = {**(request.init or {}), **request.arguments}
        asked = ", ".join(f"{key} = {shown(value)}" for key, value in went_in.items())
        came_out = shown(mine.outputs[name]) if name in mine.outputs else "missing"
        return f"for {asked or 'no arguments'}: {_called(name)} is {came_out}, expected {shown(theirs.outputs[name])}"
    return ""


def shown(value: Value) -> str:
    """Return a value for people: numbers if they are few, otherwise the shape."""
    if isinstance(value, Tensor):
        if value.numel() > MOST_NUMBERS or value.is_meta:
            return f"a tensor {tuple(value.shape)}"
        return _rounded(value.detach().cpu())
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {shown(item)}" for key, item in list(value.items())[:4]) + "}"
    if isinstance(value, (tuple, list)) and any(isinstance(item, (Tensor, tuple, list)) for item in value):
        return f"({', '.join(shown(item) for item in value[:4])}{', …' if len(value) > 4 else ''})"
    return f"{value:.4g}" if isinstance(value, float) else reprlib.repr(value)


def _rounded(value: Tensor) -> str:
    if value.is_floating_point():
        return str(torch.round(value.double(), decimals=3).tolist())
    return str(value.tolist())


def _called(name: str) -> str:
    return "the result" if name == "output" else name


def _size(value: Value) -> int:
    return value.numel() if isinstance(value, Tensor) else 1


def _equal(mine: Value, theirs: Value) -> bool:
    if not isinstance(mine, Tensor) or not isinstance(theirs, Tensor):
        return type(mine) is type(theirs) and bool(mine == theirs)
    if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
        return False
    return bool(
        torch.allclose(mine.detach().cpu().double(), theirs.detach().cpu().double(), 1e-4, 1e-5, equal_nan=True)
    )
