"""Run a definition on one input and record what its lines and expressions compute, under limits of steps and time.

Code that switches tracing off, runs too long, or answers otherwise under observation gives no run, and therefore no question. The answers
of a traced run and of a recorded run must equal the answer of a plain run.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from types import FrameType
from typing import Any, Self

import torch
from torch import Tensor

from autograder.checking.judges import same_answer
from autograder.checking.request import Observation, Request
from autograder.checking.subject import LocalSubject
from autograder.checking.value_text import number_text
from autograder.quizzes.questions.code import Code
from autograder.quizzes.questions.lines import Layout, expressions

MOST_STEPS = 20_000
MOST_SECONDS = 5.0
# Of a line that runs often, the first visits are recorded.
_VISITS = 3
LONGEST_VALUE = 44
_CLOCK_EVERY = 256
_RECORD = "__record_of_questions__"


class TooLongError(BaseException):
    """The code has run more lines, or for longer, than a question is worth."""


@dataclass(frozen=True)
class Point:
    """A value at one place of the code."""

    line: int
    text: str  # the variable or the expression
    after: bool  # it is a variable's value after the line has run; else an expression's value within it
    visit: int  # which run of the line, from 0
    sort: str  # ``"shape"`` for a tensor, or the type of a plain value
    shown: str  # the shape or the value as text


@dataclass(frozen=True)
class Run:
    """What one input does."""

    answer: Observation
    points: tuple[Point, ...]  # the values at places of the code
    counts: Mapping[int, int]  # how often each line ran


def watched_run(code: Code, parts: Layout, request: Request) -> Run | None:
    """Run a definition plainly, traced and recorded, and return what was seen; None if the three answers differ or one takes too long."""
    with Tracer(code.filename, parts) as tracer:  # first: it has limits, and what ends here ends without them
        traced = LocalSubject(code.compiled()).observe(request)
    if tracer.failed or traced.error:
        return None
    plain = LocalSubject(code.compiled()).observe(request)
    recorder = _Recorder()
    tree, places = _recording_tree(code)
    with Tracer(code.filename) as limits:
        recorded = LocalSubject(code.compiled(tree, {_RECORD: recorder})).observe(request)
    differs = limits.failed or not all(_alike(plain, other) for other in (traced, recorded))
    return None if differs else Run(plain, (*tracer.points, *recorder.points(places)), dict(tracer.counts))


def _alike(a: Observation, b: Observation) -> bool:
    return a.mutated == b.mutated and same_answer(a, b)


class Tracer:
    """Counts the lines that a definition runs and records its variables, while it is active.

    Args:
        filename: the file name of its code.
        parts: its statements; without them lines are only counted.
        steps: how many lines may run.
        seconds: how long it may take.
    """

    def __init__(
        self, filename: str, parts: Layout | None = None, *, steps: int = MOST_STEPS, seconds: float = MOST_SECONDS
    ) -> None:
        self._filename = filename
        self._parts = parts
        self._steps, self._seconds, self._end = steps, seconds, 0.0
        self._trace: Callable[..., Any] = self._called
        self._last: dict[FrameType, int] = {}
        self._visits: Counter[tuple[int, str]] = Counter()
        self._before: Any = None
        self._thread = 0
        self.counts: Counter[int] = Counter()
        self.points: list[Point] = []
        self.failed = False

    def __enter__(self) -> Self:
        self._before, self._thread = sys.gettrace(), threading.get_ident()
        self._end = perf_counter() + self._seconds
        sys.settrace(self._trace)
        return self

    def __exit__(self, *reason: object) -> None:
        # A tracing function that raises is removed by Python.
        self.failed |= sys.gettrace() is not self._trace
        sys.settrace(self._before)
        self._last.clear()

    def _called(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        return self._line if frame.f_code.co_filename == self._filename else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        if event == "exception":
            self._last.pop(frame, None)
        elif event in ("line", "return"):
            if self._parts is not None:
                self._record(frame, event, self._parts)
            if event == "line":
                self._count(frame)
            else:
                self._last.pop(frame, None)
        return self._line

    def _count(self, frame: FrameType) -> None:
        self.counts[frame.f_lineno] += 1
        self._last[frame] = frame.f_lineno
        self._steps -= 1
        late = self._steps % _CLOCK_EVERY == 0 and perf_counter() > self._end
        if self._steps < 0 or late:
            self._steps, self.failed = -1, True
            raise TooLongError("the code runs too long to be asked about")

    def _record(self, frame: FrameType, event: str, parts: Layout) -> None:
        line = parts.owner.get(self._last.get(frame, 0), 0)
        statement = parts.statements.get(line)
        # A statement of several lines goes back and forth between them before it is done; a comprehension has a frame of its own.
        inside = event == "line" and parts.owner.get(frame.f_lineno) == line and frame.f_lineno != self._last[frame]
        if statement is None or inside or frame.f_code.co_name.startswith("<"):
            return
        for name in statement.names:
            visit = self._visits[line, name]
            self._visits[line, name] += 1
            described = describe(frame.f_locals.get(name)) if visit < _VISITS else None
            if described is not None:
                self.points.append(Point(line, name, True, visit, *described))


def _recording_tree(code: Code) -> tuple[ast.Module, dict[int, tuple[int, str]]]:
    """Return a definition that records its expressions, and the line and text of each by its number."""
    tree = ast.parse(code.source)
    found = expressions(code.source, tree)
    numbers = {identity: number for number, identity in enumerate(found)}
    changed = _Wrapper(numbers).visit(tree)
    return ast.fix_missing_locations(changed), {numbers[identity]: place for identity, place in found.items()}


class _Wrapper(ast.NodeTransformer):
    """Puts a call of the recording function around nodes.

    Args:
        numbers: the number of each node by its identity.
    """

    def __init__(self, numbers: Mapping[int, int]) -> None:
        self._numbers = numbers

    def visit(self, node: ast.AST) -> Any:
        number = self._numbers.get(id(node))
        changed = self.generic_visit(node)
        if number is None:
            return changed
        assert isinstance(node, ast.expr)
        assert isinstance(changed, ast.expr)
        call = ast.Call(ast.Name(_RECORD, ast.Load()), [ast.Constant(number), changed], [])
        return ast.copy_location(call, node)


class _Recorder:
    """Records the values of expressions by their numbers."""

    def __init__(self) -> None:
        self._visits: Counter[int] = Counter()
        self._seen: list[tuple[int, int, tuple[str, str]]] = []

    def __call__(self, number: int, value: Any) -> Any:
        visit = self._visits[number]
        self._visits[number] += 1
        described = describe(value) if visit < _VISITS else None
        if described is not None:
            self._seen.append((number, visit, described))
        return value

    def points(self, places: Mapping[int, tuple[int, str]]) -> list[Point]:
        """Return the values with the places of their expressions."""
        return [Point(*places[number], False, visit, *described) for number, visit, described in self._seen]


class LimitedSubject(LocalSubject):
    """A function or class in this process that answers no request after one has run too long: Python then stops tracing.

    Args:
        candidate: the function or class.
        limits: the active limits.
    """

    def __init__(self, candidate: Callable[..., Any], limits: Tracer) -> None:
        super().__init__(candidate)
        self._limits = limits

    def observe(self, request: Request) -> Observation:
        """Do what the request asks and tell what happened.

        Raises:
            TooLongError: if the limits have been exceeded.
        """
        if not self._limits.failed:
            observation = super().observe(request)
        if self._limits.failed:
            raise TooLongError("the code runs too long to be asked about")
        return observation


def describe(value: Any) -> tuple[str, str] | None:
    """Return the sort and the text of a value; None if it is neither a tensor nor short and plain."""
    if isinstance(value, Tensor):
        shape = str(tuple(value.shape))
        return ("shape", shape) if len(shape) <= LONGEST_VALUE else None
    if type(value) is torch.Size:
        return "tuple", str(tuple(value))
    if type(value) is float:
        return "float", number_text(value)
    if type(value) in (int, str) or (type(value) in (tuple, list, dict) and _is_plain(value)):
        text = repr(value)
        return (type(value).__name__, text) if len(text) <= LONGEST_VALUE else None
    return None


def _is_plain(value: Any) -> bool:
    items = [*value.keys(), *value.values()] if type(value) is dict else value
    return 0 < len(items) <= 12 and all(
        type(item) in (int, str, bool) or (type(item) in (tuple, list) and _is_plain(item)) for item in items
    )
