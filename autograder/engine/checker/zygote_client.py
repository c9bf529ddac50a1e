"""The worker's side of a student zygote: it is started, asked for children, and started again if it dies."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from time import clock_gettime, monotonic
from typing import Any

from autograder.engine.sandbox import linux
from autograder.engine.sandbox.lockdown import Limits
from autograder.engine.sandbox.settings import SandboxSettings, level_of, suffices
from autograder.engine.transport.channel import (
    Channel,
    ClosedError,
    DeadlineError,
    Mailbox,
    MessageTooLongError,
    receive_with_descriptors,
    send_with_descriptors,
)

START_SECONDS = 120.0
_FORK_SECONDS = 20.0
_TICK = os.sysconf("SC_CLK_TCK")
# So many lines are read of what a student's process says of itself, of so many characters.
_MOST_REPORTS, _LONGEST_REPORT = 200, 160
# A process that ends closes its connections first, and is there for a moment after that.
_END_SECONDS = 1.0


class ZygoteError(Exception):
    """No student process can be had; the text says why."""


class StudentProcess:
    """A sandboxed process that runs one student's code, and all that it has started.

    Args:
        channel: the connection to it.
        tray: where it lays down parts of its answers.
        reports: where it says what it is about to do that is worth a look.
        handle: a descriptor that stands for the process.
        number: its number within the zygote.
        layers: the layers of isolation that it has put on.
        scratch: the folder on the host that it may write to, if it has no private root.
    """

    def __init__(
        self,
        channel: Channel,
        tray: Mailbox,
        reports: socket.socket,
        handle: int,
        number: int,
        layers: tuple[str, ...],
        scratch: str,
    ) -> None:
        self.channel = channel
        self.tray = tray
        self._reports = reports
        self.number = number
        self.layers = layers
        self._handle = handle
        self._scratch = scratch
        self._pid = _pid_of(handle)

    @property
    def isolation(self) -> str:
        """The level that its layers amount to."""
        return level_of(self.layers)

    def interrupt(self) -> None:
        """Ask it to stop what it is doing, as Ctrl-C would."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._handle, signal.SIGINT)

    def kill(self) -> None:
        """End it and everything that it has started."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)
        if "process namespace" not in self.layers:
            # Without a process namespace what it has started lives on in its session, or in its group.
            with contextlib.suppress(OSError):
                os.killpg(self._pid, signal.SIGKILL)

    def is_alive(self, wait_seconds: float = 0.0) -> bool:
        """Return whether it has not ended.

        Args:
            wait_seconds: how long to wait for its end.
        """
        poll = select.poll()
        poll.register(self._handle, select.POLLIN)
        return not poll.poll(1000 * wait_seconds)

    def close(self) -> None:
        """End it, and take its connection and folder away."""
        self.kill()
        self.channel.close()
        self.tray.close()
        self._reports.close()
        os.close(self._handle)
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def reports(self) -> list[str]:
        """End it, and return what it has said of what it was about to do."""
        found, closed = self._read_reports()
        if closed and not self.is_alive(wait_seconds=_END_SECONDS):
            closed = False  # it has ended, which closes everything
        self.kill()
        found += self._read_reports()[0]
        return [*found, "closed the connection over which it is watched"] if closed else found

    def _read_reports(self) -> tuple[list[str], bool]:
        """Return the lines that have come, and whether no more can come."""
        found: list[str] = []
        try:
            while len(found) < _MOST_REPORTS:
                line = self._reports.recv(4 * _LONGEST_REPORT, socket.MSG_DONTWAIT)
                if not line:
                    return found, True
                found.append(line.decode("utf-8", "replace")[:_LONGEST_REPORT])
        except OSError:
            pass
        return found, False

    def own_cpu_seconds(self) -> float:
        """Return the CPU seconds that the process has used without its children. To find out takes microseconds."""
        try:
            return clock_gettime(_clock_of(self._pid))
        except OSError:  # it has ended
            return 0.0

    def cpu_seconds(self) -> float:
        """Return the CPU seconds that the process has used, with those of its children."""
        return sum(self._seconds_of(pid) for pid in _family(self._pid))

    def is_alone(self) -> bool:
        """Return whether no process is left that it has started."""
        return len(_family(self._pid)) == 1

    def memory(self) -> int:
        """Return the bytes of memory that the process and its children hold now. To find out takes milliseconds."""
        return sum(map(_held_memory, _family(self._pid)))

    def _seconds_of(self, pid: int) -> float:
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return 0.0
        fields = text.rpartition(")")[2].split()
        # Of the children that have ended only the first process counts: the others are in the family themselves.
        counted = fields[11:15] if pid == self._pid else fields[11:13]
        return sum(map(int, counted)) / _TICK


def _held_memory(pid: int) -> int:
    """Return the bytes of memory that a process holds; of what it shares with others, its share."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii", errors="replace")
        return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")) * 1024
    except (OSError, StopIteration):
        pass
    return linux.own_memory(pid)  # not told to everybody: then all of it but the files that it has mapped


