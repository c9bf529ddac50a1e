"""Provide functions that operators insert into mutants: a cut gradient, a rounded value. Each records whether it had an effect.

A cut without any gradient, or a rounding of a float32 value, is not a mutant: it computes the reference's numbers.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_state = {"changed": False}


def detached(value: Any) -> Any:
    """Return a value through which no gradient flows back."""
    return _mapped(value, _cut)


def rounded(value: Any) -> Any:
    """Return a float64 value rounded to what float32 can hold."""
    return _mapped(value, _rounded)


def had_an_effect() -> bool:
    """Return whether one of these functions has changed a number or a gradient in this process."""
    return _state["changed"]


def _mapped(value: Any, change: Any) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple):
        changed = [_mapped(item, change) for item in value]
        return type(value)(*changed) if hasattr(value, "_fields") else tuple(changed)
    return value


def _cut(value: Tensor) -> Tensor:
    if not (torch.is_grad_enabled() and value.requires_grad):
        return value
    view = value.view_as(value)
    if view.requires_grad:
        view.register_hook(_stop)  # type: ignore[no-untyped-call]
    return view


def _stop(gradient: Tensor) -> Tensor:
    if gradient.is_meta or bool(gradient.any()):
        _state["changed"] = True
    return torch.zeros_like(gradient)


def _rounded(value: Tensor) -> Tensor:
    if value.dtype is not torch.float64 or value.is_meta:
        return value
    changed = value.float().double()
    if not torch.equal(changed.detach().nan_to_num(), value.detach().nan_to_num()):
        _state["changed"] = True
    return changed
