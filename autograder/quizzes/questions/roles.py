"""Describe what a variable does over the rounds of a loop, by the values that it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

_FEWEST_ROUNDS = 3


def _numbers(values: Sequence[Any]) -> list[float]:
    """Return values as numbers: lengths as they are, shapes as their number of entries; none if one is nothing of this."""
    numbers = [value[0] if type(value) is list else value for value in values]
    return numbers if all(type(value) in (int, float) for value in numbers) else []


def _steps(values: Sequence[Any]) -> list[float]:
    return [b - a for a, b in pairwise(_numbers(values))]


def _is_length(values: Sequence[Any]) -> bool:
    return all(type(value) in (list, tuple) for value in values)


#: What a variable can do, with whether a trace shows it.
ROLES: Mapping[str, Callable[[Sequence[Any]], bool]] = {
    "once it is True, it stays True": lambda values: (
        all(type(value) is bool for value in values) and list(values) == sorted(values) and len(set(values)) == 2
    ),
    "it collects: each round it is longer": lambda values: _is_length(values) and _grows(values),
    "it counts: each round adds the same number": lambda values: (
        not _is_length(values) and len(set(_steps(values))) == 1 and _steps(values)[0] != 0
    ),
    "it adds up or keeps the largest: it never falls": lambda values: (
        not _is_length(values) and bool(_steps(values)) and min(_steps(values)) >= 0 and len(set(_steps(values))) > 1
    ),
    "it is new each round, larger or smaller than before": lambda values: (
        bool(_steps(values)) and min(_steps(values)) < 0 < max(_steps(values))
    ),
    "it gets smaller each round": lambda values: bool(_steps(values)) and max(_steps(values)) < 0,
}


def _grows(values: Sequence[Any]) -> bool:
    sizes = [sum(value) for value in values]
    return all(a < b for a, b in pairwise(sizes))


def roles(runs: Sequence[Mapping[str, Sequence[Any]]]) -> dict[str, tuple[str, ...]]:
    """Return the descriptions that fit a variable in every run with a few rounds, for the variables that one fits."""
    traces: dict[str, list[Sequence[Any]]] = {}
    for run in runs:
        for name, values in run.items():
            if len(values) >= _FEWEST_ROUNDS:
                traces.setdefault(name, []).append(values)
    fitting = {
        name: tuple(text for text, fits in ROLES.items() if all(map(fits, found))) for name, found in traces.items()
    }
    return {name: texts for name, texts in fitting.items() if texts}
