"""A solution that computes nothing and looks answers up: it answers each question as its nearest visible one is answered.

The student package holds the visible questions with the right answers. Whoever writes them into a table, and answers every other
question from the nearest entry, must earn no more than a solution that does nothing. ``autograder.selftest.quality`` measures it.

What it measures:

- an entry taken as it is;
- an entry fitted to the question: each value that the answer shares with its own question is replaced by the value at the same position
  of the new question, letters are renamed, axes are repeated or cut to the new lengths;
- an entry fitted by rank: of a row of numbers, those of the same rank are kept.

What it does not measure: a table that somebody improves by hand until it is a solution in all but name.
"""

from __future__ import annotations

import difflib
import inspect
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch
from torch import Tensor

from autograder.checking.exercise import Exercise
from autograder.checking.request import Observation, Request, Value, content
from autograder.checking.sheet import Sheet, decide

# How a recorded answer is fitted: it takes the recorded request, its answer, and the request that is to be answered.
Fit: TypeAlias = Callable[[Request, Observation, Request], Observation]

# What a difference of structure costs, compared with one of values, which costs at most 1 for each argument.
_OTHER_NAMES, _OTHER_TYPE, _OTHER_SHAPE = 1_000.0, 100.0, 10.0


class NearestAnswer:
    """A subject that answers from the visible questions of a sheet.

    Args:
        sheet: all questions, visible and hidden; of the hidden ones it knows no answer.
        fit: how a recorded answer is fitted to a question.
        counterparts: take a hidden question for a version of the visible one that has the same case maker, as somebody could who has
            understood how questions are made; otherwise the nearest one is found by its inputs.
    """

    def __init__(self, sheet: Sheet, fit: Fit, *, counterparts: bool = False) -> None:
        self._fit = fit
        self._known: dict[Hashable, tuple[Request, Observation]] = {}
        self._counterparts: dict[Hashable, Hashable] = {}
        for section in sheet.sections:
            groups = [probe.requests for probe in section.probes]
            for requests, answers in zip(groups[: section.visible], section.expected, strict=False):
                self._known.update(zip(map(content, requests), zip(requests, answers, strict=True), strict=True))
            if counterparts and section.visible is not None:
                for old, new in zip(groups[: section.visible], groups[section.visible :], strict=False):
                    self._counterparts.update(zip(map(content, new), map(content, old), strict=True))

    def observe(self, request: Request) -> Observation:
        """Return the recorded answer to a visible question, or a fitted one."""
        named = content(request)
        if named in self._known:
            return self._known[named][1]
        if named in self._counterparts:
            return self._fit(*self._known[self._counterparts[named]], request)
        alike = [entry for entry in self._known.values() if entry[0].action == request.action]
        if not alike:
            return Observation()
        return self._fit(*min(alike, key=lambda entry: _distance(entry[0], request)), request)

    def observe_groups(
        self, groups: Sequence[Sequence[Request]], *, forbidden: Sequence[str] = ()
    ) -> list[list[Observation]]:
        """Answer each request, in order."""
        return [[self.observe(request) for request in group] for group in groups]


def points_by_lookup(exercise: Exercise, *, seed: int = 0) -> float:
    """Return the most that looking answers up earns, in whichever way they are fitted, of visible and hidden questions together.

    Where there is nothing to ask about, there is one question, and its answer is what students are to write: 0.
    """
    if not inspect.signature(exercise.reference).parameters:
        return 0.0
    sheet = exercise.sheet(hidden=True, seed=seed)
    ways = [NearestAnswer(sheet, fit, counterparts=counterparts) for fit in FITS for counterparts in (False, True)]
    return max(decide(sheet, way).score for way in ways)


def as_it_is(recorded_request: Request, answer: Observation, request: Request) -> Observation:
    """Return the recorded answer."""
    return answer


def fitted(recorded_request: Request, answer: Observation, request: Request) -> Observation:
    """Return the recorded answer with shared values, letters and lengths replaced by those of the question."""
    pairs = [
        pair for a, b in zip(_inputs(recorded_request), _inputs(request), strict=True) for pair in _named_pairs(a, b)
    ]
    renaming = _renaming(pairs)
    lengths = _lengths(pairs)
    outputs = {name: _fit_value(value, pairs, renaming, lengths) for name, value in answer.outputs.items()}
    return replace(answer, outputs=outputs)


def fitted_by_rank(recorded_request: Request, answer: Observation, request: Request) -> Observation:
    """Return the recorded answer with every number of an argument that it shares replaced by the question's number of the same rank."""
    pairs = [(a, b) for a, b in _pairs(_inputs(recorded_request), _inputs(request)) if isinstance(a, Tensor) and a.ndim]
    outputs = {name: _rank_value(value, pairs) for name, value in answer.outputs.items()}
    return replace(answer, outputs=outputs)


FITS: tuple[Fit, ...] = (as_it_is, fitted, fitted_by_rank)


def _inputs(request: Request) -> tuple[Value, ...]:
    return request.arguments, request.init, request.state, request.props


def _distance(a: Request, b: Request) -> float:
    """How far two requests with the same action are apart: structure first, then values."""
    same = (a.method, a.training, a.wrt) == (b.method, b.training, b.wrt)
    return _apart(_inputs(a), _inputs(b)) + (0.0 if same else _OTHER_NAMES)


