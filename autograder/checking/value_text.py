"""Describe values in messages: numbers with enough digits, long texts around their difference, names of results."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from autograder.checking.request import Observation, Value

# Of more numbers than these only the shape is shown.
MOST_NUMBERS = 12
_DIGITS = range(4, 18)
# Characters of a text that are shown on either side of a difference.
_AROUND = 14
_STEP = re.compile(r"""\[(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\]]*)\]""")
_OUTPUT = "output"
# Kinds of containers that leave no output behind, as an observation calls them.
_EMPTY = {"empty sequence": "an empty list or tuple", "empty mapping": "an empty dictionary"}


def result_name(name: str, fields: Mapping[str, str] | None = None) -> str:
    """Return a result's name in messages: ``the result``, ``result[1]``, ``result.flops``, ``the gradient of q``.

    Args:
        name: its name in an observation.
        fields: for results that are named tuples, the fields by their names in the observation.
    """
    if name == _OUTPUT:
        return "the result"
    if name.startswith("gradient of "):
        return f"the {name}"
    if fields and name in fields:
        return f"result.{fields[name]}"
    return f"result{name.removeprefix(_OUTPUT)}" if name.startswith(f"{_OUTPUT}[") else name


def split_indices(name: str) -> list[str]:
    """Return the indices in a result's name: ``output[0]['loss']`` has ``[0]`` and ``['loss']``."""
    return _STEP.findall(name.removeprefix(_OUTPUT)) if name.startswith(f"{_OUTPUT}[") else []


def type_name(value: Value) -> str:
    """Describe a value's type: ``a tensor of shape (2, 3)``, ``an int``, ``None``."""
    if value is None:
        return "None"
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeio' else 'a'} {name}"


def number_text(value: float, digits: int = 4) -> str:
    """Format a float with ``digits`` significant digits, and other values with ``str``."""
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


def format_distinctly(actual: Any, expected: Any) -> tuple[str, str]:
    """Return two different texts for two Python values: with enough digits, around their difference, or with types."""
    if type(actual) is not type(expected):
        texts = number_or_repr(actual), number_or_repr(expected)
        alike = texts[0] == texts[1] or all(isinstance(value, (bool, int, float)) for value in (actual, expected))
        return (f"{texts[0]} ({type_name(actual)})", f"{texts[1]} ({type_name(expected)})") if alike else texts
    if isinstance(expected, float):
        return _enough_digits(actual, expected)
    if isinstance(expected, str):
        return _excerpts_around_difference(actual, expected)
    return number_or_repr(actual), number_or_repr(expected)


def number_or_repr(value: Any) -> str:
    """Format a float with few digits, and any other value with its truncated repr."""
    return number_text(value) if isinstance(value, float) else _ShorteningRepr().repr(value)


class _ShorteningRepr(reprlib.Repr):
    """A Repr that shortens long values, with the ellipsis of a text outside its quotes."""

    def repr_str(self, x: str, level: int) -> str:
        """Return a text's repr, or the reprs of its beginning and its end."""
        if len(x) <= 2 * _AROUND:
            return repr(x)
        return f"{x[:_AROUND]!r} … {x[-_AROUND:]!r}"


def _enough_digits(actual: float, expected: float) -> tuple[str, str]:
    """Format two floats with the fewest significant digits that make them different."""
    texts = [(number_text(actual, digits), number_text(expected, digits)) for digits in _DIGITS]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[-1])


def _excerpts_around_difference(actual: str, expected: str) -> tuple[str, str]:
    if max(len(actual), len(expected)) <= 2 * _AROUND:
        return repr(actual), repr(expected)
    index = next((i for i, (a, b) in enumerate(zip(actual, expected, strict=False)) if a != b), None)
    index = min(len(actual), len(expected)) if index is None else index
    return _shorten_around(actual, index), _shorten_around(expected, index)


def _shorten_around(text: str, index: int) -> str:
    first, last = max(0, index - _AROUND), index + _AROUND
    return f"{'…' if first else ''}{text[first:last]!r}{'…' if last < len(text) else ''}"


def format_value(value: Value) -> str:
    """Describe a value for people: numbers if they are few, otherwise the shape."""
    if isinstance(value, Tensor):
        if value.numel() > MOST_NUMBERS or value.is_meta:
            return f"a tensor {tuple(value.shape)}"
        numbers = value.detach().cpu()
        return _nested_text(numbers.double().tolist() if numbers.is_floating_point() else numbers.tolist())
    if isinstance(value, Mapping):
        items = [f"{key!r}: {format_value(item)}" for key, item in list(value.items())[:4]]
        return "{" + ", ".join([*items, "…"] if len(value) > 4 else items) + "}"
    if isinstance(value, (tuple, list)) and any(isinstance(item, (Tensor, tuple, list)) for item in value):
        return f"({', '.join(format_value(item) for item in value[:4])}{', …' if len(value) > 4 else ''})"
    return number_or_repr(value)


def _nested_text(numbers: Any) -> str:
    return f"[{', '.join(map(_nested_text, numbers))}]" if isinstance(numbers, list) else number_text(numbers)


