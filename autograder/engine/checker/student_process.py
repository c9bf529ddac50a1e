"""Monitor and end a student's process: its channels, reports, CPU time and memory."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
from pathlib import Path
from time import clock_gettime

from autograder.engine.sandbox import linux
from autograder.engine.sandbox.settings import isolation_level
from autograder.engine.transport.channel import (
    Channel,
    Mailbox,
)
from autograder.engine.transport.report_lines import parse_line

_TICK = os.sysconf("SC_CLK_TCK")
# The most lines that are read from a process's reports at once, and their longest length.
_MOST_REPORTS, _LONGEST_REPORT = 2_000, 80
# A process closes its connections shortly before it ends.
_END_SECONDS = 1.0


class StudentProcess:
    """A sandboxed process that runs one student's code, with its child processes.

    Args:
        channel: the connection to it.
        mailbox: receives the parts of its answers.
        reports: receives its reports of suspicious events.
        handle: a pidfd of the process.
        number: its number within the zygote.
        layers: the layers of isolation that are active in it.
        scratch: the folder on the host that it may write to, if it has no private root.
    """

    def __init__(
        self,
        channel: Channel,
        mailbox: Mailbox,
        reports: socket.socket,
        handle: int,
        number: int,
        layers: tuple[str, ...],
        scratch: str,
    ) -> None:
        self.channel = channel
        self.mailbox = mailbox
        self._reports = reports
        self.number = number
        self.layers = layers
        self._handle = handle
        self._scratch = scratch
        self._pid = _read_pid(handle)

    @property
    def isolation(self) -> str:
        """The level of isolation that the active layers provide."""
        return isolation_level(self.layers)

    def interrupt(self) -> None:
        """Interrupt the process, as Ctrl-C does."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._handle, signal.SIGINT)

    def suspend(self) -> None:
        """Suspend the process until :meth:`resume`. In the sandbox it has no child processes."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._handle, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the suspended process."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._handle, signal.SIGCONT)

    def kill(self) -> None:
        """Kill the process and its child processes."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        if "process namespace" not in self.layers:
            # Without a process namespace, its child processes survive in its session or its process group.
            with contextlib.suppress(OSError):
                os.killpg(self._pid, signal.SIGKILL)

    def is_alive(self, wait_seconds: float = 0.0) -> bool:
        """Return whether the process is still running.

        Args:
            wait_seconds: how long to wait for its end.
        """
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        return not poll.poll(1000 * wait_seconds)

    def close(self) -> None:
        """Kill the process, close its connections and remove its folder."""
        self.kill()
        self.channel.close()
        self.mailbox.close()
        self._reports.close()
        os.close(self._handle)
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def reports(self) -> list[str]:
        """Return the reports of suspicious events that have arrived since the last call, each once."""
        return self._read_reports()[0]

    def last_reports(self) -> list[str]:
        """Kill the process, and return its remaining reports."""
        lines, closed = self._read_reports()
        if closed and not self.is_alive(wait_seconds=_END_SECONDS):
            closed = False  # it has ended, which closes everything
        self.kill()
        lines += self._read_reports()[0]
        return [*lines, "closed the connection over which it is watched"] if closed else lines

    def _read_reports(self) -> tuple[list[str], bool]:
        """Return the reports that have arrived, each once, and whether the connection is closed."""
        lines: dict[str, None] = {}
        try:
            for _ in range(_MOST_REPORTS):
                line = self._reports.recv(_LONGEST_REPORT, socket.MSG_DONTWAIT)
                if not line:
                    return list(lines), True
                lines[parse_line(line)] = None
        except OSError:
            pass
        return list(lines), False

    def own_cpu_seconds(self) -> float:
        """Return the CPU seconds of the process without its children, which takes microseconds."""
        try:
            return clock_gettime(_cpu_clock_id(self._pid))
        except OSError:  # it has ended
            return 0.0

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the process and its children."""
        return sum(self._read_cpu_seconds(pid) for pid in _process_tree(self._pid))

    def is_alone(self) -> bool:
        """Return whether the process has no running children."""
        return len(_process_tree(self._pid)) == 1

    def uses_more_memory_than(self, limit: int) -> bool:
        """Return whether the process and its children use more than ``limit`` bytes of memory.

        Counting the shares of shared pages takes milliseconds. The resident pages are an upper bound, so they are
        counted first.

        To count shares of shared pages takes milliseconds. They are no more than the resident pages, which are counted first.
        """
        family = _process_tree(self._pid)
        resident = sum(linux.own_memory(pid, mapped_files=True) for pid in family)
        return resident > limit and sum(map(_memory_used, family)) > limit

    def _read_cpu_seconds(self, pid: int) -> float:
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return 0.0
        fields = text.rpartition(")")[2].split()
        # Only the first process counts its ended children: the others are members of the family.
        counted = fields[11:15] if pid == self._pid else fields[11:13]
        return sum(map(int, counted)) / _TICK


def _memory_used(pid: int) -> int:
    """Return the bytes of memory that a process uses, with its share of shared pages."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii", errors="replace")
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) * 1024
    except (OSError, StopIteration):
        pass
    return linux.own_memory(pid)  # not readable for every user: then all of its memory but mapped files


def _cpu_clock_id(pid: int) -> int:
    """Return the id of a process's CPU clock, computed as by the C library's ``clock_getcpuclockid``."""
    return ~pid << 3 | 2


def _read_pid(handle: int) -> int:
    text = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("Pid:")))


def _process_tree(pid: int) -> list[int]:
    """Return the ids of a process and its descendants."""
    pids: list[int] = []
    waiting = [pid]
    while waiting and len(pids) < 4096:
        one = waiting.pop()
        pids.append(one)
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                waiting += map(int, Path(f"/proc/{one}/task/{task}/children").read_text(encoding="ascii").split())
    return pids
