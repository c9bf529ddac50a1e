"""Run a definition on one input under limits on executed lines and time.

Code that switches tracing off, runs too long, or answers differently when traced has no run, and therefore no question.
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
    """The code has exceeded the limit of executed lines or of time."""


def watched_run(code: Code, request: Request) -> Observation | None:
    """Run a definition with and without tracing, and return the answer; None if the answers differ or a run fails or takes too long."""
    with Tracer(code.filename) as tracer:  # first, because the plain run has no limits
        traced = LocalSubject(code.run_definition()).observe(request)
    if tracer.failed or traced.error:
        return None
    plain = LocalSubject(code.run_definition()).observe(request)
    return plain if plain.mutated == traced.mutated and is_same_answer(plain, traced) else None


class Tracer:
    """A context manager that limits the executed lines of a definition and their time.

    Args:
        filename: the file name of the definition's code.
        steps: the maximum number of executed lines.
        seconds: the maximum time.
    """

    def __init__(self, filename: str, *, steps: int = MOST_STEPS, seconds: float = MOST_SECONDS) -> None:
        self._filename, self._most, self._seconds, self._end = filename, steps, seconds, 0.0
        self._trace: Callable[..., Any] = self._trace_call
        self._before: Any = None
        self.steps = 0
        self.failed = False

    def __enter__(self) -> Self:
        self._before = sys.gettrace()
        self._end = perf_counter() + self._seconds
        sys.settrace(self._trace)
        return self

    def __exit__(self, *reason: object) -> None:
        # Python removes a tracing function that raises.
        self.failed |= sys.gettrace() is not self._trace
        sys.settrace(self._before)

    def _trace_call(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        return self._trace_line if frame.f_code.co_filename == self._filename else None

    def _trace_line(self, frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        if event == "line":
            self.steps += 1
            late = self.steps % _CLOCK_EVERY == 0 and perf_counter() > self._end
            if self.steps > self._most or late:
                self._most, self.failed = 0, True
                raise TooLongError("the code runs too long to be asked about")
        return self._trace_line


class LimitedSubject(LocalSubject):
    """A function or class in this process that answers no request after a limit was exceeded, because Python then stops tracing.

    Args:
        candidate: the function or class.
        limits: the active limits.
    """

    def __init__(self, candidate: Callable[..., Any], limits: Tracer) -> None:
        super().__init__(candidate)
        self._limits = limits

    def observe(self, request: Request) -> Observation:
        """Carry out a request, and return the observation.

        Raises:
            TooLongError: if the limits have been exceeded.
        """
        if not self._limits.failed:
            observation = super().observe(request)
        if self._limits.failed:
            raise TooLongError("the code runs too long to be asked about")
        return observation
