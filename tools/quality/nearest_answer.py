"""Measure the points of a solution that looks up the answer to the nearest visible test instead of computing.

The student package contains the visible tests with their correct answers. A lookup table of them, which returns the nearest entry for any
other test, must earn no more than a trivial solution. ``tools.quality.__main__`` reports this measure.

Three kinds of lookup are measured:

- the unchanged entry;
- an entry fitted to the test: values that the answer shares with the recorded inputs are replaced by the new inputs' values at the same
  position. Letters are renamed, and axes are repeated or truncated to the new lengths;
- an entry fitted by rank: in a row of numbers, values of the same rank are kept.

A table that a student extends by hand until it is practically a solution is not measured.
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

from autograder.checking.decision import decide
from autograder.checking.exercise import Exercise
from autograder.checking.request import Observation, Request, Value, content_key
from autograder.checking.sheet import Sheet

# A fit adapts a recorded answer: from the recorded request, its answer, and the new request.
Fit: TypeAlias = Callable[[Request, Observation, Request], Observation]

# A recorded request with its answer.
Recorded: TypeAlias = tuple[Request, Observation]

# The distance for a difference of structure; a difference of values adds at most 1 per argument.
_OTHER_NAMES, _OTHER_TYPE, _OTHER_SHAPE = 1_000.0, 100.0, 10.0


class RecordedAnswers:
    """The visible tests of a sheet with their answers, keyed by content.

    Args:
        sheet: all tests, visible and hidden; the answers to hidden tests are not used.
    """

    def __init__(self, sheet: Sheet) -> None:
        self._contents: dict[int, tuple[Request, Hashable]] = {}
        self._nearest: dict[Hashable, Recorded | None] = {}
        self.visible: dict[Hashable, Recorded] = {}
        self.counterparts: dict[Hashable, Hashable] = {}
        for section in sheet.sections:
            groups = [probe.requests for probe in section.probes]
            for requests, answers in zip(groups[: section.visible], section.expected, strict=False):
                pairs = zip(requests, answers, strict=True)
                self.visible.update(zip(map(self.content, requests), pairs, strict=True))
            if section.visible is not None:
                for old, new in zip(groups[: section.visible], groups[section.visible :], strict=False):
                    self.counterparts.update(zip(map(self.content, new), map(self.content, old), strict=True))

    def content(self, request: Request) -> Hashable:
        """Return the content of a request, which is hashed once."""
        if id(request) not in self._contents:
            # An object that is kept keeps its id.
            self._contents[id(request)] = request, content_key(request)
        return self._contents[id(request)][1]

    def nearest(self, request: Request) -> Recorded | None:
        """Return the visible test with the nearest inputs, and its answer; None if no test has the same action."""
        key = self.content(request)
        if key not in self._nearest:
            alike = [entry for entry in self.visible.values() if entry[0].action == request.action]
            self._nearest[key] = min(alike, key=lambda entry: _distance(entry[0], request), default=None)
        return self._nearest[key]


class NearestAnswer:
    """A subject that answers from the visible tests of a sheet.

    Args:
        recorded: the visible tests and their answers.
        fit: how a recorded answer is fitted to a test.
        counterparts: match a hidden test with the visible test of the same case factory, as a student who knows how tests are generated
            could; by default the nearest test is found by its inputs.
    """

    def __init__(self, recorded: RecordedAnswers, fit: Fit, *, counterparts: bool = False) -> None:
        self._recorded = recorded
        self._fit = fit
        self._counterparts = recorded.counterparts if counterparts else {}

    def observe(self, request: Request) -> Observation:
        """Return the recorded answer to a visible test, or a fitted answer."""
        key, visible = self._recorded.content(request), self._recorded.visible
        if key in visible:
            return visible[key][1]
        entry = visible[self._counterparts[key]] if key in self._counterparts else self._recorded.nearest(request)
        return Observation() if entry is None else self._fit(*entry, request)

    def observe_groups(
        self, groups: Sequence[Sequence[Request]], *, forbidden: Sequence[str] = ()
    ) -> list[list[Observation]]:
        """Answer each request, in order."""
        return [[self.observe(request) for request in group] for group in groups]


def points_by_lookup(exercise: Exercise, *, seed: int = 0) -> float:
    """Return the highest lookup score over all fits, with visible and hidden tests.

    An exercise without parameters has one test, whose answer is the exercise itself; the result is 0.
    """
    if not inspect.signature(exercise.reference).parameters:
        return 0.0
    sheet = exercise.sheet(hidden=True, seed=seed)
    recorded = RecordedAnswers(sheet)
    ways = [NearestAnswer(recorded, fit, counterparts=counterparts) for fit in FITS for counterparts in (False, True)]
    return max(decide(sheet, way).score for way in ways)


def as_it_is(recorded_request: Request, answer: Observation, request: Request) -> Observation:
    """Return the recorded answer."""
    return answer


def fitted(recorded_request: Request, answer: Observation, request: Request) -> Observation:
    """Return the recorded answer with shared values, letters and lengths replaced by the test's."""
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
    """Return the distance of two requests with the same action: structure first, then values."""
    same = (a.method, a.training, a.wrt) == (b.method, b.training, b.wrt)
    return _apart(_inputs(a), _inputs(b)) + (0.0 if same else _OTHER_NAMES)


def _apart(a: Value, b: Value) -> float:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return _tensors_apart(a, b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        shared = [key for key in a if key in b]
        lacking = len(a) + len(b) - 2 * len(shared)
        # Keys are names of arguments, or data: words and scores.
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
    """Yield the pairs of leaves at the same position of two nested values."""
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
    """Map each value of one question to the value at the same position of the other; for text, also each character."""
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
    """Map each length of one question to the length at the same position of the other."""
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
    if isinstance(value, tuple):  # a shape instead of a tensor
        return tuple(lengths.get(item, item) for item in value)
    if isinstance(value, str):
        return renaming.get(value, "".join(str(renaming.get(letter, letter)) for letter in value))
    if isinstance(value, int) and not isinstance(value, bool):
        return renaming.get(value, value)
    return value


def _fit_tensor(
    value: Tensor, pairs: Sequence[tuple[Value, Value]], renaming: Mapping[Value, Value], lengths: Mapping[int, int]
) -> Tensor:
    # A length is never negative, though an argument may be.
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
    """Repeat or truncate each axis of a tensor to a length."""
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
