"""Choose inputs from the visible tests of a check, and format inputs and results as short texts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from autograder.checking.difference import dtype_text
from autograder.checking.request import Observation, Request, Value, content_key, list_tensors, map_value
from autograder.checking.sheet import Sheet
from autograder.checking.value_text import MOST_NUMBERS, format_value, number_text

_USUAL = ("torch.float32", "torch.int64")
_LONGEST = 360
# The number of inputs on which code is traced, and the maximum number of all inputs; on the others, only answers are compared.
TRACED, _MOST_INPUTS = 4, 14
# The maximum numbers of elements and characters of a result.
_MOST_RESULTS, LONGEST_RESULT = 6, 60
_ROUNDED = 8
NO_ARGUMENTS = "no arguments"
# Only the last word of a fixture's class name is shown.
_LAST_WORD = re.compile(".*(?=[A-Z][a-z])")
# The method of calls that only read a weight.
READS = "get_parameter"
# Longer lists and strings are truncated, and make the input incomplete.
_MOST_ITEMS, _LONGEST_TEXT, _SHOWN_ITEMS = 24, 160, 4


@dataclass(frozen=True)
class Input:
    """An input and its text in questions."""

    request: Request  # the call
    text: str  # the input as students read it
    complete: bool  # whether the text gives every number


def visible_inputs(sheet: Sheet) -> list[Input]:
    """Choose distinct inputs from a sheet of visible tests, first the inputs with the most different sizes.

    Raises:
        ValueError: if the sheet has hidden tests.
    """
    if sheet.plain is not None:
        raise ValueError("questions are made from visible inputs only")
    found: dict[Hashable, Input] = {}
    for section in sheet.sections:
        for probe, expected in zip(section.probes, section.expected, strict=True):
            for request, answer in zip(probe.requests, expected, strict=True):
                if request.action == "call" and not (answer.error or request.training or request.method == READS):
                    item = describe_request(round_request(request))
                    if len(item.text) <= _LONGEST:
                        found.setdefault(content_key(item.request), item)
    ordered = sorted(found.values(), key=lambda item: -_rate_sizes(item.request))
    small = [item for item in ordered if item.complete]
    chosen = {id(item): item for item in (*ordered[: TRACED - 1], *small[:1], *ordered[:TRACED])}
    traced = list(chosen.values())[:TRACED]
    return [*traced, *(item for item in small if not any(item is one for one in traced))][:_MOST_INPUTS]


def _rate_sizes(request: Request) -> float:
    """Rate the arguments by their number of distinct sizes above 1, less a penalty for repeated sizes and float64."""
    arguments = {**(request.init or {}), **request.arguments}
    tensors = list_tensors(arguments)
    within = [size for tensor in tensors for size in tensor.shape]
    within += [value for value in arguments.values() if type(value) is int]
    repeated = sum(len(tensor.shape) - len(set(tensor.shape)) for tensor in tensors)
    unusual = sum(str(tensor.dtype) == "torch.float64" for tensor in tensors)
    return len({size for size in within if size > 1}) - 2 * repeated - unusual


def round_to_one_decimal(tensor: Tensor) -> Tensor:
    """Round a floating-point tensor to one decimal; other tensors stay unchanged."""
    return tensor.round(decimals=1) if tensor.is_floating_point() else tensor


def round_request(
    request: Request,
    most: int = _ROUNDED,
    change: Callable[[Tensor], Tensor] = round_to_one_decimal,
    *,
    may_change: Callable[[Tensor], bool] = lambda tensor: True,
) -> Request:
    """Round the numbers of a small request to one decimal, so that its text is exact.

    Args:
        most: the maximum number of floats; a larger request stays unchanged.
        change: rounds a tensor.
        may_change: whether a tensor may be rounded; all floating-point tensors are rounded, or none.
    """
    floats = [tensor for tensor in list_tensors(dict(request.arguments)) if tensor.is_floating_point()]
    if sum(tensor.numel() for tensor in floats) > most or request.state or request.props:
        return request
    return request.map_tensors(change) if floats and all(map(may_change, floats)) else request


def describe_request(request: Request) -> Input:
    """Describe a request as an input with its text."""
    parts = [f"{name} = {value_text(value)}" for name, value in (request.init or {}).items()]
    arguments = [f"{name} = {value_text(value)}" for name, value in request.arguments.items()]
    arguments += [
        f"{name} = a {_LAST_WORD.sub('', prop['kind']).lower()}"
        for name, prop in (request.props or {}).items()
        if "kind" in prop
    ]
    text = ", ".join(arguments) or NO_ARGUMENTS
    if request.method:
        text = f"{request.method}({text})"
    if parts:
        text = f"constructor: {', '.join(parts)}; call: {text}"
    complete = not request.props and not request.state and all(map(is_complete, request.arguments.values()))
    return Input(request, text, complete)


def short_text(item: Input) -> str:
    """Return an input's text in a question: the tensors shown only by size come first, then the other arguments."""
    request = item.request
    large = {
        name: value
        for name, value in request.arguments.items()
        if isinstance(value, Tensor) and not is_complete(value) and value.ndim
    }
    shapes = [f"{name} {'of ' * (value.ndim == 1)}{'×'.join(map(str, value.shape))}" for name, value in large.items()]
    rest = describe_request(
        replace(request, arguments={n: v for n, v in request.arguments.items() if n not in large})
    ).text
    tensors = f"tensor{'s' * (len(shapes) > 1)} {', '.join(shapes)}"
    if not large:
        return rest
    head, call, arguments = rest.rpartition("; call: ")
    return f"{head}{call}{', '.join([tensors, arguments][: 2 - (arguments == NO_ARGUMENTS)])}"


