"""Dispatch submissions to worker processes on this machine, or to Dask's on others."""

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
    """Run submissions and yield the results in the order in which they finish.

    Args:
        make_executor: creates an executor; by default this machine's.
        settings: limits, device, seed, and how many run at once.
        submissions: consumed as needed.
        workers: running worker processes, which stay.
    """
    if settings.scheduler:
        from autograder.grading.cluster import executions_on_cluster

        return executions_on_cluster(settings, submissions, make_executor)
    if make_executor is not None:
        return run_concurrently(partial(make_executor, settings), submissions, jobs=settings.jobs)
    return _executions_here(workers, with_available_isolation(settings), submissions)


def _executions_here(
    workers: WorkerPool | None, settings: GradingSettings, submissions: Iterable[Submission]
) -> Iterator[Execution]:
    with WorkerPool() if workers is None else nullcontext(workers) as pool:
        yield from run_concurrently(partial(pool.executor_for, settings), submissions, jobs=settings.jobs)
