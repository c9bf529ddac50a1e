"""Try to repair code with a mistake in another line: if that succeeded, the question for the line would have two right answers."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from autograder.checking.decision import first_failure
from autograder.checking.subject import LocalSubject
from autograder.mistakes.source_edits import EditError
from autograder.quizzes.exam.shown_code import ShownCode
from autograder.quizzes.mutation.limits import in_fork
from autograder.quizzes.mutation.operators import mutations

_REPAIRED, _FAILS = "repaired", "fails"
_SECONDS, _MEMORY = 60.0, 4 << 30
# Of each change; the tests of a right solution take less than half of it.
_SECONDS_EACH, _SECONDS_AGAIN = 3.0, 0.2


def repairs(code: ShownCode, line: int) -> bool:
    """Return whether a standard change of one line makes code pass every test, visible and hidden."""
    changes = list(_changes(code, line))
    answer, _ = in_fork(partial(_try, changes), seconds=_SECONDS, memory=_MEMORY)
    return answer == _REPAIRED


def _try(changes: list[ShownCode]) -> str:
    """Try the changes one after another, each for a few seconds, because a change may loop for ever."""
    signal.signal(signal.SIGVTALRM, _stop)
    return _REPAIRED if any(map(_passes_soon, changes)) else _FAILS


def _passes_soon(code: ShownCode) -> bool:
    """Return whether code passes every test. The clock goes on ticking, because a test takes the first error for an answer."""
    with suppress(TimeoutError):
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS_EACH, _SECONDS_AGAIN)
            return passes(code)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return False


def _stop(number: int, frame: object) -> None:
    raise TimeoutError("the changed code runs too long")


def passes(code: ShownCode) -> bool:
    """Return whether code passes every test, visible and hidden."""
    try:
        candidate = code.candidate()
    except EditError:
        return False
    return first_failure(code.exercise.sheet(hidden=True), LocalSubject(candidate)) is None


def _changes(code: ShownCode, line: int) -> Iterator[ShownCode]:
    """Yield the code with each standard change of one line."""
    for key, definition in code.definitions.items():
        start = code.source.split("\n").index(definition.split("\n")[0]) + 1
        if start <= line < start + len(definition.split("\n")):
            for mutation in mutations(definition):
                if mutation.line == line - start + 1:
                    yield ShownCode(code.exercise, code.source, {**code.definitions, key: mutation.code})
