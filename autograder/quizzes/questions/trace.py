"""Run a definition on one input and record the shapes that its variables have, under limits of steps and time.

Code that switches tracing off, runs too long, or answers otherwise under observation gives no run, and therefore no question.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from types import FrameType
from typing import Any, Self, TypeAlias

from torch import Tensor

from autograder.checking.judges import same_answer
from autograder.checking.request import Observation, Request
from autograder.checking.subject import LocalSubject
from autograder.quizzes.questions.code import Code
from autograder.quizzes.questions.lines import assigned_names

MOST_STEPS = 20_000
MOST_SECONDS = 5.0
LONGEST_VALUE = 44
_CLOCK_EVERY = 256
# The last line and the variables of each assignment, by its lines.
Names: TypeAlias = Mapping[int, tuple[int, frozenset[str]]]


class TooLongError(BaseException):
    """The code has run more lines, or for longer, than a question is worth."""


@dataclass(frozen=True)
class Point:
    """The shape that a variable has after a line, the same each time that the line runs."""

    line: int
    name: str
    shape: str


def watched_run(code: Code, request: Request) -> tuple[Observation, tuple[Point, ...]] | None:
    """Run a definition traced and then plainly; return the answer and the shapes, or None if the answers differ or it takes too long."""
    with Tracer(code.filename, assigned_names(code.tree)) as tracer:  # first: what ends here ends without limits
        traced = LocalSubject(code.compiled()).observe(request)
    if tracer.failed or traced.error:
        return None
    plain = LocalSubject(code.compiled()).observe(request)
    alike = plain.mutated == traced.mutated and same_answer(plain, traced)
    shapes = {
        place: shape for place, (shape, *others) in tracer.shapes.items() if not others and len(shape) <= LONGEST_VALUE
    }
    return (plain, tuple(Point(*place, shape) for place, shape in shapes.items())) if alike else None


class Tracer:
    """Limits the lines that a definition runs and their time, and records the shapes of variables, while it is active.

    Args:
        filename: the file name of its code.
        names: the variables to record, as ``lines.assigned_names`` returns them.
        steps: how many lines may run.
        seconds: how long it may take.
    """

    def __init__(
        self, filename: str, names: Names | None = None, *, steps: int = MOST_STEPS, seconds: float = MOST_SECONDS
    ) -> None:
        self._filename, self._names = filename, names or {}
        self._most, self._seconds, self._end = steps, seconds, 0.0
        self._trace: Callable[..., Any] = self._called
        self._before: Any = None
        self._thread = 0
        self._last: dict[FrameType, int] = {}
        self.steps = 0
        self.shapes: dict[tuple[int, str], dict[str, None]] = {}
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
        last, names = self._names.get(self._last.pop(frame, 0), (0, frozenset[str]()))
        # A statement of several lines goes back and forth between them before it is done; a comprehension has a frame of its own.
        done = event == "return" or (event == "line" and self._names.get(frame.f_lineno, (-1, ()))[0] != last)
        for name in names if done and not frame.f_code.co_name.startswith("<") else ():
            if isinstance(value := frame.f_locals.get(name), Tensor):
                self.shapes.setdefault((last, name), {})[str(tuple(value.shape))] = None
        if event == "line":
            self._last[frame] = frame.f_lineno
            self.steps += 1
            late = self.steps % _CLOCK_EVERY == 0 and perf_counter() > self._end
            if self.steps > self._most or late:
                self._most, self.failed = 0, True
                raise TooLongError("the code runs too long to be asked about")
        return self._line


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
