"""Run a function in a forked process under limits, because a mutant may loop for ever, use up memory, or crash.

The fork discards all side effects of a mutant. The limits do not protect against malicious code: a mutant is the course's own code with one
mistake.
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
        memory: maximum bytes of address space in addition to this process's current size.

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
    """Run the function in the child, send its result, and end the child in any case."""
    status = 1
    try:
        faulthandler.disable()  # the parent recognises a crash by its signal
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
    if status.exists():  # on other systems only the CPU time is limited
        taken = int(status.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (taken + more, hard))
