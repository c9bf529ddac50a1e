"""Running many submissions at once, in processes of their own: one that takes its worker along takes nobody else."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice

from autograder.grading.execution import Execution, Executor, Submission

KILLED = "the worker process that ran it was killed, twice"


def run_all(executor: Executor, submissions: Iterable[Submission], *, jobs: int) -> Iterator[Execution]:
    """Run submissions and yield what comes of them, in the order in which they are done.

    Args:
        executor: runs one of them.
        submissions: what to run; taken as needed, so that they may be prepared while others run.
        jobs: how many at once; 1 runs them in this process.

    Yields:
        One execution per submission.
    """
    waiting = iter(submissions)
    first = list(islice(waiting, 2))
    if jobs == 1 or len(first) < 2:
        yield from map(executor.grade_one, chain(first, waiting))
        return
    remaining, suspects = chain(first, waiting), [first[0]]
    while suspects:
        suspects = []
        for submission, execution in _in_pool(executor, remaining, jobs):
            if execution is None:
                suspects.append(submission)
            else:
                yield execution
        # A dead worker takes its pool along. Who was in it is run again, each in a pool of its own: then it is known who did it.
        for suspect in suspects:
            for submission, execution in _in_pool(executor, iter([suspect]), 1):
                yield execution or Execution(submission.student, "", 0.0, KILLED)


def _in_pool(
    executor: Executor, submissions: Iterator[Submission], jobs: int
) -> Iterator[tuple[Submission, Execution | None]]:
    """Run submissions until there are no more or the pool breaks; those that were in it then have no execution."""
    # Spawned, not forked: a worker must not inherit this process's threads, locks and database connections.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(max_workers=jobs, mp_context=context, initializer=_stop_quietly)
    running: dict[Future[Execution], Submission] = {}
    broken = False
    try:
        while True:
            # One more than there are workers, so that none waits for this process.
            for submission in islice(submissions, 0 if broken else jobs + 1 - len(running)):
                try:
                    running[pool.submit(executor.grade_one, submission)] = submission
                except BrokenProcessPool:
                    broken = True
                    yield submission, None
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                submission = running.pop(future)
                try:
                    yield submission, future.result()
                except BrokenProcessPool:
                    broken = True
                    yield submission, None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _stop_quietly() -> None:
    """Let Ctrl-C end a worker without last words: the terminal belongs to the process that the person started."""

    def stop(number: int, frame: object) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, stop)
