"""Run a definition on one input under limits of steps and time.

Code that switches tracing off, runs too long, or answers otherwise under observation gives no run, and therefore no question.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import perf_counter
from types import FrameType
from typing import Any, Self

from autograder.checking.judges import is_same_answer
from autograder.checking.request import Observation, Request
from autograder.checking.subject import LocalSubject
from autograder.quizzes.questions.code import Code

MOST_STEPS = 20_000
MOST_SECONDS = 5.0
_CLOCK_EVERY = 256


class TooLongError(BaseException):
    """The code has run more lines, or for longer, than a question is worth."""


def watched_run(code: Code, request: Request) -> Observation | None:
    """Run a definition traced and then plainly; return the answer, or None if the answers differ, or it fails or takes too long."""
    with Tracer(code.filename) as tracer:  # first: what ends here ends without limits
        traced = LocalSubject(code.compiled()).observe(request)
    if tracer.failed or traced.error:
        return None
    plain = LocalSubject(code.compiled()).observe(request)
    return plain if plain.mutated == traced.mutated and is_same_answer(plain, traced) else None


class Tracer:
    """Limits the lines that a definition runs and their time while it is active.

    Args:
        filename: the file name of its code.
        steps: how many lines may run.
        seconds: how long it may take.
    """

    def __init__(self, filename: str, *, steps: int = MOST_STEPS, seconds: float = MOST_SECONDS) -> None:
        self._filename, self._most, self._seconds, self._end = filename, steps, seconds, 0.0
        self._trace: Callable[..., Any] = self._called
        self._before: Any = None
        self.steps = 0
        self.failed = False

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
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
