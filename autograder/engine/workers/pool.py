"""Running many submissions at once, each executor in a thread that waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import chain, islice
from queue import SimpleQueue

from autograder.engine.interface import Execution, Executor, Submission


def run_concurrently(
    make_executor: Callable[[], Executor], submissions: Iterable[Submission], *, jobs: int
) -> Iterator[Execution]:
    """Run submissions and yield what comes of them, in the order in which they are done.

    Args:
        make_executor: makes what runs them; one is made for each of the jobs.
        submissions: what to run; taken as needed, in this thread, so that they may be prepared while others run.
        jobs: how many at once.

    Yields:
        One execution per submission.
    """
    waiting = iter(submissions)
    # Nothing to run needs nobody to run it.
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
        except Exception as error:  # an executor's own failure is told as such
            return Execution(submission.student, "", 0.0, f"{type(error).__name__}: {error}")
        finally:
            free.put(executor)

    running: set[Future[Execution]] = set()
    waiting = chain(first, waiting)
    with ThreadPoolExecutor(jobs, thread_name_prefix="grading") as threads:
        try:
            # One waits for each executor, so that none waits for this thread, which records in between.
            while running := running | {threads.submit(run, one) for one in islice(waiting, 2 * jobs - len(running))}:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        finally:
            # Closed first: whoever waits for an answer in a thread gets an end, also after Ctrl-C.
            for future in running:
                future.cancel()
            for executor in executors:
                executor.close()
