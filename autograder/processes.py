"""Work that keeps a processor busy, done in as many processes as there are processors."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Return how many cores this process may use, which in a container are fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Return what ``work`` makes of each item, in order. What it computes with PyTorch it computes on one thread, wherever that is.

    Args:
        work: a function at the top level of a module, for a process is told its name; what it raises is raised here.
        items: what it is given, dearest last; they and the results are pickled.
    """
    jobs = min(cores(), len(items))
    if jobs < 2:
        with _one_thread():
            return [work(item) for item in items]
    # Processes that have the work's module, and share it: to import PyTorch takes each of them seconds. Where there are no such, new ones.
    kind = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(kind)
    context.set_forkserver_preload([work.__module__])
    with ProcessPoolExecutor(jobs, context, initializer=_use_threads, initargs=(1,)) as pool:
        # What takes long should not begin last.
        return list(pool.map(work, items[::-1]))[::-1]


@contextmanager
def _one_thread() -> Iterator[None]:
    before = _use_threads(1)
    try:
        yield
    finally:
        _use_threads(before)


def _use_threads(number: int) -> int:
    """Have PyTorch compute on so many threads, and return on how many it did."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    return before