def value_text(value: Value) -> str:
    """Format an argument: its numbers if they are few, otherwise its shape, and its dtype if that is unusual."""
    if isinstance(value, Tensor):
        text = format_value(value) if is_complete(value) else f"a tensor {tuple(value.shape)}"
        return text if str(value.dtype) in _USUAL else f"{text} of {dtype_text(value)}"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key!r}: {value_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (tuple, list)):
        ends = "()" if isinstance(value, tuple) else "[]"
        if len(value) > _MOST_ITEMS:
            return f"{ends[0]}{', '.join(map(value_text, value[:_SHOWN_ITEMS]))}, …{ends[1]} of {len(value)} items"
        return ends[0] + ", ".join(map(value_text, value)) + ends[1]
    return repr(value)


def is_complete(value: Value) -> bool:
    """Return whether the text of a value contains every number exactly."""
    if isinstance(value, (str, tuple, list, Mapping)) and not _is_small(value):
        return False
    tensors = list_tensors(value)
    return all(tensor.numel() <= MOST_NUMBERS and _is_short(tensor) for tensor in tensors)


def _is_small(value: Value) -> bool:
    """Return whether a string or container is shown without truncation."""
    if isinstance(value, str):
        return len(value) <= _LONGEST_TEXT
    items = [*value.keys(), *value.values()] if isinstance(value, Mapping) else value
    if not isinstance(items, (list, tuple)):
        return True
    return len(items) <= _MOST_ITEMS and all(map(_is_small, items))


def redraw_request(request: Request, draw: int) -> Request:
    """Redraw the tensors of a request with the same sizes, and integers from the same range."""
    generator = torch.Generator().manual_seed(draw)

    def other(tensor: Tensor) -> Tensor:
        if tensor.is_floating_point():
            return torch.randn(tensor.shape, generator=generator).to(tensor.dtype)
        if tensor.is_complex() or not tensor.numel():
            return tensor
        low, high = (0, 1) if tensor.dtype is torch.bool else (int(tensor.min()), int(tensor.max()))
        return torch.randint(low, high + 1, tensor.shape, generator=generator).to(tensor.dtype)

    return replace(request, arguments={name: map_value(value, other) for name, value in request.arguments.items()})


def _is_short(tensor: Tensor) -> bool:
    if not tensor.is_floating_point():
        return True
    return all(math.isinf(number) or float(f"{number:.4g}") == round(number, 6) for number in tensor.flatten().tolist())


def result_text(observation: Observation) -> str:
    """Format a call's result with three digits; empty if the call raised an error or the text is long."""
    if observation.error or not observation.outputs:
        return ""
    parts = [_format_output(value) for value in observation.outputs.values()]
    text = ", ".join(parts)  # an observation does not distinguish lists from tuples
    return text if all(parts) and len(text) <= LONGEST_RESULT else ""


def _format_output(value: Value) -> str:
    if isinstance(value, Tensor):
        if value.numel() > _MOST_RESULTS or value.is_complex():
            return ""
        numbers = value.detach().cpu()
        return _format_nested(numbers.double().tolist()) if numbers.is_floating_point() else format_value(numbers)
    if isinstance(value, float):
        return _format_number(value)
    return repr(value) if value is None or isinstance(value, (bool, int, str)) else ""


def _format_nested(numbers: list[float] | float) -> str:
    return f"[{', '.join(map(_format_nested, numbers))}]" if isinstance(numbers, list) else _format_number(numbers)


def _format_number(number: float) -> str:
    return "0" if not math.isnan(number) and abs(number) < 5e-7 else number_text(number, 3)
