"""Run the process of a pre-check: run a notebook's cells, check exercises, and report each result immediately.

It is started as a program. It reads its job as JSON from standard input and writes a line of JSON per event. The notebook's output is
discarded. The grader has its own program, which keeps the output: ``autograder.engine.student.plain_process``.
"""

from __future__ import annotations

import _thread
import contextlib
import io
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import IO, Any, Protocol

from autograder.checking.verdict import Verdict

# For example a student's helper that a cell passes to check().
NO_EXERCISE = "not an exercise of this course"
NOT_DEFINED = "not defined"
# Seconds between two interrupts of code that does not stop.
_INSIST_SECONDS = 1.0


class FailureError(Exception):
    """A cell or a check did not end; the message explains it in a sentence."""

    kind = "timeout"


class OutputFloodError(FailureError):
    """A cell has exceeded its output limit."""

    kind = "output flood"

    def __init__(self, most: int) -> None:
        super().__init__(f"It printed more than {most} characters and was stopped.")


class _TimeUsedUpError(FailureError):
    kind = "time used up"


Tell = Callable[[Mapping[str, Any]], None]
# The kind of a cell's failure, and what it raised, or a sentence.
Failed = tuple[str, str]


class Runner(Protocol):
    """Runs cells."""

    def run(self, source: str) -> Failed | None:
        """Run a cell, and return its failure, or None. Raises KeyboardInterrupt if it was interrupted."""
        ...

    def event_data(self) -> Mapping[str, Any]:
        """Return further data for the event of the last cell."""
        ...


def main() -> None:
    """Run one pre-check job."""
    run_one_job(_run_job)


def run_one_job(do: Callable[[Mapping[str, Any], Tell], None]) -> None:
    """Read a job, run it, and end this process.

    Args:
        do: called with the job, and with a function that writes an event.
    """
    job = json.load(sys.stdin)
    tell = _reserve_output()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell inherits that it is ignored
    try:
        do(job, tell)
        tell({"end": True})
    except Exception as error:
        tell({"failed": f"{type(error).__name__}: {error}"})
    # Exit without waiting for threads and exit handlers of the notebook.
    os._exit(0)


def _reserve_output() -> Tell:
    """Return a function that writes events, and discard all other output, even below Python's streams."""
    pipe: IO[str] = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.close(nothing)

    def tell(event: Mapping[str, Any]) -> None:
        pipe.write(json.dumps(event) + "\n")
        pipe.flush()

    return tell


def run_cells(job: Mapping[str, Any], tell: Tell, runner: Runner) -> Clock:
    """Run a job's cells, report their failures, and return the clock with the remaining time."""
    clock = Clock(tell, job["limits"]["seconds"])
    for number, source in job["cells"]:
        try:
            failed = clock.run({"cell": number}, job["limits"]["cell_seconds"], partial(runner.run, source))
        except FailureError as stopped:
            failed = stopped.kind, str(stopped)
        tell({"cell": number, "failed_by": failed, **runner.event_data()})
    return clock


def _run_job(job: Mapping[str, Any], tell: Tell) -> None:
    shell = _Shell(job["limits"]["output"])
    clock = run_cells(job, tell, shell)
    for name in job["exercises"]:
        reason = job["skipped"].get(name)
        try:
            check = partial(_check_by_name, name, shell.namespace.get(name))
            outcome = (
                _absent_event(name, reason)
                if reason
                else clock.run({"exercise": name}, job["limits"]["exercise_seconds"], check)
            )
        except FailureError as stopped:
            outcome = _absent_event(name, f"its check did not finish: {stopped}")
        tell({"exercise": name, **outcome})


