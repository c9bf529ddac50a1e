"""Run a function in a forked process under limits: a mutant may loop for ever, use up memory, or end its process.

Each run is a fork, so that whatever a mutant leaves behind ends with it. The limits are soft against malice: a mutant is our own code with
one mistake, and no stranger's.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

from autograder.errors import CourseError

TOO_LONG, CRASHED = "ran too long", "crashed"

# The ratio of wall time to CPU time that a process may use on a busy machine.
_WAITING = 30
_LONGEST_TEXT = 1 << 20


def run_in_fork(work: Callable[[], str], *, seconds: float, memory: int) -> tuple[str, float]:
    """Run ``work`` in a forked process; return its result, ``TOO_LONG`` or ``CRASHED``, and the CPU time in seconds.

    Args:
        work: the function to run; its output is discarded.
        seconds: CPU time limit. The elapsed time may be thirty times as long.
        memory: bytes of address space that it may add to this process's current size.

    Raises:
        CourseError: if processes cannot be forked.
    """
    if not hasattr(os, "fork"):
        raise CourseError("mutants need forked processes, which this system has not", do="Use Linux or macOS.")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _run_child(work, writing, seconds, memory)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        text = answer.read(_LONGEST_TEXT)
    _, status, usage = os.wait4(child, 0)
    took = usage.ru_utime + usage.ru_stime
    if os.WIFSIGNALED(status):
        return (TOO_LONG if os.WTERMSIG(status) in (signal.SIGPROF, signal.SIGALRM) else CRASHED), took
    return (CRASHED if os.WEXITSTATUS(status) else text.decode()), took


def _run_child(work: Callable[[], str], writing: int, seconds: float, memory: int) -> None:
    """Do the work and end this process, whatever happens."""
    status = 1
    try:
        faulthandler.disable()  # a crash is told by its signal
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        for sign in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(sign, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        signal.setitimer(signal.ITIMER_REAL, _WAITING * seconds)
        _limit_memory(memory)
        text = work()
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.write(writing, text.encode()[:_LONGEST_TEXT])
        status = 0
    finally:
        os._exit(status)


def _limit_memory(more: int) -> None:
    status = Path("/proc/self/statm")
    if status.exists():  # elsewhere the processor's time is the limit
        taken = int(status.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (taken + more, hard))
