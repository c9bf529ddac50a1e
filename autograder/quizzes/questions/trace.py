"""Run a definition on one input and record the shapes that its expressions have and what its variables hold in the rounds of its loops,
under limits of steps and time.

Code that switches tracing off, runs too long, or answers otherwise under observation gives no run, and therefore no question.
"""

from __future__ import annotations

import ast
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import FrameType
from typing import Any, Self

from torch import Tensor

from autograder.checking.judges import same_answer
from autograder.checking.request import Observation, Request
from autograder.checking.subject import LocalSubject
from autograder.quizzes.questions.code import Code
from autograder.quizzes.questions.lines import Place, expressions

MOST_STEPS = 20_000
MOST_SECONDS = 5.0
LONGEST_VALUE = 44
_CLOCK_EVERY = 256
_RECORD = "__record_of_questions__"


class TooLongError(BaseException):
    """The code has run more lines, or for longer, than a question is worth."""


@dataclass(frozen=True)
class Point:
    """A shape at one place of the code, the same each time that it is reached."""

    line: int
    text: str  # the variable or the expression
    after: bool  # it is what the line assigns to a variable; else an expression within it
    shape: str  # the shape as text


@dataclass(frozen=True)
class Run:
    """What one input does."""

    answer: Observation
    points: tuple[Point, ...]  # the shapes at places of the code
    rounds: Mapping[str, Sequence[Any]]  # what each variable of a loop held, in order


def watched_run(code: Code, request: Request) -> Run | None:
    """Run a definition recorded and then plainly, and return what was seen; None if the two answers differ or it takes too long."""
    recorder = _Recorder()
    tree, places = _recording_tree(code)
    with Tracer(code.filename) as limits:  # first: it has limits, and what ends here ends without them
        recorded = LocalSubject(code.compiled(tree, {_RECORD: recorder})).observe(request)
    if limits.failed or recorded.error:
        return None
    plain = LocalSubject(code.compiled()).observe(request)
    alike = plain.mutated == recorded.mutated and same_answer(plain, recorded)
    return Run(plain, recorder.points(places), recorder.rounds(places)) if alike else None


class Tracer:
    """Limits the lines that a definition runs and their time, while it is active.

    Args:
        filename: the file name of its code.
        steps: how many lines may run.
        seconds: how long it may take.
    """

    def __init__(self, filename: str, *, steps: int = MOST_STEPS, seconds: float = MOST_SECONDS) -> None:
        self._filename = filename
        self._most, self._seconds, self._end = steps, seconds, 0.0
        self._trace: Callable[..., Any] = self._called
        self._before: Any = None
        self._thread = 0
        self.steps = 0
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

    def _called(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        return self._line if frame.f_code.co_filename == self._filename else None

    def _line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        if event == "line":
            self.steps += 1
            late = self.steps % _CLOCK_EVERY == 0 and perf_counter() > self._end
            if self.steps > self._most or late:
                self._most, self.failed = 0, True
                raise TooLongError("the code runs too long to be asked about")
        return self._line


def _recording_tree(code: Code) -> tuple[ast.Module, list[Place]]:
    """Return a definition that records its expressions, and the place of each by its number."""
    tree = ast.parse(code.source)
    found = expressions(code.source, tree)
    changed = _Wrapper({identity: number for number, identity in enumerate(found)}).visit(tree)
    return ast.fix_missing_locations(changed), list(found.values())


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
        self._values: list[tuple[int, Any]] = []

    def __call__(self, number: int, value: Any) -> Any:
        if len(self._values) < MOST_STEPS:
            self._values.append((number, tuple(value.shape) if isinstance(value, Tensor) else _plain(value)))
        return value

    def points(self, places: Sequence[Place]) -> tuple[Point, ...]:
        """Return the shapes that were the same each time, with the places of their expressions."""
        shapes: dict[int, set[str]] = {}
        for number, value in self._values:
            shapes.setdefault(number, set()).add(str(value) if isinstance(value, tuple) else "")
        return tuple(
            Point(place.line, place.text, place.assigns, shape)
            for number, (shape, *others) in ((number, sorted(found)) for number, found in shapes.items())
            if (place := places[number]).text and shape and not others and len(shape) <= LONGEST_VALUE
        )

    def rounds(self, places: Sequence[Place]) -> dict[str, list[Any]]:
        """Return the plain values that were assigned to each variable within loops, in order."""
        found: dict[str, list[Any]] = {}
        for number, value in self._values:
            if places[number].in_loop and places[number].assigns:
                found.setdefault(places[number].text, []).append(value)
        return found


def _plain(value: Any) -> Any:
    """Return a number or truth value as it is, and the length of a text or list as ``[length]``; None for anything else."""
    if type(value) in (bool, int, float):
        return value
    return [len(value)] if type(value) in (str, list, tuple, dict) else None


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
