"""Run submissions on the workers of a Dask scheduler; only the caller's process writes grades."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any

from distributed import Client, Future, KilledWorker

from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.executor import WorkerExecutor
from autograder.errors import CourseError
from autograder.grading.cluster.compatibility import describe_machine, list_incompatibilities, refuse_incompatible
from autograder.grading.cluster.connection import connect_client
from autograder.grading.cluster.placement import LOSSES, Placement, Work
from autograder.grading.cluster.worker_plugin import (
    GradingPlugin,
    MakeExecutor,
    grade_on_worker,
    pack_submission,
    unpack_execution,
)

# How long to go without any worker. A queue of a computing centre may take longer: then the command is given again.
PATIENCE_SECONDS = 600.0
_LOOK_SECONDS = 1.0
_FETCH_SECONDS = 5
_KEPT = "What is recorded is kept; the same command goes on with the others."

log = logging.getLogger(__name__)


def run_on_cluster(
    settings: GradingSettings,
    submissions: Iterable[Submission],
    *,
    make_executor: MakeExecutor = WorkerExecutor,
    patience: float = PATIENCE_SECONDS,
) -> Iterator[Execution]:
    """Run submissions on a Dask cluster and yield their executions in the order in which they finish.

    The submissions of a worker that dies run again on others. A submission comes back as a failure if two workers could
    not run it, or if two were lost with it and the second ran nothing else.

    A worker that dies costs no grade: what it had is run again on others. A submission that two workers were lost with, the second of
    which it had to itself, or that two could not run, comes back as a failure.

    Args:
        settings: limits, device, seed; ``scheduler`` is an address, or ``"local"`` for ``jobs`` workers on this machine.
        submissions: what to run; taken as needed, in this thread, never more than two for each worker beyond what is done.
        make_executor: makes what runs them, on each worker; found there by its name.
        patience: seconds to go on without any worker.

    Yields:
        One execution per submission.

    Raises:
        CourseError: if the scheduler cannot be reached, is lost on the way, or has no workers; or if one of them is not as this machine is.
    """
    waiting = iter(submissions)
    # Nothing to run needs nobody to run it.
    first = next(waiting, None)
    if first is None:
        return
    with connect_client(settings) as client:
        plugin = GradingPlugin(settings, make_executor)
        run = _Run(client, settings, f"tfcourse-{plugin.digest}", patience)
        try:
            run.check_first_workers()
            run.install_plugin(plugin)
            yield from run.executions(chain([first], waiting))
        finally:
            run.uninstall_plugin()


class _Run:
    """One run of submissions on a scheduler.

    Args:
        client: the connection to the scheduler.
        settings: the requested settings.
        plugin: the name of the plugin that holds the executors.
        patience: seconds to go on without any worker.
    """

    def __init__(self, client: Client, settings: GradingSettings, plugin: str, patience: float) -> None:
        self.plugin = plugin
        self._open_client = client
        self._settings = settings
        self._patience = patience
        self._placement = Placement()
        self._futures: dict[str, Future] = {}
        self._done: SimpleQueue[str] = SimpleQueue()
        self._fit_workers: dict[str, bool] = {}
        self._last_look = float("-inf")
        self._last_seen = monotonic()
        self._ended = False

    def check_first_workers(self) -> None:
        """Wait for the first worker, and check that all present workers may grade.

        Raises:
            CourseError: if no worker arrives in time, or one must not grade.
        """
        while not (threads := self._thread_counts()):
            self._check_patience()
            sleep(_LOOK_SECONDS)
        reasons = self._find_incompatibilities(threads)
        refuse_incompatible(reasons)
        self._fit_workers = dict.fromkeys(reasons, True)

    def install_plugin(self, plugin: GradingPlugin) -> None:
        """Register the plugin that gives each present and future worker an executor.

        Raises:
            CourseError: if one of them cannot be given one.
        """
        try:
            self._open_client.register_plugin(plugin, name=self.plugin)
        except Exception as error:
            if self._open_client.status != "running":
                raise self._connection_lost_error() from error
            raise CourseError(
                f"a worker could not be made ready ({type(error).__name__}: {error})",
                where=self._settings.scheduler,
                do="Is there room in its temporary folder? Its log says more.",
            ) from error

    def executions(self, submissions: Iterator[Submission]) -> Iterator[Execution]:
        """Submit the submissions and yield their executions until none is left."""
        while True:
            self._poll_workers()
            self._submit_all(submissions)
            if self._ended and not self._placement.running and not self._placement.waiting_count:
                return
            yield from self._finished_executions()

    def uninstall_plugin(self) -> None:
        """Unregister the plugin if the scheduler is reachable, which removes settings and wheel from the workers."""
        self._futures.clear()
        if self._open_client.status == "running":
            with suppress(Exception):
                self._open_client.unregister_worker_plugin(self.plugin)

    @contextmanager
    def _convert_dask_errors(self) -> Iterator[None]:
        """Convert Dask's exceptions on a lost scheduler to a CourseError."""
        try:
            if self._open_client.status != "running":
                raise OSError("no connection")
            yield
        except (OSError, RuntimeError) as error:
            raise self._connection_lost_error() from error

    def _connection_lost_error(self) -> CourseError:
        return CourseError(
            "the connection to the Dask scheduler is lost",
            where=self._settings.scheduler,
            do=f"Start it and its workers again. {_KEPT}",
        )

    def _thread_counts(self) -> dict[str, int]:
        with self._convert_dask_errors():
            return dict(self._open_client.nthreads())

    def _find_incompatibilities(self, threads: dict[str, int]) -> dict[str, list[str]]:
        """Return the reasons why each worker must not grade, by address."""
        with self._convert_dask_errors():
            described: dict[str, Any] = self._open_client.run(
                describe_machine, self._settings.device, workers=list(threads), on_error="return"
            )
        # One that cannot be reached has just left, or is asked again.
        return {
            address: list_incompatibilities(self._settings, description, threads[address])
            for address, description in described.items()
            if not isinstance(description, OSError)
        }

    def _poll_workers(self) -> None:
        """Update the list of present workers, at most once per second."""
        now = monotonic()
        if now - self._last_look < _LOOK_SECONDS:
            return
        threads = self._thread_counts()
        self._check_new_workers(
            {address: count for address, count in threads.items() if address not in self._fit_workers}
        )
        fit = [address for address in threads if self._fit_workers.get(address)]
        for key in self._placement.update_workers(fit):
            self._futures.pop(key, None)
        if fit:
            self._last_seen = now
        self._last_look = monotonic()
        self._check_patience()

    def _check_new_workers(self, newcomers: dict[str, int]) -> None:
        """Check workers that joined during the run; an incompatible one gets no submissions, and the others go on."""
        if not newcomers:
            return
        for address, why in self._find_incompatibilities(newcomers).items():
            self._fit_workers[address] = not why
            if why:
                log.warning("the worker %s is left out: %s", address, "; ".join(why))

    def _check_patience(self) -> None:
        if monotonic() - self._last_seen > self._patience:
            raise CourseError(
                f"there has been no worker for {self._patience:.0f} seconds",
                where=self._settings.scheduler,
                do=f"Start some: `dask worker ADDRESS --nthreads 1`. {_KEPT}",
            )

    def _submit_all(self, submissions: Iterator[Submission]) -> None:
        def fresh() -> Work | None:
            submission = next(submissions, None)
            self._ended = submission is None
            return None if submission is None else Work(submission, self._submission_digest(submission))

        while (placed := self._placement.assign_next(fresh)) is not None:
            address, work = placed
            with self._convert_dask_errors():
                future = self._open_client.submit(
                    grade_on_worker,
                    pack_submission(work.submission),
                    self.plugin,
                    key=work.key,
                    workers=[address],
                    allow_other_workers=False,
                    pure=False,
                )
            self._futures[work.key] = future
            future.add_done_callback(lambda done: self._done.put(str(done.key)))

    def _submission_digest(self, submission: Submission) -> str:
        return hashlib.sha256(self.plugin.encode() + pack_submission(submission)).hexdigest()

    def _finished_executions(self) -> Iterator[Execution]:
        """Wait briefly for finished executions and yield them."""
        with suppress(Empty):
            key = self._done.get(timeout=_LOOK_SECONDS)
            while True:
                if (execution := self._fetch_execution(key)) is not None:
                    yield execution
                key = self._done.get_nowait()

    def _fetch_execution(self, key: str) -> Execution | None:
        """Return the execution of a finished try, or None before it has arrived."""
        future = self._futures.pop(key, None)
        if future is None:
            return None
        if future.status == "cancelled":
            raise self._connection_lost_error()
        with self._convert_dask_errors():
            if future.status == "error":
                return self._handle_error(key, future.exception(timeout=_FETCH_SECONDS))
            try:
                data = future.result(timeout=_FETCH_SECONDS)
            except TimeoutError:
                # Its worker has died between the last line and the delivery.
                self._placement.requeue(key)
                return None
        return self._accept_execution(key, data)

    def _accept_execution(self, key: str, data: bytes) -> Execution | None:
        """Decode and return an execution. A worker's failure counts only after a second worker has failed, too."""
        try:
            execution = unpack_execution(data)
        except ValueError as error:
            return self._give_up(self._placement.record_failure(key), str(error))
        if execution.failure:
            return self._give_up(self._placement.record_failure(key), execution.failure, execution.notebook)
        return None if self._placement.finish(key) is None else execution

    def _handle_error(self, key: str, error: BaseException) -> Execution | None:
        address = self._placement.find_worker(key)
        killed = isinstance(error, KilledWorker)
        if address is not None and not killed:
            # The task itself raises nothing. A worker on which it cannot even begin would otherwise draw everything to itself.
            self._fit_workers[address] = False
            log.warning("the worker %s is left out: %s: %s", address, type(error).__name__, error)
        why = (
            "were lost while they ran it" if killed else f"failed at it, the last with {type(error).__name__}: {error}"
        )
        return self._give_up(self._placement.record_lost_worker(key), f"{LOSSES} workers of the cluster {why}")

    def _give_up(self, work: Work | None, why: str, notebook: str = "") -> Execution | None:
        return None if work is None else Execution(work.submission.student, notebook, 0.0, why)
