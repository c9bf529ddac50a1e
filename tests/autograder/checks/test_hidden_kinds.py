"""Hidden questions differ from the visible ones in their numbers only: no kind of argument is asked in secret."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from autograder.checking.sheet import Sheet
from autograder.checks import exercises


def kind(value: Any) -> Hashable:
    """Return what an answer may depend on besides the numbers: type, axes, emptiness, sign, and the choice among names."""
    if isinstance(value, Tensor):
        special = value.is_floating_point() and not bool(torch.isfinite(value).all())
        return str(value.dtype), value.ndim, 0 in value.shape, special
    if isinstance(value, dict):
        return "dict", frozenset(map(kind, value.values()))
    if isinstance(value, list | tuple):
        return type(value).__name__, frozenset(map(kind, value))
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return type(value).__name__, (value > 0) - (value < 0), value in (float("inf"), float("-inf"))
    return type(value).__name__


def kinds(sheet: Sheet) -> Iterator[Hashable]:
    """Yield, for each argument of each question, how it is judged and what kind of argument it is."""
    for section in sheet.sections:
        for probe in section.probes:
            for request in probe.requests:
                asked = probe.judge, request.action, request.method, request.training, request.wrt
                yield asked
                for name, value in {**(request.init or {}), **request.arguments}.items():
                    # A list of some of the visible kinds of elements is no kind of its own.
                    parts = value if isinstance(value, list | tuple) and value else [value]
                    yield from ((*asked, name, type(value).__name__, kind(part)) for part in parts)


@pytest.mark.parametrize("name", exercises())
def test_every_kind_of_hidden_argument_is_asked_visibly(name: str) -> None:
    exercise = exercises()[name]
    visible = set(kinds(exercise.sheet()))
    for seed in (1, 2):
        only_hidden = set(kinds(exercise.sheet(hidden=True, seed=seed))) - visible
        assert not only_hidden


def test_a_size_that_is_0_only_in_secret_is_noticed() -> None:
    assert kind(0) != kind(3)
    assert kind(torch.zeros(2, 0)) != kind(torch.zeros(2, 3))
    assert kind(torch.tensor([1.0, float("inf")])) != kind(torch.tensor([1.0, 2.0]))
