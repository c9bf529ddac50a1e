"""Give each Dask worker its own executor, created when the plugin arrives and closed when it leaves."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from distributed import get_worker
from distributed.diagnostics.plugin import WorkerPlugin

from autograder.checks_version import checks_hash
from autograder.engine.interface import Execution, Executor, Submission
from autograder.engine.sandbox.isolation import with_available_isolation
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.executor import WorkerExecutor

MakeExecutor = Callable[[GradingSettings], Executor]

# An executor holds a few hundred megabytes. One that nobody has asked for anything, for its run was killed, gives them back.
IDLE_SECONDS = 600.0


class GradingPlugin(WorkerPlugin):  # type: ignore[misc]
    """A Dask worker plugin that holds one executor and runs one submission at a time.

    It is pickled by Dask on its way. All that it carries is ours: settings, the wheel's bytes, and the name of a class.

    Args:
        settings: limits, device, seed. Their ``package`` is a path on the machine that makes the plugin, and is replaced on each worker.
        make_executor: makes what runs submissions; found by its name on the worker.
    """

    def __init__(self, settings: GradingSettings, make_executor: MakeExecutor = WorkerExecutor) -> None:
        self._wheel = Path(settings.package).read_bytes() if settings.package else b""
        self._settings = replace(settings, package="")
        self._make_executor = make_executor
        self._hash = hashlib.sha256(self._wheel).hexdigest()

    @property
    def digest(self) -> str:
        """A hash of everything besides the submission that decides a result."""
        maker = f"{self._make_executor.__module__}.{getattr(self._make_executor, '__qualname__', '')}"
        parts = [asdict(replace(self._settings, scheduler=None, jobs=1)), self._hash, checks_hash(), maker]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    def setup(self, worker: Any) -> None:
        """Write the student wheel to this worker's folder, and create the executor."""
        self._busy = threading.Lock()
        self._executor: Executor | None = None
        self._timer: threading.Timer | None = None
        self._over = False
        if self._wheel:
            # Dask removes this folder with the worker, or the next worker does after one that was killed.
            path = Path(worker.local_directory) / f"students-{self._hash}" / "package.whl"
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.write_bytes(self._wheel)
            self._settings = replace(self._settings, package=str(path))
        self._executor = self._create_executor()

    def teardown(self, worker: Any) -> None:
        """Close the executor; a running submission is ended."""
        self._over = True
        self._stop_timer()
        if self._executor is not None:
            self._executor.close()

    def grade(self, submission: Submission) -> Execution:
        """Run a submission. Exceptions of the executor become failed executions."""
        with self._busy:
            self._stop_timer()
            try:
                if self._executor is None:
                    self._executor = self._create_executor()
                return self._executor.grade_one(submission)
            except Exception as error:  # an executor's own failure is told as such
                return Execution(submission.student, "", 0.0, f"{type(error).__name__}: {error}")
            finally:
                self._start_timer()

    def _create_executor(self) -> Executor:
        starts_workers = self._make_executor is WorkerExecutor
        return self._make_executor(with_available_isolation(self._settings) if starts_workers else self._settings)

    def _start_timer(self) -> None:
        if not self._over:
            self._timer = threading.Timer(IDLE_SECONDS, self._close_idle_executor)
            self._timer.daemon = True
            self._timer.start()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_idle_executor(self) -> None:
        if self._busy.acquire(blocking=False):
            try:
                if self._executor is not None:
                    self._executor.close()
                    self._executor = None
            finally:
                self._busy.release()


def grade_on_worker(submission: bytes, plugin: str) -> bytes:
    """Run a submission on the Dask worker that executes this task.

    Args:
        submission: a submission, as JSON.
        plugin: the name of the plugin that has the executor.

    Returns:
        The execution, as JSON.
    """
    done: Execution = get_worker().plugins[plugin].grade(Submission(**json.loads(submission)))
    return json.dumps(asdict(done)).encode()


def pack_submission(submission: Submission) -> bytes:
    """Serialise a submission as JSON, which runs no code when it is parsed."""
    return json.dumps(asdict(submission)).encode()


def unpack_execution(data: bytes) -> Execution:
    """Parse the JSON of an execution that :func:`grade_on_worker` returned.

    Raises:
        ValueError: if it is none.
    """
    try:
        plain = json.loads(data)
        return Execution(**{**plain, "layers": tuple(plain["layers"])})
    except (KeyError, TypeError) as error:
        raise ValueError(f"a worker returned something other than an execution ({error})") from error
