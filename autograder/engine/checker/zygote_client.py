"""Control a student zygote from the worker: start it, request children, and restart it if it dies."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from time import monotonic
from typing import Any

from autograder.engine.checker.student_process import StudentProcess
from autograder.engine.sandbox.lockdown import Limits
from autograder.engine.sandbox.settings import SandboxSettings, is_at_least
from autograder.engine.transport.channel import (
    Channel,
    ClosedError,
    DeadlineError,
    Mailbox,
    MessageTooLongError,
    receive_with_descriptors,
    send_with_descriptors,
)
from autograder.engine.transport.fork_server import ForkServerChild, kill_group

START_SECONDS = 120.0
_FORK_SECONDS = 20.0


class ZygoteError(Exception):
    """A student process could not be started; the message gives the reason."""


class ZygoteClient:
    """Controls a student zygote and the children that it forks.

    Args:
        settings: the sandbox settings of the children.
        environment: their environment variables.
        standby: the connection of a zygote that a fork server forks for this client; without one, or if it dies, the client starts one.
    """

    def __init__(
        self,
        settings: SandboxSettings,
        environment: Mapping[str, str],
        *,
        standby: socket.socket | None = None,
    ) -> None:
        self.settings = settings
        self._environment = dict(environment)
        self._standby = standby
        # None also for a zygote that a fork server has yet to fork.
        self._process: subprocess.Popen[bytes] | ForkServerChild | None = None
        self._control: socket.socket | None = None
        self._folder = ""
        self._ready = False
        self._entered = ""
        self.problem = ""

    def start(self) -> None:
        """Start the zygote unless it is running, without waiting until it is ready."""
        if self._control is not None and (self._process is None or self._process.poll() is None):
            return
        standby, self._standby = self._standby, None
        self.close()
        self._folder = tempfile.mkdtemp(prefix="tfcourse-")
        root = f"{self._folder}/root"
        os.mkdir(root, 0o755)
        self._control = standby or self._spawn_zygote()
        self._ready = False
        order = {
            "settings": self.settings.to_dict(),
            "environment": self._environment,
            "root": root,
        }
        # If the zygote has ended, make_ready finds out.
        with contextlib.suppress(OSError):
            send_with_descriptors(self._control, json.dumps(order).encode(), [])

    def _spawn_zygote(self) -> socket.socket:
        """Start the zygote as a program, and return the connection to it."""
        ours, zygote_end = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autograder.engine.student.zygote", str(zygote_end.fileno())],
            pass_fds=[zygote_end.fileno()],
            env=self._environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        zygote_end.close()
        return ours

    def make_ready(self) -> bool:
        """Wait until the zygote can fork children, and restart it if it has died.

        Returns:
            Whether the zygote is another one than at the last call.

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
            if self._process is None:
                self._process = ForkServerChild.wait_for_announcement(control, START_SECONDS)
                control.settimeout(START_SECONDS)
            answer = json.loads(receive_with_descriptors(control, 0)[0])
        except (OSError, ClosedError) as error:
            raise ZygoteError("the process that forks student processes ended during its start") from error
        if "failed" in answer:
            raise ZygoteError(f"the process that forks student processes could not start: {answer['failed']}")
        self.problem = answer["problem"]
        control.settimeout(_FORK_SECONDS)
        self._ready = True
        if self._entered:
            self._send_folder(control)
        return True

    def enter_folder(self, folder: str) -> None:
        """Give children the packages of one folder in ``settings.packages`` instead of the previous folder's.

        Loading a folder's packages is faster than starting another zygote, which would import PyTorch again.

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
            self._send_folder(self._control)
        except (OSError, ZygoteError) as error:
            self.close()
            raise ZygoteError("the process that forks student processes could not load another package") from error

    def _send_folder(self, control: socket.socket) -> None:
        control.settimeout(START_SECONDS)
        self._exchange_order(control, {"enter": self._entered}, [])
        control.settimeout(_FORK_SECONDS)

    def fork_child(
        self,
        max_bytes: int,
        limits: Limits | None = None,
        *,
        forbidden: Sequence[str] = (),
    ) -> StudentProcess:
        """Fork a sandboxed child from the zygote, which must be ready.

        Args:
            max_bytes: the longest message accepted from it, in bytes.
            limits: its limits; by default the limits in the settings.
            forbidden: names of functions that it refuses until it ends.

        Raises:
            ZygoteError: if the child cannot be started, or it has less isolation than the settings require.
        """
        # Imported late: it imports PyTorch, and a zygote started before does the same in parallel.
        from autograder.engine.transport.msgpack_scan import ProtocolError
        from autograder.engine.transport.serialization import unpack

        control = self._control
        if control is None or not self._ready:
            raise ZygoteError("the process that forks student processes is not ready")
        ours, child_end = socket.socketpair()
        mailbox, their_mailbox = socket.socketpair(type=socket.SOCK_SEQPACKET)
        reports, their_reports = socket.socketpair(type=socket.SOCK_SEQPACKET)
        scratch = tempfile.mkdtemp(prefix="tfcourse-") if self.problem or self.settings.isolation == "none" else ""
        order = {
            "limits": asdict(limits or self.settings.limits),
            "max_bytes": max_bytes,
            "scratch": scratch,
            "forbidden": list(forbidden),
        }
        descriptors = [child_end.fileno(), their_mailbox.fileno(), their_reports.fileno()]
        try:
            answer, handles = self._exchange_order(control, {"fork": order}, descriptors)
        except ZygoteError:
            for one in (ours, mailbox, reports):
                one.close()
            raise
        finally:
            for one in (child_end, their_mailbox, their_reports):
                one.close()
        channel = Channel(ours, max_bytes)
        child = StudentProcess(channel, Mailbox(mailbox, max_bytes), reports, handles[0], answer["pid"], (), scratch)
        try:
            answer_of_child = unpack(channel.receive(monotonic() + _FORK_SECONDS))
        except (ClosedError, DeadlineError, MessageTooLongError, ProtocolError) as error:
            child.close()
            raise ZygoteError(f"a student process did not start ({type(error).__name__})") from error
        if "failed" in answer_of_child:
            child.close()
            raise ZygoteError(f"a student process could not be isolated: {answer_of_child['failed']}")
        child.layers = tuple(answer_of_child["ready"])
        if not is_at_least(child.isolation, self.settings.isolation):
            child.close()
            missing = self.problem or "this system does not offer the missing layers"
            raise ZygoteError(
                f"isolation {self.settings.isolation!r} is required, but only {child.isolation!r} is available: {missing}"
            )
        return child

    def wait_for_exit(self, child: StudentProcess) -> int:
        """Wait for a child and return its exit status, or minus the signal that ended it."""
        control = self._control
        if control is None:
            return 0
        try:
            return int(self._exchange_order(control, {"wait": child.number}, [])[0]["status"])
        except ZygoteError:
            return 0

    def _exchange_order(
        self, control: socket.socket, order: dict[str, Any], descriptors: Sequence[int]
    ) -> tuple[dict[str, Any], list[int]]:
        """Send an order and return its answer; an answer to another order raises ZygoteError."""
        token = secrets.token_hex(8)
        try:
            send_with_descriptors(control, json.dumps({**order, "token": token}).encode(), descriptors)
            message, handles = receive_with_descriptors(control, 1)
            answer = json.loads(message)
            if answer.get("token") != token or ("fork" in order and len(handles) != 1):
                raise ValueError("an answer to another order")
        except (OSError, ClosedError, ValueError) as error:
            raise ZygoteError("the process that forks student processes has died or does not answer") from error
        return answer, handles

    def close(self) -> None:
        """Kill the zygote and all its children."""
        for connection in (self._control, self._standby):
            if connection is not None:
                connection.close()
        self._control = self._standby = None
        if self._process is not None:
            kill_group(self._process)
            self._process = None
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = ""