def describe_other_items(actual: Observation, expected: Observation, fields: Mapping[str, str]) -> str:
    """Describe the items that a result lacks or has too many.

    Items are counted where they are returned, not the numbers in them: a tuple of a state and a pair of caches has two items.

    Args:
        actual: what was observed.
        expected: what should have been observed, with other names of outputs.
        fields: as for :func:`result_name`.
    """
    if dict(actual.outputs) == {_OUTPUT: None}:
        return f"it returns None, expected {_describe_part(expected, [], fields)}: is there a return?"
    prefix: list[str] = []
    while True:
        items = _list_child_indices(actual, prefix), _list_child_indices(expected, prefix)
        if items[0] != items[1] or (not any(items) and _names_under(actual, prefix) != _names_under(expected, prefix)):
            return _describe_count_difference(actual, expected, prefix, {} if prefix else fields)
        deeper = next(
            (
                step
                for step in items[1]
                if _names_under(actual, [*prefix, step]) != _names_under(expected, [*prefix, step])
            ),
            None,
        )
        if deeper is None:
            return _describe_other_names(actual, expected)
        prefix.append(deeper)


def _describe_count_difference(
    actual: Observation, expected: Observation, prefix: list[str], fields: Mapping[str, str]
) -> str:
    """Describe the difference in the number of items under a prefix."""
    present, required = _list_child_indices(actual, prefix), _list_child_indices(expected, prefix)
    parent = _OUTPUT + "".join(prefix)
    missing, extra = [i for i in required if i not in present], [i for i in present if i not in required]
    if present and missing and not extra:
        name = parent + missing[0]
        if name in fields or missing[0][1] in "'\"":
            return f"{result_name(name, fields)} is missing"
        # Gradients are observed without the kinds of containers: an empty list then shows by its gap alone.
        if required.index(missing[0]) < required.index(present[-1]):
            return f"{result_name(name)} is empty, expected {_describe_part(expected, [*prefix, missing[0]], {})}"
    if required and extra and not missing and present.index(extra[0]) < present.index(required[-1]):
        return f"{result_name(parent + extra[0], fields)} should be empty"
    has = f"has {_count_text(present)}" if present else f"is {_describe_part(actual, prefix, {})}"
    asked_for = _describe_part(expected, prefix, fields, of_a_list=parent in actual.outputs)
    return f"{result_name(parent, fields)} {has}, expected {asked_for}"


def _names_under(observation: Observation, prefix: list[str]) -> list[str]:
    start = _OUTPUT + "".join(prefix)
    names = dict.fromkeys(observation.outputs, "") | _empty_containers(observation)
    return sorted(f"{name}{kind}" for name, kind in names.items() if name == start or name.startswith(f"{start}["))


def _empty_containers(observation: Observation) -> dict[str, str]:
    """Return the names of empty containers with their kind, because no output has their names."""
    pairs = (text.rsplit(": ", 1) for text in observation.containers)
    return {name: kind for name, kind in pairs if kind in _EMPTY}


def _list_child_indices(observation: Observation, prefix: list[str]) -> list[str]:
    """Return the indices of the parts directly under a prefix, in order; empty for a single value."""
    depth, start = len(prefix), _OUTPUT + "".join(prefix)
    empty = _empty_containers(observation)
    names = [name for name in (*observation.outputs, *empty) if name.startswith(f"{start}[")]
    indices = dict.fromkeys(split_indices(name)[depth] for name in names)
    # Names of empty containers come last: put a list's items back into their order.
    return sorted(indices, key=_index_value) if empty else list(indices)


def _index_value(index: str) -> int:
    return int(index[1:-1]) if index[1:-1].isdigit() else 0


def _describe_part(
    observation: Observation, prefix: list[str], fields: Mapping[str, str], *, of_a_list: bool = False
) -> str:
    """Describe the part under a prefix: a number of items, a tensor with its shape, a type."""
    if indices := _list_child_indices(observation, prefix):
        names = [fields[f"{_OUTPUT}{index}"] for index in indices if f"{_OUTPUT}{index}" in fields]
        container = "a dictionary of " if indices[0][1] in "'\"" else "a list or tuple of "
        return (container if of_a_list else "") + _count_text(indices) + (f" ({', '.join(names)})" if names else "")
    name = _OUTPUT + "".join(prefix)
    if name not in observation.outputs:
        return _EMPTY.get(_empty_containers(observation).get(name, ""), "an empty list or tuple")
    value = observation.outputs[name]
    # Requests for shapes have shapes instead of tensors.
    return f"a tensor of shape {value}" if isinstance(value, tuple) else type_name(value)


def _count_text(indices: list[str]) -> str:
    return f"{len(indices)} item{'' if len(indices) == 1 else 's'}"


def _describe_other_names(actual: Observation, expected: Observation) -> str:
    """Describe a missing or unexpected result among gradients, weights or attributes."""
    missing = [name for name in expected.outputs if name not in actual.outputs]
    extra = [name for name in actual.outputs if name not in expected.outputs]
    phrases = [f"{result_name(name)} is missing" for name in missing[:1]]
    phrases += [f"{result_name(name)} is not expected" for name in extra[:1]]
    return ", and ".join(phrases)
