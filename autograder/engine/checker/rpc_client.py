"""Send requests to a student's process under limits, and report any misbehaviour as an exceeded limit.

Protects against:

- a missing or late answer: the process is interrupted, then killed
- too much memory, CPU time, output or answers, including child processes
- malformed messages: each counts as an exceeded limit of the cell, never as a crash of the checker
- parts of an answer to an earlier request: the channel and the count of outputs keep requests apart

Does not protect against:

- wrong or forged answers: the checks judge them
- processes that start and end between two samples of the accounting

A sheet is sent in one message and answered in parts, because two processes that wait for each other at every test would spend more time on
context switches than on answers. Each group of requests is answered as soon as it is done, so earlier answers count if a limit is exceeded
later.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import msgpack

from autograder.engine.checker.student_process import StudentProcess
from autograder.engine.transport.channel import ClosedError, DeadlineError, MessageTooLongError
from autograder.engine.transport.msgpack_scan import ItemBudget, ProtocolError
from autograder.engine.transport.serialization import pack, unpack

# Seconds between the interrupt and the kill.
GRACE_SECONDS = 5.0


class LimitError(Exception):
    """A limit was exceeded, or the process has ended; the message is for the student.

    Args:
        kind: a short name: ``"timeout"``, ``"memory"``, ``"output flood"``, ``"kernel died"`` or ``"malformed answer"``.
        message: a sentence.
    """

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        self.message = message
        super().__init__(message)


class _StopError(Exception):
    """Stop the running code: interrupt it, or kill the process at once if ``deadly``."""

    def __init__(self, reason: LimitError, *, deadly: bool = False) -> None:
        self.reason = reason
        self.deadly = deadly
        super().__init__(reason.message)


@dataclass(frozen=True)
class CellLimits:
    """Limits of one cell."""

    seconds: float  # elapsed time in seconds
    cpu_seconds: float  # CPU time in seconds, summed over all processes
    memory_mb: int  # memory in MiB, summed over all processes
    output: int  # number of output characters
    answers_mb: int  # total size of the answers in MiB; the checker keeps them until the cell ends


class StudentClient:
    """A client that sends requests to one student's process.

    Args:
        child: the process.
        how_it_ended: tells the exit status of the process, once it has ended.
        forbidden: the names of the functions that the process refuses.
    """

    def __init__(
        self,
        child: StudentProcess,
        how_it_ended: Callable[[StudentProcess], int],
        forbidden: Sequence[str] = (),
    ) -> None:
        self.forbidden = frozenset(forbidden)
        self._child = child
        self._how_it_ended = how_it_ended
        self._take: Callable[[Mapping[str, Any]], None] = lambda output: None
        self._allowance = CellLimits(60, 60, 4096, 1_000_000, 256)
        self._deadline = self._cpu_at_start = 0.0
        self._cpu_of_children: float | None = None
        self._characters = self._answered = 0
        self.items = ItemBudget()
        self.broken: LimitError | None = None
        self.alive = True
        # Requests and answers of this cell, so that no request is sent twice.
        self.known: dict[bytes, Any] = {}

    @property
    def memory_mb(self) -> int:
        """The cell's memory limit in MiB."""
        return self._allowance.memory_mb

    def begin(self, allowance: CellLimits, take: Callable[[Mapping[str, Any]], None]) -> None:
        """Begin a cell: reset clocks and counters.

        Args:
            allowance: the limits of the cell.
            take: called with each output as it arrives.
        """
        self._allowance = allowance
        self._take = take
        self._deadline = monotonic() + allowance.seconds
        self._cpu_at_start, self._cpu_of_children = self._child.own_cpu_seconds(), None
        self._characters = self._answered = 0
        self.items = ItemBudget()
        self.broken = None
        self.known = {}

    def ask(
        self, question: Mapping[str, Any], *behind: bytes, parts: dict[int, Any] | None = None, most: int = 0
    ) -> dict[str, Any]:
        """Send a request of plain data and return the answer.

        Args:
            question: the request.
            behind: serialized values for the request's last entry, which is an empty list.
            parts: filled with the partial answers, by number; those before a broken limit stay.
            most: the largest number of parts.

        Raises:
            LimitError: if no answer comes. After the first broken limit of a cell, its other requests raise the same error.
        """
        if self.broken is not None:
            raise self.broken
        packed = pack(dict(question))
        try:
            self._child.mailbox.take()  # drop late answers of code that ignored an interrupt
            self._child.channel.send(_fill_requests(packed, behind) if behind else packed, deadline=self._deadline)
            return self._receive_answer(self._deadline, {} if parts is None else parts, most)
        except DeadlineError:
            self.broken = self._stop_code(LimitError("timeout", f"It was stopped after {self._allowance.seconds:g} s."))
        except ClosedError:
            self.broken = self._crash_reason()
        except MessageTooLongError:
            message = f"Its answers exceeded the limit of {self._allowance.answers_mb} MiB in total."
            self.broken = self._kill_process(LimitError("malformed answer", message))
        except ProtocolError as error:
            self.broken = self._kill_process(LimitError("malformed answer", f"Its answer could not be read: {error}."))
        except MemoryError:
            self.broken = self._kill_process(
                LimitError("malformed answer", "Its answer did not fit into the checker's memory.")
            )
        except _StopError as stop:
            self.broken = self._kill_process(stop.reason) if stop.deadly else self._stop_code(stop.reason)
        raise self.broken

    def _receive_answer(self, deadline: float, parts: dict[int, Any], most: int) -> dict[str, Any]:
        outputs = 0
        try:
            while True:
                message = self._parse_message(self._child.channel.receive(deadline, self._check_usage))
                if "out" in message:
                    self._accept_output(message["out"])
                    outputs += 1
                elif "part" in message:
                    _add_part(message, parts, most)
                else:
                    return message
        finally:
            # Parts that were sent after the output that broke the limit do not count.
            for data in self._child.mailbox.take():
                part = self._parse_message(data)
                if _count_earlier_outputs(part) <= outputs:
                    _add_part(part, parts, most)

    def _parse_message(self, data: bytes) -> dict[str, Any]:
        self._answered += len(data)
        if self._answered > self._allowance.answers_mb * 2**20:
            raise MessageTooLongError
        message = unpack(data, budget=self.items)
        if not isinstance(message, dict):
            raise ProtocolError("an answer that is not a mapping")
        return message

    def _accept_output(self, output: Any) -> None:
        try:
            # Only plain JSON data: an object of the student's in an output would run its methods in this process.
            text = json.dumps(output)
            output = json.loads(text)
        except Exception as error:
            raise ProtocolError("an output that a notebook cannot hold") from error
        if not isinstance(output, dict):
            raise ProtocolError("an output that is not a mapping")
        self._characters += len(text)
        if self._characters > self._allowance.output:
            message = f"It printed more than {self._allowance.output} characters and was stopped."
            raise _StopError(LimitError("output flood", message))
        self._take(output)

    def _check_usage(self) -> None:
        """Check memory and CPU time of the process and its children."""
        if self._child.uses_more_memory_than(self._allowance.memory_mb * 2**20):
            raise _StopError(LimitError("memory", memory_text(self._allowance.memory_mb)), deadly=True)
        used, own_seconds = self._child.cpu_seconds(), self._child.own_cpu_seconds()
        if self._cpu_of_children is None:
            # Most cells end before the first check. CPU time of the children up to then may belong to earlier cells.
            self._cpu_of_children = used - own_seconds
        if used - self._cpu_of_children - self._cpu_at_start > self._allowance.cpu_seconds:
            message = f"It was stopped after {self._allowance.cpu_seconds:g} s of CPU time."
            raise _StopError(LimitError("timeout", message))

    def _stop_code(self, reason: LimitError) -> LimitError:
        """Interrupt the running code, and kill the process if it does not stop.

        Its child processes would run on and use up the time of later cells: a process with children is killed.
        """
        self._child.interrupt()
        deadline = monotonic() + GRACE_SECONDS
        try:
            while True:
                message = unpack(self._child.channel.receive(deadline), budget=self.items)
                # Code that ignores the interrupt may still answer the rest of the request: wait for the final reply.
                if not isinstance(message, dict) or message.keys().isdisjoint({"out", "part"}):
                    return reason if self._child.is_alone() else self._kill_process(reason)
        except (DeadlineError, ClosedError, MessageTooLongError, ProtocolError):
            return self._kill_process(reason)

    def _kill_process(self, reason: LimitError) -> LimitError:
        self._child.kill()
        self.alive = False
        return reason

    def _crash_reason(self) -> LimitError:
        self._child.kill()
        self.alive = False
        status = self._how_it_ended(self._child)
        if status == -signal.SIGXCPU:
            return LimitError("timeout", "It used up the submission's CPU time.")
        if status < 0 and status != -signal.SIGKILL:
            return LimitError("kernel died", f"The code crashed its process ({signal_name(-status)}).")
        return LimitError(
            "kernel died",
            "The process ended: the code ended it, crashed it, or used up its memory or its time.",
        )


def signal_name(number: int) -> str:
    """Return the name of a signal, or its number for Linux's real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _count_earlier_outputs(message: dict[str, Any]) -> int:
    """Return the number of outputs that preceded a part of an answer."""
    count = message.get("after")
    if type(count) is not int:
        raise ProtocolError("a part of an answer without its position among the outputs")
    return count


def _add_part(message: dict[str, Any], parts: dict[int, Any], most: int) -> None:
    number = message.get("part")
    if type(number) is not int or not 0 <= number < most or number in parts:
        raise ProtocolError("a part of an answer that was not asked for")
    parts[number] = message.get("answers")


def memory_text(memory_mb: int) -> str:
    """Return the message for a student whose code exceeded the memory limit."""
    size = f"{memory_mb / 1024:g} GiB" if memory_mb >= 1024 else f"{memory_mb} MiB"
    return f"It needed more than {size} of memory."


def _fill_requests(question: bytes, behind: tuple[bytes, ...]) -> bytes:
    """Insert serialised values into the empty list at the end of a serialised request."""
    assert question[-2:] == b"\x91\x00", "the last entry of the question is not an empty list"
    return question[:-2] + bytes(msgpack.Packer().pack_array_header(len(behind) + 1)) + b"\x00" + b"".join(behind)