class _Shell:
    """Runs cells in IPython's shell, and discards their output.

    Args:
        most: how many characters a cell may print.
    """

    def __init__(self, most: int) -> None:
        # Import what every check needs before the clock starts: it does not count as the notebook's time.
        import torch  # noqa: F401
        from IPython.core.interactiveshell import InteractiveShell

        self._shell = InteractiveShell.instance()
        self._most = most
        self.namespace = self._shell.user_ns

    def run(self, source: str) -> Failed | None:
        with (
            contextlib.redirect_stdout(_DiscardingStream(self._most)),
            contextlib.redirect_stderr(_DiscardingStream(self._most)),
        ):
            result = self._shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        if isinstance(error, (KeyboardInterrupt, OutputFloodError)):
            raise error
        return error and ("cell error", f"{type(error).__name__}: {error}")

    def event_data(self) -> Mapping[str, Any]:
        return {}


def _check_by_name(name: str, candidate: Any) -> dict[str, Any]:
    """Check the object that the notebook defines under an exercise's name, and return the verdict as event data."""
    if not callable(candidate):
        return _absent_event(name, NOT_DEFINED)
    try:
        verdict = _check_candidate(candidate)
    except LookupError:
        return {"absent": NO_EXERCISE, "points": None}
    if verdict.exercise == name:
        return {"verdict": verdict.to_dict()}
    # The check identifies an exercise by the function's own name, as the grader does.
    return _absent_event(name, f"it is another name for {verdict.exercise}")


def _absent_event(name: str, reason: str) -> dict[str, Any]:
    """Return the event data for an exercise that cannot be checked, with its points."""

    def stub(*arguments: Any, **options: Any) -> Any:
        raise NotImplementedError

    stub.__name__ = name
    try:
        # Only a check knows its points, and checking a stub is cheap.
        return {"absent": reason, "points": _check_candidate(stub).max_score}
    except LookupError:
        return {"absent": NO_EXERCISE, "points": None}


def _check_candidate(candidate: Callable[..., Any]) -> Verdict:
    from tfcourse import check

    return check(candidate)


class _DiscardingStream(io.TextIOBase):
    """A stream that counts its characters and discards them."""

    encoding = "utf-8"

    def __init__(self, most: int) -> None:
        self._left = self._most = most

    def write(self, text: str) -> int:
        """Count some text."""
        self._left -= len(text)
        if self._left < 0:
            raise OutputFloodError(self._most)
        return len(text)


class Clock:
    """Runs actions one by one, reports the beginning of each, and interrupts slow ones.

    Args:
        tell: writes an event.
        seconds: how long all actions together may run.
    """

    def __init__(self, tell: Tell, seconds: float) -> None:
        self._tell = tell
        self._stop_at = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._deadline: float | None = None
        threading.Thread(target=self._interrupt_slow_actions, daemon=True).start()

    def run(self, label: Mapping[str, Any], seconds: float, action: Callable[[], Any]) -> Any:
        """Run an action with a time limit.

        Args:
            label: names it in the event of its beginning.
            seconds: how long it may take.

        Raises:
            FailureError: if it was interrupted.
        """
        seconds = min(seconds, self._stop_at - time.monotonic())
        if seconds <= 0:
            raise _TimeUsedUpError("It was not run: the notebook had used up its time.")
        self._tell({"begins": label, "seconds": seconds})
        try:
            with self._limit_time(seconds):
                return action()
        except KeyboardInterrupt:
            raise FailureError(f"It was stopped after {seconds:.3g} s.") from None

    @contextlib.contextmanager
    def _limit_time(self, seconds: float) -> Iterator[None]:
        with self._lock:
            self._deadline = time.monotonic() + seconds
        try:
            yield
        finally:
            # The holder of the lock interrupts before it releases the lock, so not later than here.
            with self._lock:
                self._deadline = None

    def _interrupt_slow_actions(self) -> None:
        while True:
            time.sleep(0.05)
            with self._lock:
                late = self._deadline is not None and time.monotonic() >= self._deadline
                if late:
                    _interrupt()
            if late:
                time.sleep(_INSIST_SECONDS)


def _interrupt() -> None:
    """Interrupt the main thread like Ctrl-C; on systems with signals this also ends blocking calls."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()
