"""Compare two values up to rounding, and describe the difference."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from autograder.checking.request import Value
from autograder.checking.tolerance import PYTHON_FLOAT, tolerance_for
from autograder.checking.value_text import texts_apart, type_name

# More numbers than any exercise returns: an expanded tensor takes no memory, whatever its size, until it is compared.
LARGEST = 10_000_000


def difference(name: str, mine: Value, theirs: Value, *, equal_nan: bool = False) -> str | None:
    """Describe how a value differs from the expected one by more than rounding; None if it does not.

    Args:
        name: the value's name in the message.
        mine: the value.
        theirs: the expected one.
        equal_nan: whether NaN equals NaN.
    """
    if isinstance(theirs, Tensor) != isinstance(mine, Tensor):
        return f"{name} is {type_name(mine)}, expected {type_name(theirs)}"
    if not isinstance(theirs, Tensor):
        if type(mine) is type(theirs) and (mine == theirs or _near(mine, theirs, equal_nan=equal_nan)):
            return None
        actual, expected = texts_apart(mine, theirs)
        return f"{name} is {actual}, expected {expected}"
    if problem := unreadable(name, mine):
        return problem
    if mine.shape != theirs.shape:
        return f"{name} has shape {shape_text(mine)}, expected {shape_text(theirs)}"
    if torch.bool in (mine.dtype, theirs.dtype) and mine.dtype != theirs.dtype:
        return f"{name} has dtype {dtype_text(mine)}, expected {dtype_text(theirs)}"
    if mine.is_complex():
        return f"{name} has complex numbers"
    if agree(mine, theirs, equal_nan=equal_nan):
        return None
    return _wrong_numbers(name, mine, theirs, wrong_places(mine, theirs, equal_nan=equal_nan))


def wrong_places(mine: Tensor, theirs: Tensor, *, equal_nan: bool = False) -> Tensor:
    """Return a mask, on the CPU, of the entries in which two tensors of one shape differ by more than rounding."""
    allowed = tolerance_for(theirs.dtype, theirs.device.type)
    a, b = mine.detach().cpu().double(), theirs.detach().cpu().double()
    return ~torch.isclose(a, b, rtol=allowed.relative, atol=allowed.absolute, equal_nan=equal_nan)


def _wrong_numbers(name: str, mine: Tensor, theirs: Tensor, wrong: Tensor) -> str:
    """Describe how many numbers are wrong, with the worst of them."""
    a, b = mine.detach().cpu(), theirs.detach().cpu()
    index, ordinary = _worst(a, b, wrong)
    actual, expected = texts_apart(a[tuple(index)].item(), b[tuple(index)].item())
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
    return f"{many} {numbers} in {name} {verb} wrong; {where} {index}: {actual}, expected {expected}"


def _worst(a: Tensor, b: Tensor, wrong: Tensor) -> tuple[list[int], bool]:
    """Return the index of a wrong number, and whether all are finite: a NaN, else an infinity, else the one furthest off."""
    for places in (wrong & a.isnan() & ~b.isnan(), wrong & ~(a.isfinite() & b.isfinite())):
        if bool(places.any()):
            return places.nonzero()[0].tolist(), False
    gaps = (a.double() - b.double()).abs().masked_fill(~wrong, -1.0)
    return [int(i) for i in torch.unravel_index(gaps.argmax(), gaps.shape)], True


def two_answers(first: Value, second: Value) -> str:
    """Describe the largest difference of two answers that should agree; empty if they have no numbers to compare."""
    if not isinstance(first, Tensor) or not isinstance(second, Tensor) or first.shape != second.shape or not first.ndim:
        return ""
    a, b = first.detach().cpu(), second.detach().cpu()
    index, _ = _worst(a, b, wrong_places(a, b))
    return " (at {}: {} and {})".format(index, *texts_apart(a[tuple(index)].item(), b[tuple(index)].item()))


def agree(mine: Tensor, theirs: Tensor, *, equal_nan: bool) -> bool:
    """Return whether two tensors of one shape agree up to rounding. Most right answers agree to the last bit."""
    if (mine.dtype, mine.device) == (theirs.dtype, theirs.device) and torch.equal(mine, theirs):
        return True
    allowed = tolerance_for(theirs.dtype, theirs.device.type)
    a, b = mine.detach().cpu().double(), theirs.detach().cpu().double()
    over = (a - b).abs_().sub_(b.abs().mul_(allowed.relative).add_(allowed.absolute))
    if bool((over <= 0).all()):
        return True
    # NaN and infinity compare as neither over nor under the tolerance; isclose handles them.
    return not bool((over > 0).any()) and bool(
        torch.isclose(a, b, rtol=allowed.relative, atol=allowed.absolute, equal_nan=equal_nan).all()
    )


def _near(mine: Value, theirs: Value, *, equal_nan: bool) -> bool:
    """Return whether two Python floats are close: a formula has several right orders of operations and precisions."""
    if not isinstance(mine, float):
        return False
    both_nan = equal_nan and math.isnan(mine) and math.isnan(theirs)
    return both_nan or math.isclose(mine, theirs, rel_tol=PYTHON_FLOAT.relative, abs_tol=PYTHON_FLOAT.absolute)


def unreadable(name: str, value: Value) -> str | None:
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
    """Return the shape of a tensor as text; for any other value, its type."""
    return str(tuple(value.shape)) if isinstance(value, Tensor) else type(value).__name__


def dtype_text(value: Tensor) -> str:
    """Return the name of a dtype without `torch.`."""
    return str(value.dtype).removeprefix("torch.")