def _apart(a: Value, b: Value) -> float:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _tensors_apart(a, b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        shared = [key for key in a if key in b]
        lacking = len(a) + len(b) - 2 * len(shared)
        # Keys are arguments, or data: words and scores.
        return lacking * _OTHER_TYPE + sum(_apart(a[key], b[key]) for key in shared)
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        if isinstance(a, list) and all(isinstance(item, (str, int)) for item in [*a, *b]):
            return 1 - difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()
        return abs(len(a) - len(b)) * _OTHER_SHAPE + sum(map(_apart, a, b))
    if isinstance(a, str) and isinstance(b, str):
        return 1 - difflib.SequenceMatcher(None, a, b, autojunk=False).ratio()
    if isinstance(a, bool) or isinstance(b, bool) or a is None or b is None or type(a) is not type(b):
        return 0.0 if type(a) is type(b) and a == b else _OTHER_TYPE
    return abs(a - b) / (1 + abs(a) + abs(b)) if math.isfinite(a) and math.isfinite(b) else float(a != b)


def _tensors_apart(a: Tensor, b: Tensor) -> float:
    if a.dtype != b.dtype or a.ndim != b.ndim:
        return _OTHER_TYPE
    if a.shape != b.shape:
        return _OTHER_SHAPE * sum(x != y for x, y in zip(a.shape, b.shape, strict=True))
    if not a.numel():
        return 0.0
    gap = (a.double() - b.double()).abs().nan_to_num(nan=0.0, posinf=1.0).mean()
    return float(gap / (1 + gap))


def _named_pairs(a: Mapping[str, Value] | None, b: Mapping[str, Value] | None) -> Iterator[tuple[Value, Value]]:
    """Yield the leaves of arguments with the same names."""
    a, b = a or {}, b or {}
    for name in a:
        if name in b:
            yield from _pairs(a[name], b[name])


def _pairs(a: Value, b: Value) -> Iterator[tuple[Value, Value]]:
    """Yield the leaves of two nested values that stand at the same position."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        if a.keys() == b.keys():
            b = {key: b[key] for key in a}
        yield from _pairs([*a.keys(), *a.values()], [*b.keys(), *b.values()])
    elif isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        for x, y in zip(a, b, strict=False):
            yield from _pairs(x, y)
    else:
        yield a, b


def _renaming(pairs: Sequence[tuple[Value, Value]]) -> dict[Value, Value]:
    """Return which value of the one question stands where a value of the other one stood; of text, which character too."""
    names: dict[Value, Value] = {}
    for a, b in pairs:
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            if a.shape == b.shape and not a.is_floating_point() and a.dtype != torch.bool:
                for x, y in zip(a.flatten().tolist(), b.flatten().tolist(), strict=True):
                    names.setdefault(x, y)
        elif isinstance(a, (str, int)) and type(a) is type(b) and not isinstance(a, bool):
            names.setdefault(a, b)
            if isinstance(a, str) and isinstance(b, str):
                for x, y in zip(a, b, strict=False):
                    names.setdefault(x, y)
    return names


def _lengths(pairs: Sequence[tuple[Value, Value]]) -> dict[int, int]:
    """Return which length of the one question stands where a length of the other one stood."""
    lengths: dict[int, int] = {}
    for a, b in pairs:
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.ndim == b.ndim:
            for x, y in zip(a.shape, b.shape, strict=True):
                lengths.setdefault(x, y)
        elif isinstance(a, int) and isinstance(b, int):
            lengths.setdefault(a, b)
    return lengths


def _fit_value(
    value: Value, pairs: Sequence[tuple[Value, Value]], renaming: Mapping[Value, Value], lengths: Mapping[int, int]
) -> Value:
    if isinstance(value, Tensor):
        return _fit_tensor(value, pairs, renaming, lengths)
    if isinstance(value, tuple):  # a shape in the place of a tensor
        return tuple(lengths.get(item, item) for item in value)
    if isinstance(value, str):
        return renaming.get(value, "".join(str(renaming.get(letter, letter)) for letter in value))
    if isinstance(value, int) and not isinstance(value, bool):
        return renaming.get(value, value)
    return value


def _fit_tensor(
    value: Tensor, pairs: Sequence[tuple[Value, Value]], renaming: Mapping[Value, Value], lengths: Mapping[int, int]
) -> Tensor:
    # No length is negative, though an argument may be.
    shape = [max(lengths.get(length, length), 0) for length in value.shape]
    new = _resized(value, shape)
    if not value.is_floating_point() and value.dtype != torch.bool:
        renamed = [renaming.get(item, item) for item in new.flatten().tolist()]
        if all(isinstance(item, int) for item in renamed):
            new = torch.tensor(renamed, dtype=value.dtype).reshape(new.shape)
    for a, b in pairs:
        if isinstance(a, Tensor) and isinstance(b, Tensor) and a.shape == value.shape and list(b.shape) == shape:
            shared = _resized(a == value, shape)
            new = torch.where(shared, b.to(new.dtype), new)
    return new


def _resized(value: Tensor, shape: Sequence[int]) -> Tensor:
    """Return a tensor with each axis repeated or cut to a length."""
    for dim, length in enumerate(shape):
        if value.shape[dim] != length:
            if not value.shape[dim]:
                return value.new_zeros(tuple(shape))
            value = value.index_select(dim, torch.arange(length) % value.shape[dim])
    return value


def _rank_value(value: Value, pairs: Sequence[tuple[Tensor, Value]]) -> Value:
    if not isinstance(value, Tensor) or not value.ndim:
        return value
    for a, b in pairs:
        if a.shape == value.shape and isinstance(b, Tensor) and b.ndim == a.ndim and b.shape[-1]:
            numbers, order = b.sort(dim=-1, descending=True, stable=True)
            old, ranks = a.sort(dim=-1, descending=True, stable=True)
            ranked = _resized(value.gather(-1, ranks), b.shape)
            shared = _resized(old == value.gather(-1, ranks), b.shape)
            return torch.empty_like(ranked).scatter(-1, order, torch.where(shared, numbers.to(value.dtype), ranked))
    return value
