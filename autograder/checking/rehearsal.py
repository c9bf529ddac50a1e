"""Run a notebook in a separate process under limits, for the pre-check and for grading without a sandbox.

The pre-check does that everywhere, and the grader on systems that offer no sandbox.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from autograder.checking.verdict import Verdict

# Seconds before the first cell, for Python and the imports of the checks.
_START_SECONDS = 120.0
# Seconds between the interrupt and the end of the process.
_GRACE_SECONDS = 5.0
_TICK = 0.5
_PROGRAM = "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); from {module} import main; main()"


class RehearsalError(Exception):
    """The notebook's process failed; the message gives the reason."""


@dataclass(frozen=True)
class Limits:
    """The limits of a notebook, with the grader's defaults."""

    cell_seconds: float = 60  # how long one cell may run
    exercise_seconds: float = 60  # how long the check of one exercise may run
    seconds: float = 900  # how long all of them together may run
    output: int = 50_000_000  # how many characters a cell may print before it is stopped
    restarts: int = 3  # how often a notebook that crashes its process gets a new one


@dataclass(frozen=True)
class UncheckedExercise:
    """An exercise that could not be checked."""

    reason: str  # why, in a few words
    points: float | None  # what it is worth, or None if it is not an exercise of this course


class Failure(NamedTuple):
    """The way in which a cell failed."""

    kind: str  # ``"cell error"``, ``"timeout"``, ``"time used up"``, ``"output flood"`` or ``"kernel died"``
    text: str  # what it raised, as ``"TypeError: …"``, or a sentence that says how it ended otherwise


@dataclass
class Rehearsal:
    """The result of running a notebook."""

    errors: dict[int, Failure] = field(default_factory=dict)  # by the number of a cell
    outputs: dict[int, list[Any]] = field(default_factory=dict)  # by the number of a cell, if the process reports them
    exercises: dict[str, Verdict | UncheckedExercise] = field(
        default_factory=dict
    )  # by name, the verdict, or why there is none


def start_process(
    module: str = "autograder.checking.rehearsal_process",
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> subprocess.Popen[bytes]:
    """Start a process that runs a notebook.

    Args:
        module: its program.
        environment: its environment variables, by default this process's with one thread, as in the grader: the computations are small.
        folder: where it runs, by default here.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _PROGRAM.format(module=module), json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"OMP_NUM_THREADS": "1", **os.environ} if environment is None else environment,
        cwd=folder,
        start_new_session=True,
    )


def rehearse(
    cells: Sequence[tuple[int, str]],
    exercises: Sequence[str],
    limits: Limits,
    start: Callable[[], subprocess.Popen[bytes]] = start_process,
) -> Rehearsal:
    """Run cells and check exercises in processes under limits.

    A cell that crashes its process fails alone: the other cells run again in a new process without it.

    Args:
        cells: numbers and texts of the cells, in order, without the cells that only run checks.
        exercises: the names to check.
        limits: what the notebook may use.
        start: starts a process.

    Raises:
        RehearsalError: if the process cannot do its work, whatever the notebook is.
    """
    stop_at = time.monotonic() + limits.seconds
    deadly: dict[int, Failure] = {}
    skipped: dict[str, str] = {}
    for _ in range(limits.restarts + 1):
        run = _CellProcess(limits, max(0.0, stop_at - time.monotonic()), start)
        stopped_at = run.do([cell for cell in cells if cell[0] not in deadly], exercises, skipped)
        if stopped_at is None:
            run.found.errors |= deadly
            return run.found
        if "cell" in stopped_at:
            deadly[stopped_at["cell"]] = run.how
        else:
            skipped[stopped_at["exercise"]] = f"its check did not finish: {run.how.text}"
    run.found.errors |= deadly
    if exercises:
        # Keep the results so far; for the other exercises determine the points only.
        reason = f"not checked: the notebook crashed Python {limits.restarts + 1} times"
        rest = _CellProcess(limits, limits.exercise_seconds, start)
        rest.do([], exercises, {name: skipped.get(name, reason) for name in exercises})
        run.found.exercises = {**rest.found.exercises, **run.found.exercises}
    return run.found


class _CellProcess:
    """One process that runs a notebook's cells.

    Args:
        limits: what the notebook may use.
        seconds: what is left of its time.
        start: starts it.
    """

    def __init__(self, limits: Limits, seconds: float, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._limits = limits
        self._seconds = seconds
        self._start = start
        self.found = Rehearsal()
        self.how = Failure("kernel died", "It ended or crashed the Python process that ran it.")

    def do(
        self, cells: Sequence[tuple[int, str]], exercises: Sequence[str], skipped: Mapping[str, str]
    ) -> dict[str, Any] | None:
        """Run a process to its end; return its last activity if it crashed or was stopped, or None if it finished."""
        job = {
            "cells": cells,
            "exercises": list(exercises),
            "skipped": dict(skipped),
            "limits": {**vars(self._limits), "seconds": self._seconds},
        }
        process = self._start()
        try:
            return self._follow(process, json.dumps(job).encode())
        finally:
            _kill_process(process)

    def _follow(self, process: subprocess.Popen[bytes], job: bytes) -> dict[str, Any] | None:
        current: dict[str, Any] = {}
        seconds = 0.0
        events = _Events(process, job)
        for event in events:
            if "end" in event:
                return None
            if "failed" in event:
                raise RehearsalError(str(event["failed"]))
            if "begins" in event:
                current, seconds = event["begins"], event["seconds"]
                events.deadline = time.monotonic() + seconds + _GRACE_SECONDS
            else:
                self._record_event(event)
        if not current:
            raise RehearsalError("the process that runs the notebook did not start")
        if events.late:
            self.how = Failure("timeout", f"It was stopped after {seconds:.3g} s.")
        return current

    def _record_event(self, event: Mapping[str, Any]) -> None:
        if "cell" in event:
            if event["failed_by"]:
                self.found.errors[event["cell"]] = Failure(*event["failed_by"])
            self.found.outputs[event["cell"]] = event.get("outputs", [])
        elif "verdict" in event:
            self.found.exercises[event["exercise"]] = Verdict.from_dict(event["verdict"])
        else:
            self.found.exercises[event["exercise"]] = UncheckedExercise(event["absent"], event["points"])


def _kill_process(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and, where the system has sessions, its children."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


class _Events:
    """The events of a process, until it ends or exceeds its deadline.

    Args:
        process: it is given its job and listened to in a thread, because no other way of waiting with a time limit for what comes through a
            pipe works on Windows too.
        job: its job.
    """

    def __init__(self, process: subprocess.Popen[bytes], job: bytes) -> None:
        self.deadline = time.monotonic() + _START_SECONDS
        self.late = False
        self._process = process
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, args=[job], daemon=True).start()

    def _listen(self, job: bytes) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            self._process.stdin.write(job)
            self._process.stdin.close()
            for line in self._process.stdout:
                self._lines.put(line)
        self._lines.put(None)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        while True:
            try:
                line = self._lines.get(timeout=_TICK)
            except queue.Empty:
                self.late = time.monotonic() >= self.deadline
                # Child processes of the notebook may keep the pipe open after its process has ended.
                if self.late or (self._process.poll() is not None and self._lines.empty()):
                    return
                continue
            if line is None:
                return
            yield json.loads(line)
