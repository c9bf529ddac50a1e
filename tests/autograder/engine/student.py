"""A student's process for tests: forked from this one, without a sandbox, with the agent that real ones have."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import os
import signal
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from autograder.checking.draw import Case
from autograder.checks import exercises
from autograder.engine.checker.remote_subject import RemoteSubject
from autograder.engine.checker.rpc_client import CellLimits, StudentClient
from autograder.engine.student import forbidden as forbidden_functions
from autograder.engine.student.cell_shell import make_shell
from autograder.engine.student.rpc_server import RpcServer
from autograder.engine.transport.channel import Channel, ClosedError, Mailbox
from autograder.engine.transport.serialization import pack, unpack

MAX_BYTES = 2**26
# So much that no machine is too busy for it.
AMPLE = CellLimits(600, 600, 4096, 1_000_000, 256)


class Unwatched:
    """What a conversation asks of a process, where no limit is watched."""

    def is_alone(self) -> bool:
        """Return that it is: nobody looks here."""
        return True

    def own_cpu_seconds(self) -> float:
        """Return no CPU time."""
        return 0.0

    def cpu_seconds(self) -> float:
        """Return no CPU time."""
        return 0.0

    def reports(self) -> list[str]:
        """Return nothing: no hook is on."""
        return []

    def uses_more_memory_than(self, limit: int) -> bool:
        """Return that it holds nothing."""
        return False

    def last_reports(self) -> list[str]:
        """Return nothing: no hook is on."""
        return []


class Process(Unwatched):
    """A forked process, as a conversation knows it."""

    def __init__(self, channel: Channel, mailbox: Mailbox, pid: int) -> None:
        self.channel = channel
        self.mailbox = mailbox
        self._pid = pid
        self._status: int | None = None

    def interrupt(self) -> None:
        """Ask it to stop."""
        os.kill(self._pid, signal.SIGINT)

    def kill(self) -> None:
        """End it."""
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)
            self.wait()

    def wait(self) -> int:
        """Return how it has ended."""
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status


class Student:
    """A student's process with names that have been defined.

    Args:
        names: what the process finds defined, beside what cells will define.
        forbidden: names of functions that the process refuses.
    """

    def __init__(self, names: Mapping[str, Any] | None = None, forbidden: Sequence[str] = ()) -> None:
        gc.unfreeze()  # an engine that ran in this process has frozen what `prepare` searches
        forbidden_functions.prepare()  # for all processes that are forked from this one, as a zygote does
        ours, theirs = socket.socketpair()
        mailbox, their_mailbox = socket.socketpair(type=socket.SOCK_SEQPACKET)
        pid = os.fork()
        if not pid:
            with contextlib.suppress(BaseException):
                faulthandler.disable()  # one that crashes is meant to
                ours.close()
                mailbox.close()
                torch.set_num_threads(1)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                shell = make_shell(dict(names or {}))
                called = forbidden_functions.refuse_permanently(forbidden)
                RpcServer(Channel(theirs, MAX_BYTES), Mailbox(their_mailbox), shell, MAX_BYTES, called).serve()
            os._exit(0)
        theirs.close()
        their_mailbox.close()
        self.process = Process(Channel(ours, MAX_BYTES), Mailbox(mailbox, MAX_BYTES), pid)
        self.conversation = conversation_with(self.process, forbidden)
        self._cells = 0
        self.outputs: list[Mapping[str, Any]] = []
        self.begin()

    def pretend_to_refuse(self) -> None:
        """Answer about every exercise in this one process, where a test is about something else than refusing."""
        self.conversation.forbidden = frozenset(name for one in exercises().values() for name in one.forbidden)

    def begin(self, allowance: CellLimits = AMPLE) -> None:
        """Begin a cell."""
        self.outputs.clear()
        self.conversation.begin(allowance, self.outputs.append)

    def run(self, source: str) -> Any:
        """Run a cell of the student's, and say whether it ended without an exception."""
        return self.conversation.ask({"do": "run", "source": source}).get("value")

    def subject(self, name: str = "f") -> RemoteSubject:
        """Bind a name to a test cell of its own, which has asked nothing yet."""
        self._cells += 1
        assert self.conversation.ask({"do": "look", "cell": self._cells, "name": name}) == {"value": True}
        self.conversation.known = {}
        return RemoteSubject(self.conversation, self._cells, name)

    def define(self, source: str, name: str = "f") -> RemoteSubject:
        """Run a cell and return a name that it has defined, as a check examines it."""
        assert self.run("import functools, math, torch, numpy\nfrom torch import nn\n" + source), self.outputs
        return self.subject(name)

    def result(self, source: str) -> Any:
        """Define a function and return what it returns."""
        return self.define(source).observe(Case({}).request()).outputs["output"]

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.channel.close()
        self.process.mailbox.close()


# One message, or several that come one after the other; after an empty one the process is gone.
Said = bytes | list[bytes]
DONE = pack({"value": None})


class Scripted(Unwatched):
    """A process that answers each question with bytes that somebody else has chosen."""

    def __init__(self, *answers: Said | Callable[[Any], Said]) -> None:
        ours, self._theirs = socket.socketpair()
        self.channel = Channel(ours, MAX_BYTES)
        mailbox, self.their_mailbox = socket.socketpair(type=socket.SOCK_SEQPACKET)
        self.mailbox = Mailbox(mailbox, MAX_BYTES)
        self.asked: list[Any] = []
        self._answers = list(answers)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        channel = Channel(self._theirs)
        with contextlib.suppress(ClosedError):
            for answer in self._answers:
                question = unpack(channel.receive())
                self.asked.append(question)
                said = answer(question) if callable(answer) else answer
                for message in said if isinstance(said, list) else [said]:
                    channel.send(message)
                if isinstance(said, list) and not said[-1]:
                    break
            else:
                channel.receive()
        self.kill()

    def interrupt(self) -> None:
        """Take no notice."""

    def kill(self) -> None:
        """End the connection, as the end of a process does."""
        with contextlib.suppress(OSError):
            self._theirs.shutdown(socket.SHUT_RDWR)

    def wait(self) -> int:
        """Say that it has ended without a fault."""
        return 0

    def close(self) -> None:
        """Be gone."""
        self.kill()
        self._thread.join()
        self._theirs.close()
        self.channel.close()
        self.mailbox.close()
        self.their_mailbox.close()


def conversation_with(process: Any, forbidden: Sequence[str] = ()) -> StudentClient:
    """Return the conversation with a process, in a first cell."""
    conversation = StudentClient(process, lambda child: child.wait(), forbidden)
    conversation.begin(AMPLE, lambda output: None)
    return conversation
