"""Run submissions in a worker process on this machine, which is restarted if it dies and kept for the next run."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from dataclasses import asdict
from time import monotonic
from typing import TYPE_CHECKING, Self

from autograder.engine.environment import worker_environment
from autograder.engine.interface import Execution, Executor, Submission
from autograder.engine.sandbox.linux import is_supported_linux
from autograder.engine.settings import GradingSettings
from autograder.engine.transport.channel import Channel, ClosedError
from autograder.engine.transport.fork_server import START_SECONDS, ForkServerChild, kill_group

if TYPE_CHECKING:
    from autograder.engine.workers.fork_servers import ForkServers

KILLED = "the worker process that ran it was killed, twice"
STOPPED = "grading was stopped"


class WorkerExecutor:
    """Runs submissions, one at a time, in its own worker process.

    Args:
        settings: limits, device and seed.
        servers: fork servers for the worker and its zygote; without them, or after they have died, the worker is a separate program.
    """

    def __init__(self, settings: GradingSettings, servers: ForkServers | None = None) -> None:
        self._settings = settings
        self._servers = servers
        self._process: subprocess.Popen[bytes] | ForkServerChild | None = None
        self._channel: Channel | None = None
        self._folder, self._in_use = "", -1
        self._closed = False

    def start(self, chapter: str = "") -> None:
        """Start the worker without waiting until it is ready.

        Args:
            chapter: what it will grade first: a fork server prepares the questions once for all its workers.
        """
        # Imported here: Windows has no such locks.
        from autograder.engine.workers.temp_folders import locked_temp_folder, remove_abandoned_folders

        remove_abandoned_folders()
        # The worker's temporary files are in a folder of this process, which removes it however the worker ends.
        self._folder, self._in_use = locked_temp_folder()
        process, connection = self._fork_worker(chapter) or self._spawn_worker()
        self._process = process
        self._channel = Channel(connection, 2**31)
        self._send_message("settings", asdict(self._settings))

    def _fork_worker(self, chapter: str) -> tuple[ForkServerChild, socket.socket] | None:
        """Fork the worker from a fork server; return None if there is no usable one."""
        if self._servers is None or self._settings.device != "cpu" or not self._settings.warm:
            return None
        ours, worker_end = socket.socketpair()
        try:
            with worker_end:
                self._servers.fork_worker(worker_end, self._in_use, self._folder, self._settings, chapter)
            return ForkServerChild.wait_for_announcement(ours, START_SECONDS), ours
        except (OSError, ClosedError):
            ours.close()
            return None

    def _spawn_worker(self) -> tuple[subprocess.Popen[bytes], socket.socket]:
        """Start the worker as a separate program."""
        ours, worker_end = socket.socketpair()
        with worker_end:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "autograder.engine.workers.worker", str(worker_end.fileno())],
                pass_fds=[worker_end.fileno(), self._in_use],
                stdin=subprocess.DEVNULL,
                env=worker_environment(self._folder, self._settings.device),
                start_new_session=True,
            )
        return process, ours

    def change_settings(self, settings: GradingSettings) -> None:
        """Change the settings; the worker keeps its imports and test cases.

        Args:
            settings: as for the constructor.
        """
        before, self._settings = self._settings, settings
        if settings.device != before.device:
            self._end_worker()  # a process finds its devices when it starts
        elif settings != before and self._channel is not None:
            try:
                self._send_message("settings", asdict(settings))
            except ClosedError:
                self._end_worker()  # the next submission starts a new worker

    def _send_message(self, kind: str, content: object) -> None:
        assert self._channel is not None
        self._channel.send(json.dumps({kind: content}).encode())

    def grade_one(self, submission: Submission) -> Execution:
        """Run a submission; if the worker dies, run it once more in a new one."""
        begin = monotonic()
        for _ in range(2):
            try:
                if self._channel is None:
                    self.start(submission.chapter)
                if self._closed:  # another thread has closed it
                    self._end_worker()
                    return Execution(submission.student, "", monotonic() - begin, STOPPED)
                assert self._channel is not None
                self._send_message("submission", asdict(submission))
                execution = json.loads(self._channel.receive())
                return Execution(**{**execution, "layers": tuple(execution["layers"])})
            except ClosedError:
                self._end_worker()
                if self._closed:
                    break
        return Execution(submission.student, "", monotonic() - begin, KILLED)

    def close(self) -> None:
        """End the worker; a thread that waits for an answer gets an error."""
        self._closed = True
        self._end_worker()

    def _end_worker(self) -> None:
        channel, self._channel = self._channel, None
        process, self._process = self._process, None
        if channel is not None:
            channel.close()
        if process is not None:
            # Its zygote has its own session, and ends when the worker's end of their connection closes.
            kill_group(process)
            shutil.rmtree(self._folder, ignore_errors=True)
            os.close(self._in_use)


class WorkerPool:
    """A pool of worker processes that stay warm between runs and end with this context."""

    def __init__(self) -> None:
        self._idle: list[WorkerExecutor] = []
        self._servers: ForkServers | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        while self._idle:
            self._idle.pop().close()
        if self._servers is not None:
            self._servers.close()

    def start(self, settings: GradingSettings) -> None:
        """Start the fork servers of the pool's workers, without waiting for their imports.

        Args:
            settings: what is known of them so far. Workers on other devices, or with another seed, cost what they cost without this.
        """
        if self._servers is None and is_supported_linux() and settings.warm and settings.device == "cpu":
            from autograder.engine.workers.fork_servers import ForkServers

            self._servers = ForkServers(settings)

    def cpu_capability(self) -> str:
        """Return PyTorch's CPU capability in workers, such as ``"AVX512"``; empty without a fork server."""
        return self._servers.cpu_capability() if self._servers is not None else ""

    def lease_executor(self, settings: GradingSettings) -> Executor:
        """Lease a worker; closing it returns its process to the pool, unless it is still running a submission."""
        if not _supports_workers():
            return create_executor(settings)
        self.start(settings)
        if not self._idle:
            return _LeasedWorker(WorkerExecutor(settings, self._servers), self._idle)
        worker = self._idle.pop()
        worker.change_settings(settings)
        return _LeasedWorker(worker, self._idle)


class _LeasedWorker:
    """A worker leased from the pool.

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


def _supports_workers() -> bool:
    """Return whether this system supports workers, whose child processes inherit sockets."""
    return os.name == "posix"


def create_executor(settings: GradingSettings) -> Executor:
    """Return this machine's executor: a worker process, or a process per submission without socket inheritance."""
    if _supports_workers():
        return WorkerExecutor(settings)
    from autograder.engine.workers.plain import PlainExecutor

    return PlainExecutor(settings)
