"""Send submissions to what runs them: worker processes on this machine, or Dask's on others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial

from autograder.engine.interface import Execution, Executor, Submission
from autograder.engine.sandbox.isolation import with_available_isolation
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.executor import WorkerPool
from autograder.engine.workers.pool import run_concurrently

MakeExecutor = Callable[[GradingSettings], Executor]


def executions(
    make_executor: MakeExecutor | None,
    settings: GradingSettings,
    submissions: Iterable[Submission],
    workers: WorkerPool | None = None,
) -> Iterator[Execution]:
    """Run submissions and yield what comes of them, in the order in which they are done.

    Args:
        make_executor: makes what runs them; by default the one that this machine uses.
        settings: limits, device, seed, and how many run at once.
        submissions: what to run; taken as needed.
        workers: worker processes that are there already, and stay.
    """
    if settings.scheduler:
        from autograder.cluster import executions_on_cluster

        return executions_on_cluster(settings, submissions, make_executor)
    if make_executor is not None:
        return run_concurrently(partial(make_executor, settings), submissions, jobs=settings.jobs)
    return _executions_here(workers, with_available_isolation(settings), submissions)


def _executions_here(
    workers: WorkerPool | None, settings: GradingSettings, submissions: Iterable[Submission]
) -> Iterator[Execution]:
    with WorkerPool() if workers is None else nullcontext(workers) as pool:
        yield from run_concurrently(partial(pool.executor_for, settings), submissions, jobs=settings.jobs)
