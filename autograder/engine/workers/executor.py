"""Run submissions in a worker process on this machine; restart it if it dies, and keep it for the next run.

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
    """The known mistakes' answers, shared by all workers: each answer is computed once, and not by every worker."""

    def __init__(self) -> None:
        self._answers: list[tuple[object, str]] = []

    def tell(self, teller: object, news: str) -> None:
        """Add a worker's answers."""
        self._answers.append((teller, news))

    def since(self, count: int, listener: object) -> tuple[list[str], int]:
        """Return the answers of other workers after the first ``count`` messages, and the number of messages now."""
        new = self._answers[count:]
        return [news for teller, news in new if teller is not listener], count + len(new)


class WorkerExecutor:
    """Runs submissions, one at a time, in its own worker process.

    Args:
        settings: limits, device and seed.
        news: the answers that it shares with other workers of the same seed and device; by default it shares none.
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
        """Start the worker and return at once, while it prepares itself."""
        # Imported here: Windows has no such locks.
        from autograder.engine.workers.temp_folders import locked_temp_folder, remove_abandoned

        remove_abandoned()
        ours, worker_end = socket.socketpair()
        # The worker's temporary files are in a folder of this process, which removes it however the worker ends.
        self._folder, self._in_use = locked_temp_folder()
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        hidden = NO_ACCELERATORS if self._settings.device == "cpu" else {}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autograder.engine.workers.worker", str(worker_end.fileno())],
            pass_fds=[worker_end.fileno(), self._in_use],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **threads, **hidden, "TMPDIR": self._folder},
            start_new_session=True,
        )
        worker_end.close()
        self._channel = Channel(ours, 2**31)
        self._heard = 0
        self._tell("settings", asdict(self._settings))

    def change(self, settings: GradingSettings, news: SharedAnswers | None = None) -> None:
        """Change the settings. The worker keeps its imports and its questions.

        Args:
            settings: as for the constructor.
            news: as for the constructor; by default unchanged.
        """
        before, self._settings = self._settings, settings
        if news is not None and news is not self._news:
            self._news, self._heard = news, 0
        if settings.device != before.device:
            self._end()  # a process finds its devices when it starts
        elif settings != before and self._channel is not None:
            try:
                self._tell("settings", asdict(settings))
            except ClosedError:
                self._end()  # the next submission starts a new worker

    def _tell(self, kind: str, content: object) -> None:
        assert self._channel is not None
        self._channel.send(json.dumps({kind: content}).encode())

    def grade_one(self, submission: Submission) -> Execution:
        """Run a submission. If the worker dies, start a new one and run the submission once more."""
        begin = monotonic()
        for _ in range(2):
            try:
                if self._channel is None:
                    self.start()
                if self._closed:  # another thread has closed it
                    self._end()
                    return Execution(submission.student, "", monotonic() - begin, STOPPED)
                assert self._channel is not None
                unread, self._heard = self._news.since(self._heard, self._process)
                for news in unread:
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
        """End the worker. A thread that waits for an answer gets an error."""
        self._closed = True
        self._end()

    def _end(self) -> None:
        channel, self._channel = self._channel, None
        process, self._process = self._process, None
        if channel is not None:
            channel.close()
        if process is not None:
            # Its zygote has its own session, and ends when the worker's end of their connection closes.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._in_use)


class WorkerPool:
    """A pool of worker processes that stay warm between runs. They end with this context."""

    def __init__(self) -> None:
        self._idle: list[WorkerExecutor] = []
        self._news: dict[tuple[int | None, str], SharedAnswers] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        while self._idle:
            self._idle.pop().close()

    def executor_for(self, settings: GradingSettings) -> Executor:
        """Lease a worker; closing it returns its process to the pool, unless it is still running a submission."""
        if not _has_workers():
            return executor_for(settings)
        # Another seed gives other questions, and another device other answers.
        news = self._news.setdefault((settings.seed, settings.device), SharedAnswers())
        if not self._idle:
            return _LeasedWorker(WorkerExecutor(settings, news), self._idle)
        worker = self._idle.pop()
        worker.change(settings, news)
        return _LeasedWorker(worker, self._idle)


class _LeasedWorker:
    """A leased worker.

    Args:
        worker: the worker.
        idle: the list to which it returns.
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
    """Return whether child processes inherit sockets on this system."""
    return os.name == "posix"


def executor_for(settings: GradingSettings) -> Executor:
    """Return this machine's executor: a worker process, or a kernel per submission if processes do not inherit sockets."""
    if _has_workers():
        return WorkerExecutor(settings)
    from autograder.engine.jupyter.kernel_executor import KernelExecutor

    return KernelExecutor(settings)