def _clock_of(pid: int) -> int:
    """Return the number of the clock that counts a process's CPU time, as ``clock_getcpuclockid`` of the C library makes it."""
    return ~pid << 3 | 2


def _pid_of(handle: int) -> int:
    text = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in text.splitlines() if line.startswith("Pid:")))


def _family(pid: int) -> list[int]:
    """Return a process and its descendants."""
    found: list[int] = []
    waiting = [pid]
    while waiting and len(found) < 4096:
        one = waiting.pop()
        found.append(one)
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task"):
                waiting += map(int, Path(f"/proc/{one}/task/{task}/children").read_text(encoding="ascii").split())
    return found


class ZygoteClient:
    """A student zygote and the children that it forks.

    Args:
        settings: what the children are to be.
        environment: the environment variables that they see.
        kernels: whether the children are Jupyter kernels, whose sockets lie in folders below :attr:`sockets`.
    """

    def __init__(self, settings: SandboxSettings, environment: Mapping[str, str], *, kernels: bool = False) -> None:
        self.settings = settings
        self._kernels = kernels
        self._environment = dict(environment)
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._folder = ""
        self._ready = False
        self._entered = ""
        self.problem = ""

    def start(self) -> None:
        """Start the zygote, unless it runs; return at once, while it prepares itself."""
        if self._control is not None and self._process is not None and self._process.poll() is None:
            return
        self.close()
        ours, theirs = socket.socketpair()
        self._folder = tempfile.mkdtemp(prefix="tfcourse-")
        for name in ("root", "sockets"):
            os.mkdir(f"{self._folder}/{name}", 0o755)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autograder.engine.student.zygote", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=self._environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._control = ours
        self._ready = False
        order = {
            "settings": self.settings.to_dict(),
            "root": f"{self._folder}/root",
            "sockets": self.sockets if self._kernels else "",
            "enters": bool(self._entered),
        }
        send_with_descriptors(ours, json.dumps(order).encode(), [])

    @property
    def sockets(self) -> str:
        """The folder for the sockets of kernels, while the zygote runs."""
        return f"{self._folder}/sockets"

    def make_ready(self) -> bool:
        """Wait until children can be had; a zygote that has died is started again.

        Returns:
            Whether it is another zygote than when this was called last.

        Raises:
            ZygoteError: if none can be started.
        """
        self.start()
        if self._ready:
            return False
        control = self._control
        assert control is not None
        control.settimeout(START_SECONDS)
        try:
            answer = json.loads(receive_with_descriptors(control, 0)[0])
        except (OSError, ClosedError) as error:
            raise ZygoteError("the process that student code is forked from ended while it started") from error
        if "failed" in answer:
            raise ZygoteError(f"the process that student code is forked from could not start: {answer['failed']}")
        self.problem = answer["problem"]
        control.settimeout(_FORK_SECONDS)
        self._ready = True
        if self._entered:
            self._enter(control)
        return True

    def enter(self, folder: str) -> None:
        """Let children have the packages of one folder in ``settings.packages``, and no longer those of another.

        To load a folder's packages takes less time than to start another zygote, which would import PyTorch again.

        Args:
            folder: its name.

        Raises:
            ZygoteError: if that cannot be done.
        """
        before, self._entered = self._entered, folder
        if self._control is None or not self._ready or folder == before:
            return
        try:
            if before:
                send_with_descriptors(self._control, json.dumps({"leave": True}).encode(), [])
            self._enter(self._control)
        except (OSError, ZygoteError) as error:
            self.close()
            raise ZygoteError("the process that student code is forked from could not load another package") from error

    def _enter(self, control: socket.socket) -> None:
        control.settimeout(START_SECONDS)
        self._exchange(control, {"enter": self._entered}, [])
        control.settimeout(_FORK_SECONDS)

    def child(
        self,
        max_bytes: int,
        limits: Limits | None = None,
        *,
        connection: Mapping[str, Any] | None = None,
        sockets: str = "",
    ) -> StudentProcess:
        """Return a new child of a zygote that is ready, locked in.

        Args:
            max_bytes: the longest message that is taken from it.
            limits: what it may use; by default what the settings say.
            connection: for a kernel, what Jupyter's connection file says. A second message follows when its sockets are bound.
            sockets: for a kernel, the name of its folder below :attr:`sockets`.

        Raises:
            ZygoteError: if there is none to be had, or it is less isolated than the settings ask for.
        """
        # Not before: it imports PyTorch, and a zygote that has been started can do the same meanwhile.
        from autograder.engine.transport.serialization import ProtocolError, unpack

        control = self._control
        if control is None or not self._ready:
            raise ZygoteError("the process that student code is forked from is not ready")
        ours, theirs = socket.socketpair()
        tray, their_tray = socket.socketpair(type=socket.SOCK_SEQPACKET)
        reports, their_reports = socket.socketpair(type=socket.SOCK_SEQPACKET)
        scratch = tempfile.mkdtemp(prefix="tfcourse-") if self.problem or self.settings.isolation == "none" else ""
        order = {
            "limits": asdict(limits or self.settings.limits),
            "max_bytes": max_bytes,
            "scratch": scratch,
            "connection": dict(connection or {}),
            "sockets": f"{self.sockets}/{sockets}" if scratch and sockets else sockets,
        }
        descriptors = [theirs.fileno(), their_tray.fileno(), their_reports.fileno()]
        try:
            answer, handles = self._exchange(control, {"fork": order}, descriptors)
        except ZygoteError:
            for one in (ours, tray, reports):
                one.close()
            raise
        finally:
            for one in (theirs, their_tray, their_reports):
                one.close()
        channel = Channel(ours, max_bytes)
        child = StudentProcess(channel, Mailbox(tray, max_bytes), reports, handles[0], answer["pid"], (), scratch)
        try:
            said = unpack(channel.receive(monotonic() + _FORK_SECONDS))
        except (ClosedError, DeadlineError, MessageTooLongError, ProtocolError) as error:
            child.close()
            raise ZygoteError(f"a student process did not come up ({type(error).__name__})") from error
        if "failed" in said:
            child.close()
            raise ZygoteError(f"a student process could not be locked in: {said['failed']}")
        child.layers = tuple(said["ready"])
        if not suffices(child.isolation, self.settings.isolation):
            child.close()
            missing = self.problem or "this system does not offer what it takes"
            raise ZygoteError(
                f"isolation {self.settings.isolation!r} was asked for, {child.isolation!r} is what there is: {missing}"
            )
        return child

    def how_it_ended(self, child: StudentProcess) -> int:
        """Return a child's exit status, or minus the signal that ended it; waits until it has ended."""
        control = self._control
        if control is None:
            return 0
        try:
            return int(self._exchange(control, {"wait": child.number}, [])[0]["status"])
        except ZygoteError:
            return 0

    def _exchange(
        self, control: socket.socket, order: dict[str, Any], descriptors: Sequence[int]
    ) -> tuple[dict[str, Any], list[int]]:
        """Give an order and return the answer to it, and to no other that somebody did not wait for."""
        token = secrets.token_hex(8)
        try:
            send_with_descriptors(control, json.dumps({**order, "token": token}).encode(), descriptors)
            message, handles = receive_with_descriptors(control, 1)
            answer = json.loads(message)
            if answer.get("token") != token or ("fork" in order and len(handles) != 1):
                raise ValueError("an answer to another order")
        except (OSError, ClosedError, ValueError) as error:
            raise ZygoteError("the process that student code is forked from has died, or answers no more") from error
        return answer, handles

    def close(self) -> None:
        """End the zygote and all its children."""
        if self._control is not None:
            self._control.close()
            self._control = None
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""
