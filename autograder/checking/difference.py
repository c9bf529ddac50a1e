"""Compare two values up to rounding, and describe the difference."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from autograder.checking.request import Value
from autograder.checking.tolerance import PYTHON_FLOAT, choose_tolerance
from autograder.checking.value_text import format_distinctly, type_name

# More numbers than any exercise returns: an expanded tensor takes no memory, whatever its size, until it is compared.
LARGEST = 10_000_000
# Errors up to this share of the largest number are called small: wrong arithmetic makes larger ones.
_NEARLY = 1e-5


def describe_difference(name: str, answer: Value, reference: Value, *, equal_nan: bool = False) -> str | None:
    """Describe how a value differs from the expected one by more than rounding; None if it does not.

    Args:
        name: the value's name in the message.
        answer: the value.
        reference: the expected one.
        equal_nan: whether NaN equals NaN.
    """
    if isinstance(reference, Tensor) != isinstance(answer, Tensor):
        return f"{name} is {type_name(answer)}, expected {type_name(reference)}"
    if not isinstance(reference, Tensor):
        if type(answer) is type(reference) and (
            answer == reference or _are_close(answer, reference, equal_nan=equal_nan)
        ):
            return None
        actual, expected = format_distinctly(answer, reference)
        return f"{name} is {actual}, expected {expected}"
    if problem := explain_unreadable(name, answer):
        return problem
    if answer.shape != reference.shape:
        return f"{name} has shape {shape_text(answer)}, expected {shape_text(reference)}"
    if torch.bool in (answer.dtype, reference.dtype) and answer.dtype != reference.dtype:
        return f"{name} has dtype {dtype_text(answer)}, expected {dtype_text(reference)}"
    if answer.is_complex():
        return f"{name} has complex numbers"
    if tensors_agree(answer, reference, equal_nan=equal_nan):
        return None
    return _describe_wrong_numbers(name, answer, reference, find_wrong_entries(answer, reference, equal_nan=equal_nan))


def find_wrong_entries(answer: Tensor, reference: Tensor, *, equal_nan: bool = False) -> Tensor:
    """Return a CPU mask of the entries in which two tensors of the same shape differ by more than rounding."""
    allowed = choose_tolerance(reference.dtype, reference.device.type)
    a, b = answer.detach().cpu().double(), reference.detach().cpu().double()
    return ~torch.isclose(a, b, rtol=allowed.relative, atol=allowed.absolute, equal_nan=equal_nan)


def _describe_wrong_numbers(name: str, answer: Tensor, reference: Tensor, wrong: Tensor) -> str:
    """Describe how many numbers are wrong, with the worst of them."""
    a, b = answer.detach().cpu(), reference.detach().cpu()
    index, ordinary = _find_worst(a, b, wrong)
    actual, expected = format_distinctly(a[tuple(index)].item(), b[tuple(index)].item())
    total, count = wrong.numel(), int(wrong.sum())
    if total == 1:
        return f"{name} is {actual}, expected {expected}"
    missing = int((a.isnan() & ~b.isnan()).sum())
    if missing:
        return f"{name} has {missing} NaN among its {total} numbers; at {index}: nan, expected {expected}"
    numbers = "truth values" if b.dtype == torch.bool else "numbers"
    where = "the worst is at" if ordinary and count > 1 and b.is_floating_point() else "at"
    verb = "is" if count == 1 else "are"
    many = f"all {total}" if count == total else f"{count} of {total}"
    if ordinary and b.is_floating_point() and (largest := _largest_error(a, b)) <= _NEARLY:
        allowed = choose_tolerance(reference.dtype, reference.device.type).relative
        return (
            f"{many} {numbers} in {name} {verb} nearly right, off by up to {largest:.0e} of the largest ({dtype_text(b)} allows "
            f"{allowed:.0e}), which suggests a step in lower precision or a small added constant; at {index}: {actual}, expected {expected}"
        )
    return f"{many} {numbers} in {name} {verb} wrong; {where} {index}: {actual}, expected {expected}"


def _largest_error(a: Tensor, b: Tensor) -> float:
    """Return the largest difference relative to the largest expected number."""
    scale = b.double().abs().max().item()
    return (a.double() - b.double()).abs().max().item() / scale if scale else math.inf


def _find_worst(a: Tensor, b: Tensor, wrong: Tensor) -> tuple[list[int], bool]:
    """Return the index of the worst wrong number (NaN, infinite, or furthest off), and whether all are finite."""
    for places in (wrong & a.isnan() & ~b.isnan(), wrong & ~(a.isfinite() & b.isfinite())):
        if bool(places.any()):
            return places.nonzero()[0].tolist(), False
    gaps = (a.double() - b.double()).abs().masked_fill(~wrong, -1.0)
    # Not PyTorch's unravel_index: its first call in a process imports a computer algebra system.
    return [int(i) for i in np.unravel_index(int(gaps.argmax()), gaps.shape)], True


def describe_disagreement(first: Value, second: Value) -> str:
    """Describe the largest difference of two answers that should agree; empty if they have no comparable numbers."""
    if not isinstance(first, Tensor) or not isinstance(second, Tensor) or first.shape != second.shape or not first.ndim:
        return ""
    a, b = first.detach().cpu(), second.detach().cpu()
    index, _ = _find_worst(a, b, find_wrong_entries(a, b))
    return " (at {}: {} and {})".format(index, *format_distinctly(a[tuple(index)].item(), b[tuple(index)].item()))


def tensors_agree(answer: Tensor, reference: Tensor, *, equal_nan: bool) -> bool:
    """Return whether two tensors of the same shape agree up to rounding."""
    if (answer.dtype, answer.device) == (reference.dtype, reference.device) and torch.equal(answer, reference):
        return True
    allowed = choose_tolerance(reference.dtype, reference.device.type)
    a, b = answer.detach().cpu().double(), reference.detach().cpu().double()
    over = (a - b).abs_().sub_(b.abs().mul_(allowed.relative).add_(allowed.absolute))
    if bool((over <= 0).all()):
        return True
    # NaN and infinity compare as neither over nor under the tolerance; isclose handles them.
    return not bool((over > 0).any()) and bool(
        torch.isclose(a, b, rtol=allowed.relative, atol=allowed.absolute, equal_nan=equal_nan).all()
    )


def _are_close(answer: Value, reference: Value, *, equal_nan: bool) -> bool:
    """Return whether two Python floats are close: a formula has several right orders of operations and precisions."""
    if not isinstance(answer, float):
        return False
    both_nan = equal_nan and math.isnan(answer) and math.isnan(reference)
    return both_nan or math.isclose(answer, reference, rel_tol=PYTHON_FLOAT.relative, abs_tol=PYTHON_FLOAT.absolute)


def explain_unreadable(name: str, value: Value) -> str | None:
    """Describe why a tensor has no ordinary numbers to compare; None if it has."""
    if not isinstance(value, Tensor):
        return None
    if value.device.type == "meta":
        return f"{name} is on the meta device, so it has a shape but no numbers"
    if value.is_nested or value.is_quantized or value.layout != torch.strided:
        return f"{name} is a sparse, nested or quantised tensor, expected an ordinary one"
    if type(value) not in (Tensor, nn.Parameter):
        return f"{name} is a {type(value).__name__}, expected an ordinary torch.Tensor"
    if value.numel() > LARGEST:
        return f"{name} has {value.numel()} numbers, more than can be compared"
    return None


def shape_text(value: Value) -> str:
    """Return a tensor's shape as text; for any other value, its type."""
    return str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def dtype_text(value: Tensor) -> str:
    """Return a tensor's dtype without ``torch.``."""
    return str(value.dtype).removeprefix("torch.")
