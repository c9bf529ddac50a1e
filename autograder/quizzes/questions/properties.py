"""Find short properties of the arguments of calls, so that a question can ask for which inputs a change has an effect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from typing import Any

import torch
from torch import Tensor

from autograder.checking.request import Request
from autograder.quizzes.questions.question import group_by_key

EVERY, NO = "every input", "no input"
_GIVEN = re.compile(r" is (given|None|True|False)$")
_LARGE = 50.0

_OF_FLOATS: Mapping[str, Callable[[Tensor], bool]] = {
    "holds an infinity": lambda x: bool(x.isinf().any()),
    "has a row of minus infinities": lambda x: x.ndim > 0 and x.shape[-1] > 0 and bool((x == -torch.inf).all(-1).any()),
    "holds numbers beyond ±50": lambda x: bool((x.abs() > _LARGE).any()),
    "holds a zero": lambda x: bool((x == 0).any()),
    "is all zeros": lambda x: x.numel() > 0 and not x.any(),
    "holds two equal numbers": lambda x: len(set(x.flatten().tolist())) < x.numel(),
    "has no negative number": lambda x: x.numel() > 0 and bool((x >= 0).all()),
}
_OF_TRUTHS: Mapping[str, Callable[[Tensor], bool]] = {
    "has a row without True": lambda x: x.ndim > 0 and not bool(x.any(-1).all()),
    "holds a False": lambda x: not bool(x.all()),
}
_OF_INTEGERS: Mapping[str, Callable[[Tensor], bool]] = {
    "holds a 0": lambda x: bool((x == 0).any()),
    "holds a negative number": lambda x: bool((x < 0).any()),
    "holds a number twice": lambda x: len(set(x.flatten().tolist())) < x.numel(),
}
_OF_TENSORS: Mapping[str, Callable[[Tensor], bool]] = {
    "has one axis": lambda x: x.ndim == 1,
    "has two axes": lambda x: x.ndim == 2,
    "has three axes or more": lambda x: x.ndim > 2,
    "has an axis of length 1": lambda x: 1 in x.shape,
    "is of float64": lambda x: x.dtype is torch.float64,
    "is of half precision": lambda x: x.dtype in (torch.float16, torch.bfloat16),
}
_OF_NUMBERS: Mapping[str, Callable[[float], bool]] = {
    "is 0": lambda x: x == 0,
    "is 1": lambda x: x == 1,
    "is above 1": lambda x: x > 1,
    "is below 1": lambda x: x < 1,
    "is negative": lambda x: x < 0,
    "is odd": lambda x: isinstance(x, int) and x % 2 == 1,
}
_OF_TEXTS: Mapping[str, Callable[[str], bool]] = {
    "is empty": lambda x: not x,
    "contains a space": lambda x: " " in x,
    "contains a capital letter": lambda x: x.lower() != x,
    "contains a letter twice": lambda x: len(set(x)) < len(x),
}
_OF_LISTS: Mapping[str, Callable[[Any], bool]] = {
    "is empty": lambda x: not x,
    "has one item": lambda x: len(x) == 1,
    "has an item twice": lambda x: len(set(map(repr, x))) < len(x),
    "holds a 0": lambda x: any(type(item) is int and item == 0 for item in x),
}


def call_properties(request: Request) -> set[str]:
    """Return the properties of a call's arguments, as texts."""
    arguments = {**(request.init or {}), **request.arguments}
    named = {f"`{name}` {text}" for name, value in arguments.items() for text in _value_properties(value)}
    sizes = {name: value for name, value in arguments.items() if type(value) in (int, float)}
    lengths = {name: _value_length(value) for name, value in arguments.items() if _value_length(value) >= 0}
    named |= {f"`{a}` is larger than `{b}`" for a, b in permutations(sizes, 2) if sizes[a] > sizes[b]}
    named |= {f"`{a}` is larger than `{b}` is long" for a in sizes for b in lengths if sizes[a] > lengths[b]}
    return named | {f"`{a}` is longer than `{b}`" for a, b in permutations(lengths, 2) if lengths[a] > lengths[b]}


def _value_length(value: object) -> int:
    if isinstance(value, Tensor):
        return value.shape[-1] if value.ndim else -1
    return len(value) if isinstance(value, (str, list, tuple)) else -1


def _value_properties(value: object) -> Iterator[str]:
    """Yield the properties of one argument, as texts."""
    if value is None or isinstance(value, bool):
        yield f"is {value}"
        return
    yield "is given"
    tables: list[Mapping[str, Callable[[Any], bool]]] = []
    if isinstance(value, Tensor):
        of_numbers = (
            _OF_TRUTHS if value.dtype is torch.bool else _OF_FLOATS if value.is_floating_point() else _OF_INTEGERS
        )
        tables = [of_numbers, _OF_TENSORS]
    elif isinstance(value, (int, float)):
        tables = [_OF_NUMBERS]
    elif isinstance(value, str):
        tables = [_OF_TEXTS]
    elif isinstance(value, (list, tuple, Mapping)):
        tables = [_OF_LISTS]
    yield from (text for table in tables for text, holds in table.items() if holds(value))


def tabulate_properties(requests: list[Request]) -> dict[str, frozenset[int]]:
    """Return the numbers of the calls with each property.

    Of properties shared by the same calls, at most one is kept, because a run cannot show which of them matters.
    """
    found: dict[str, set[int]] = {EVERY: set(range(len(requests))), NO: set()}
    for number, request in enumerate(requests):
        for text in call_properties(request):
            found.setdefault(text, set()).add(number)
    sets = {text: frozenset(numbers) for text, numbers in found.items()}
    by_set = group_by_key(sets, lambda text: sets[text])
    # Keep the weakest property, that an argument is given: the others of the same calls claim more than a run shows.
    kept = {next(filter(_GIVEN.search, texts), texts[0] if len(texts) == 1 else "") for texts in by_set.values()}
    return {text: numbers for text, numbers in sets.items() if text in kept or text in (EVERY, NO)}
