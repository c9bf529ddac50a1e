"""Run many submissions concurrently, with a thread for each executor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, islice
from queue import SimpleQueue

from autograder.engine.interface import Execution, Executor, Submission


def run_concurrently(
    make_executor: Callable[[], Executor], submissions: Iterable[Submission], *, jobs: int
) -> Iterator[Execution]:
    """Run submissions and yield the executions in the order in which they finish.

    Args:
        make_executor: creates an executor for each job.
        submissions: consumed as needed, in this thread, so that they may be prepared while others run.
        jobs: how many run at once.

    Yields:
        One execution per submission.
    """
    waiting = iter(submissions)
    # Without submissions no executor is needed.
    first = list(islice(waiting, 1))
    if not first:
        return
    executors = [make_executor() for _ in range(jobs)]
    free: SimpleQueue[Executor] = SimpleQueue()
    for executor in executors:
        free.put(executor)

    def run(submission: Submission) -> Execution:
        executor = free.get()
        try:
            return executor.grade_one(submission)
        except Exception as error:  # report an executor's failure as the grader's
            return Execution(submission.student, "", 0.0, f"{type(error).__name__}: {error}")
        finally:
            free.put(executor)

    running: set[Future[Execution]] = set()
    waiting = chain(first, waiting)
    with ThreadPoolExecutor(jobs, thread_name_prefix="grading") as threads:
        try:
            # One submission waits for each executor, so that none waits for this thread while it records results.
            while running := running | {threads.submit(run, one) for one in islice(waiting, 2 * jobs - len(running))}:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            # Close executors first, so that threads that wait for an answer end, even after Ctrl-C.
            for future in running:
                future.cancel()
            for executor in executors:
                executor.close()
