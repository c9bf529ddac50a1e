"""The executor of this machine: a worker process, started again if it dies, and kept for the next run if there is one.

Workers share the answers of known mistakes (:class:`SharedAnswers`). A checker reports new answers to its worker, the worker to the main
process, and that sends them to the other workers with their next submission, since reading an answer costs less than making it. A worker
passes them to its running checker and loads them itself only before it forks the next one, which a small class never needs. A worker that
replaces a crashed one receives all of them. Workers on other machines ask for themselves.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import asdict
from time import monotonic
from typing import Self

from autograder.engine.environment import NO_ACCELERATORS
from autograder.engine.interface import Execution, Executor, Submission
from autograder.engine.settings import GradingSettings
from autograder.engine.transport.channel import Channel, ClosedError

KILLED = "the worker process that ran it was killed, twice"
STOPPED = "grading was stopped"


class SharedAnswers:
    """What known mistakes have answered, of which each worker tells the others: so each is asked once, and not by every worker."""

    def __init__(self) -> None:
        self._told: list[tuple[object, str]] = []

    def tell(self, teller: object, news: str) -> None:
        """Add what a worker has told."""
        self._told.append((teller, news))

    def since(self, count: int, listener: object) -> tuple[list[str], int]:
        """Return what others have told after the first ``count`` pieces of news, and how many pieces there are now."""
        new = self._told[count:]
        return [news for teller, news in new if teller is not listener], count + len(new)


class WorkerExecutor:
    """Runs submissions, one at a time, in a worker process of its own.

    Args:
        settings: limits, device and seed.
        news: what it shares with other workers of the same seed and device; by default it has none to share with.
    """

    def __init__(self, settings: GradingSettings, news: SharedAnswers | None = None) -> None:
        self._settings = settings
        self._news = news or SharedAnswers()
        self._heard = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._folder, self._in_use = "", -1
        self._closed = False

    def start(self) -> None:
        """Start the worker; return at once, while it prepares itself."""
        # Here and not above: there are no such locks on Windows.
        from autograder.engine.workers.temp_folders import locked_temp_folder, remove_abandoned

        remove_abandoned()
        ours, theirs = socket.socketpair()
        # All that the worker puts aside is in a folder of ours: it goes, however the worker ends.
        self._folder, self._in_use = locked_temp_folder()
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        hidden = NO_ACCELERATORS if self._settings.device == "cpu" else {}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autograder.engine.workers.worker", str(theirs.fileno())],
            pass_fds=[theirs.fileno(), self._in_use],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **threads, **hidden, "TMPDIR": self._folder},
            start_new_session=True,
        )
        theirs.close()
        self._channel = Channel(ours, 2**31)
        self._heard = 0
        self._tell("settings", asdict(self._settings))

    def change(self, settings: GradingSettings, news: SharedAnswers | None = None) -> None:
        """Take other settings. What the worker has imported, and the questions that it has made, are still there.

        Args:
            settings: as when it was made.
            news: as when it was made; by default it keeps what it has.
        """
        before, self._settings = self._settings, settings
        if news is not None and news is not self._news:
            self._news, self._heard = news, 0
        if settings.device != before.device:
            self._end()  # what devices a process finds is settled when it starts
        elif settings != before and self._channel is not None:
            try:
                self._tell("settings", asdict(settings))
            except ClosedError:
                self._end()  # the next submission starts another one

    def _tell(self, what: str, content: object) -> None:
        assert self._channel is not None
        self._channel.send(json.dumps({what: content}).encode())

    def grade_one(self, submission: Submission) -> Execution:
        """Run a submission. A worker that dies of it is started again, and the submission gets one more chance."""
        begin = monotonic()
        for _ in range(2):
            try:
                if self._channel is None:
                    self.start()
                if self._closed:  # meanwhile, by another thread
                    self._end()
                    return Execution(submission.student, "", monotonic() - begin, STOPPED)
                assert self._channel is not None
                heard, self._heard = self._news.since(self._heard, self._process)
                for news in heard:
                    self._tell("news", news)
                self._tell("submission", asdict(submission))
                answer = json.loads(self._channel.receive())
                if answer["news"]:
                    self._news.tell(self._process, answer["news"])
                execution = answer["execution"]
                return Execution(**{**execution, "layers": tuple(execution["layers"])})
            except ClosedError:
                self._end()
                if self._closed:
                    break
        return Execution(submission.student, "", monotonic() - begin, KILLED)

    def close(self) -> None:
        """End the worker. Whoever waits for it in another thread gets its end for an answer."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        channel, self._channel = self._channel, None
        process, self._process = self._process, None
        if channel is not None:
            channel.close()
        if process is not None:
            # Its zygote is in a session of its own, and ends when the worker's end of their connection closes.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._in_use)


class WorkerPool:
    """Worker processes that outlive the run they were started for: the next one finds them warm. They end with this context."""

    def __init__(self) -> None:
        self._idle: list[WorkerExecutor] = []
        self._news: dict[tuple[int | None, str], SharedAnswers] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        while self._idle:
            self._idle.pop().close()

    def executor_for(self, settings: GradingSettings) -> Executor:
        """Return what runs submissions; closing it gives its process back, unless a submission is still being run there."""
        if not _has_workers():
            return executor_for(settings)
        # Another seed makes other questions, and another device other answers.
        news = self._news.setdefault((settings.seed, settings.device), SharedAnswers())
        if not self._idle:
            return _LeasedWorker(WorkerExecutor(settings, news), self._idle)
        worker = self._idle.pop()
        worker.change(settings, news)
        return _LeasedWorker(worker, self._idle)


class _LeasedWorker:
    """A worker until it is given back.

    Args:
        worker: the worker.
        idle: where it goes then.
    """

    def __init__(self, worker: WorkerExecutor, idle: list[WorkerExecutor]) -> None:
        self._worker = worker
        self._idle = idle
        self._lock = threading.Lock()
        self._busy = self._closed = False

    def grade_one(self, submission: Submission) -> Execution:
        with self._lock:
            if self._closed:
                return Execution(submission.student, "", 0.0, STOPPED)
            self._busy = True
        try:
            return self._worker.grade_one(submission)
        finally:
            self._busy = False

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._busy:
                self._worker.close()
            else:
                self._idle.append(self._worker)


def _has_workers() -> bool:
    """Return whether processes here inherit sockets."""
    return os.name == "posix"


def executor_for(settings: GradingSettings) -> Executor:
    """Return what runs submissions on this machine: a worker process, or, where there are no sockets to inherit, a kernel each."""
    if _has_workers():
        return WorkerExecutor(settings)
    from autograder.engine.jupyter.kernel_executor import KernelExecutor

    return KernelExecutor(settings)
