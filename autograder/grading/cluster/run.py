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
from autograder.grading.cluster.compatibility import describe, incompatibilities, refuse
from autograder.grading.cluster.connection import connected
from autograder.grading.cluster.placement import LOSSES, Placement, Work
from autograder.grading.cluster.worker_plugin import GradingPlugin, MakeExecutor, grade, packed, unpacked

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
    """Run submissions and yield what comes of them, in the order in which they are done.

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
    with connected(settings) as client:
        plugin = GradingPlugin(settings, make_executor)
        run = _Run(client, settings, f"tfcourse-{plugin.digest}", patience)
        try:
            run.muster()
            run.equip(plugin)
            yield from run.executions(chain([first], waiting))
        finally:
            run.leave()


class _Run:
    """One run on a scheduler.

    Args:
        client: the connection to the scheduler.
        settings: the requested settings.
        plugin: the name of the plugin that holds the executors.
        patience: seconds to go on without any worker.
    """

    def __init__(self, client: Client, settings: GradingSettings, plugin: str, patience: float) -> None:
        self.plugin = plugin
        self._client = client
        self._settings = settings
        self._patience = patience
        self._placement = Placement()
        self._futures: dict[str, Future] = {}
        self._done: SimpleQueue[str] = SimpleQueue()
        self._judged: dict[str, bool] = {}
        self._last_look = float("-inf")
        self._last_seen = monotonic()
        self._ended = False

    def muster(self) -> None:
        """Wait for the first worker and look at all that are there.

        Raises:
            CourseError: if no worker arrives in time, or one must not grade.
        """
        while not (threads := self._threads()):
            self._lose_patience()
            sleep(_LOOK_SECONDS)
        reasons = self._reasons(threads)
        refuse(reasons)
        self._judged = dict.fromkeys(reasons, True)

    def equip(self, plugin: GradingPlugin) -> None:
        """Register the plugin that gives present and future workers an executor.

        Raises:
            CourseError: if one of them cannot be given one.
        """
        try:
            self._client.register_plugin(plugin, name=self.plugin)
        except Exception as error:
            if self._client.status != "running":
                raise self._connection_lost() from error
            raise CourseError(
                f"a worker could not be made ready ({type(error).__name__}: {error})",
                where=self._settings.scheduler,
                do="Is there room in its temporary folder? Its log says more.",
            ) from error

    def executions(self, submissions: Iterator[Submission]) -> Iterator[Execution]:
        """Yield what comes back, and give out more, until there is nothing left."""
        while True:
            self._look()
            self._give_out(submissions)
            if self._ended and not self._placement.running and not self._placement.kept_back:
                return
            yield from self._come_back()

    def leave(self) -> None:
        """Remove the settings and the wheel from the workers, if there is still a way to them."""
        self._futures.clear()
        if self._client.status == "running":
            with suppress(Exception):
                self._client.unregister_worker_plugin(self.plugin)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Turn what Dask raises when the scheduler is gone into an error for people."""
        try:
            if self._client.status != "running":
                raise OSError("no connection")
            yield
        except (OSError, RuntimeError) as error:
            raise self._connection_lost() from error

    def _connection_lost(self) -> CourseError:
        return CourseError(
            "the connection to the Dask scheduler is lost",
            where=self._settings.scheduler,
            do=f"Start it and its workers again. {_KEPT}",
        )

    def _threads(self) -> dict[str, int]:
        with self._asking():
            return dict(self._client.nthreads())

    def _reasons(self, threads: dict[str, int]) -> dict[str, list[str]]:
        """Return for each worker why it must not grade."""
        with self._asking():
            described: dict[str, Any] = self._client.run(
                describe, self._settings.device, workers=list(threads), on_error="return"
            )
        # One that cannot be reached has just left, or is asked again.
        return {
            address: incompatibilities(self._settings, description, threads[address])
            for address, description in described.items()
            if not isinstance(description, OSError)
        }

    def _look(self) -> None:
        """See which workers there are, once a second."""
        now = monotonic()
        if now - self._last_look < _LOOK_SECONDS:
            return
        threads = self._threads()
        self._meet({address: count for address, count in threads.items() if address not in self._judged})
        fit = [address for address in threads if self._judged.get(address)]
        for key in self._placement.look(fit):
            self._futures.pop(key, None)
        if fit:
            self._last_seen = now
        self._last_look = monotonic()
        self._lose_patience()

    def _meet(self, newcomers: dict[str, int]) -> None:
        """Judge workers that have come in the middle: one that does not fit gets nothing, and the others go on."""
        if not newcomers:
            return
        for address, why in self._reasons(newcomers).items():
            self._judged[address] = not why
            if why:
                log.warning("the worker %s is left out: %s", address, "; ".join(why))

    def _lose_patience(self) -> None:
        if monotonic() - self._last_seen > self._patience:
            raise CourseError(
                f"there has been no worker for {self._patience:.0f} seconds",
                where=self._settings.scheduler,
                do=f"Start some: `dask worker ADDRESS --nthreads 1`. {_KEPT}",
            )

    def _give_out(self, submissions: Iterator[Submission]) -> None:
        def fresh() -> Work | None:
            submission = next(submissions, None)
            self._ended = submission is None
            return None if submission is None else Work(submission, self._digest(submission))

        while (placed := self._placement.next(fresh)) is not None:
            address, work = placed
            with self._asking():
                future = self._client.submit(
                    grade,
                    packed(work.submission),
                    self.plugin,
                    key=work.key,
                    workers=[address],
                    allow_other_workers=False,
                    pure=False,
                )
            self._futures[work.key] = future
            future.add_done_callback(lambda done: self._done.put(str(done.key)))

    def _digest(self, submission: Submission) -> str:
        return hashlib.sha256(self.plugin.encode() + packed(submission)).hexdigest()

    def _come_back(self) -> Iterator[Execution]:
        """Yield what has come back, after waiting for it a moment."""
        with suppress(Empty):
            key = self._done.get(timeout=_LOOK_SECONDS)
            while True:
                if (execution := self._judge(key)) is not None:
                    yield execution
                key = self._done.get_nowait()

    def _judge(self, key: str) -> Execution | None:
        """Return what came of a try, or None if there is nothing yet."""
        future = self._futures.pop(key, None)
        if future is None:
            return None
        if future.status == "cancelled":
            raise self._connection_lost()
        with self._asking():
            if future.status == "error":
                return self._failed(key, future.exception(timeout=_FETCH_SECONDS))
            try:
                data = future.result(timeout=_FETCH_SECONDS)
            except TimeoutError:
                # Its worker has died between the last line and the delivery.
                self._placement.again(key)
                return None
        return self._received(key, data)

    def _received(self, key: str, data: bytes) -> Execution | None:
        """Return an execution. That a worker has failed is believed when a second one has."""
        try:
            execution = unpacked(data)
        except ValueError as error:
            return self._given_up(self._placement.failed(key), str(error))
        if execution.failure:
            return self._given_up(self._placement.failed(key), execution.failure, execution.notebook)
        return None if self._placement.done(key) is None else execution

    def _failed(self, key: str, error: BaseException) -> Execution | None:
        address = self._placement.worker_of(key)
        killed = isinstance(error, KilledWorker)
        if address is not None and not killed:
            # The task itself raises nothing. A worker on which it cannot even begin would otherwise draw everything to itself.
            self._judged[address] = False
            log.warning("the worker %s is left out: %s: %s", address, type(error).__name__, error)
        why = (
            "were lost while they ran it" if killed else f"failed at it, the last with {type(error).__name__}: {error}"
        )
        return self._given_up(self._placement.worker_lost(key), f"{LOSSES} workers of the cluster {why}")

    def _given_up(self, work: Work | None, why: str, notebook: str = "") -> Execution | None:
        return None if work is None else Execution(work.submission.student, notebook, 0.0, why)
