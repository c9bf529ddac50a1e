"""Write a result as a short text."""

from __future__ import annotations

import math

from torch import Tensor

from autograder.checking.request import Observation, Value
from autograder.checking.value_text import format_value, number_text

_MOST_NUMBERS = 6
_LONGEST = 60


def result_text(observation: Observation) -> str:
    """Return what a call returned, with three digits; empty if it raised an error or the text is long."""
    if observation.error or not observation.outputs:
        return ""
    parts = [_value(value) for value in observation.outputs.values()]
    text = parts[0] if set(observation.outputs) == {"output"} else f"({', '.join(parts)})"
    return text if all(parts) and len(text) <= _LONGEST else ""


def _value(value: Value) -> str:
    if isinstance(value, Tensor):
        if value.numel() > _MOST_NUMBERS or value.is_complex():
            return ""
        numbers = value.detach().cpu()
        return _nested(numbers.double().tolist()) if numbers.is_floating_point() else format_value(numbers)
    if isinstance(value, float):
        return _number(value)
    return repr(value) if value is None or isinstance(value, (bool, int, str)) else ""


def _nested(numbers: list[float] | float) -> str:
    return f"[{', '.join(map(_nested, numbers))}]" if isinstance(numbers, list) else _number(numbers)


def _number(number: float) -> str:
    return "0" if not math.isnan(number) and abs(number) < 5e-7 else number_text(number, 3)
