"""Run CPU-bound work in one process per processor.

The work starts one program, which forks itself. A pool in the calling process would leave helper processes of Python's behind, and a
caller that waits for all of its children, as the benchmarks do, would wait for those until it ends.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parallel_map(work: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """Call a function with each item in parallel and return the results in order.

    PyTorch uses one thread per process.

    Args:
        work: a function at the top level of a module, for other processes are told its name.
        items: its inputs, most expensive last; they and the results are pickled.

    Raises:
        RuntimeError: if the processes ended without a result, as they do when the machine has no memory left.
        Exception: what the work raises.
    """
    jobs = min(available_cores(), len(items))
    if jobs < 2:
        with _use_one_thread():
            return [work(item) for item in items]
    # One new process imports what the work needs, and is copied: to import PyTorch takes seconds, and nothing of it stays behind here.
    order = pickle.dumps((sys.path, _importable_name(work), work.__qualname__, jobs, list(items)))
    command = [sys.executable, "-P", "-m", "autograder.parallel"]
    done = subprocess.run(command, input=order, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(
            f"the processes that {work.__qualname__} was spread over ended with status {done.returncode}"
        )
    results, error = pickle.loads(done.stdout)
    if error is not None:
        raise error
    return list(results)


def _importable_name(work: Callable[..., object]) -> str:
    """Return the name under which other processes can import a function's module."""
    specification = getattr(sys.modules[work.__module__], "__spec__", None)
    return str(specification.name) if specification is not None else work.__module__


def main() -> None:
    """Carry out a request of :func:`parallel_map` from standard input and write the results to standard output."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as answer:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
        sys.path[:], module, name, jobs, items = pickle.load(sys.stdin.buffer)
        work = getattr(importlib.import_module(module), name)
        _set_threads(1)
        methods = multiprocessing.get_all_start_methods()
        context = multiprocessing.get_context("fork" if "fork" in methods else None)
        results, error = [], None
        try:
            with ProcessPoolExecutor(jobs, context, initializer=_set_threads, initargs=(1,)) as pool:
                # What takes long should not begin last.
                results = list(pool.map(work, items[::-1]))[::-1]
        except Exception as raised:
            error = raised
        pickle.dump((results, error), answer)


@contextmanager
def _use_one_thread() -> Iterator[None]:
    before = _set_threads(1)
    try:
        yield
    finally:
        _set_threads(before)


def _set_threads(number: int) -> int:
    """Set PyTorch's number of threads and return the previous number."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    return before


if __name__ == "__main__":
    main()
