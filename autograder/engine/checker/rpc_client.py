"""Send requests to a student's process under limits; whatever it does instead of answering is reported as a broken limit.

Protects against:

- no answer, or none in time: the process is interrupted, then killed
- too much memory, CPU time, output or answers, children of the process included
- malformed messages: each counts as a broken limit of the cell, and never as a crash of the checker
- parts of an answer to an earlier request: the channel and the count of outputs keep requests apart

Does not protect against:

- wrong or forged answers: the checks judge them
- processes that start and end between two looks at the accounting

A sheet is sent in one message and answered in parts. Two processes that wait for each other at every question spend more time on waking
up than on answering. Each group of requests is sent back as soon as it is done, so when a limit is broken in the middle, earlier answers
count.
"""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import msgpack

from autograder.engine.checker.zygote_client import StudentProcess
from autograder.engine.student import refusal_switch
from autograder.engine.transport.channel import ClosedError, DeadlineError, MessageTooLongError
from autograder.engine.transport.serialization import ItemBudget, ProtocolError, Reference, pack, unpack

# How long code that was told to stop has to do so, before its process is killed.
GRACE_SECONDS = 5.0


class LimitError(Exception):
    """A limit was broken, or the process has gone. The text tells the student.

    Args:
        kind: a short name: ``"timeout"``, ``"memory"``, ``"output flood"``, ``"kernel died"`` or ``"malformed answer"``.
        what: a sentence.
    """

    def __init__(self, kind: str, what: str) -> None:
        self.kind = kind
        self.what = what
        super().__init__(what)


class _StopError(Exception):
    """What is running is to be stopped: interrupted, or, if it is deadly, killed at once."""

    def __init__(self, reason: LimitError, *, deadly: bool = False) -> None:
        self.reason = reason
        self.deadly = deadly
        super().__init__(reason.what)


@dataclass(frozen=True)
class CellLimits:
    """What one cell may use.

    Attributes:
        seconds: of wall time.
        cpu_seconds: of CPU time, all its processes together.
        memory_mb: MiB of memory, all its processes together.
        output: characters of output.
        answers_mb: MiB of answers, all together: the checker keeps them until the cell is over.
    """

    seconds: float
    cpu_seconds: float
    memory_mb: int
    output: int
    answers_mb: int


class StudentClient:
    """Questions to a student's process and its answers.

    Args:
        child: the process.
        how_it_ended: tells the exit status of the process, once it has ended.
        resolve: makes something of a reference in an answer.
    """

    def __init__(
        self, child: StudentProcess, how_it_ended: Callable[[StudentProcess], int], resolve: Callable[[Reference], Any]
    ) -> None:
        self._child = child
        self._how_it_ended = how_it_ended
        self._resolve = resolve
        self._take: Callable[[Mapping[str, Any]], None] = lambda output: None
        self._allowance = CellLimits(60, 60, 4096, 1_000_000, 256)
        self._deadline = self._cpu_at_start = 0.0
        self._cpu_of_children: float | None = None
        self._characters = self._answered = 0
        self.items = ItemBudget()
        self.broken: LimitError | None = None
        self.alive = True
        # What has been asked and answered in this cell, for whoever does not want to ask twice.
        self.known: dict[object, Any] = {}
        self._key = secrets.token_bytes(32)
        # What ends the refusal that stands, and the one that the next question begins. It is sent with the question after that.
        self._token: bytes | None = None
        self._next_token: bytes | None = None

    @property
    def memory_mb(self) -> int:
        """MiB of memory that the cell may use."""
        return self._allowance.memory_mb

    def begin(self, allowance: CellLimits, take: Callable[[Mapping[str, Any]], None]) -> None:
        """Begin a cell: clocks and counters start anew.

        Args:
            allowance: what the cell may use.
            take: is given the outputs as they come.
        """
        self._allowance = allowance
        self._take = take
        self._deadline = monotonic() + allowance.seconds
        self._cpu_at_start, self._cpu_of_children = self._child.own_cpu_seconds(), None
        self._characters = self._answered = 0
        self.items = ItemBudget()
        self.broken = None
        self.known = {}

    def give_key(self) -> None:
        """Let the process be asked to refuse functions. No code of the student's may have run in it.

        Raises:
            LimitError: as :meth:`ask`.
        """
        self.ask({"do": "key", "key": self._key})

    def refusal(self, exercise: str, names: Sequence[str]) -> tuple[bytes, bytes]:
        """Return a nonce for the next question, and the proof that it refuses functions while it is answered.

        Args:
            exercise: the name of the exercise.
            names: what it forbids.
        """
        nonce = secrets.token_bytes(16)
        self._next_token = refusal_switch.token_of(self._key, nonce)
        return nonce, refusal_switch.proof_of(self._key, exercise, names, nonce)

    def ask(
        self, question: Mapping[str, Any], *behind: bytes, parts: dict[int, Any] | None = None, most: int = 0
    ) -> dict[str, Any]:
        """Return the answer to a question of plain data.

        Args:
            question: what is asked.
            behind: packed values that belong into the question's last entry, which is an empty list.
            parts: is given what the answer brings beforehand, by number; what has come before a limit is broken stays there.
            most: how many parts there may be.

        Raises:
            LimitError: if there is none. After the first broken limit of a cell every other question of it breaks the same.
        """
        packed = pack(dict(question))
        return self.ask_packed(_filled(packed, behind) if behind else packed, parts, most)

    def ask_packed(self, question: bytes, parts: dict[int, Any] | None = None, most: int = 0) -> dict[str, Any]:
        """Return the answer to a question that is packed already.

        Raises:
            LimitError: as :meth:`ask`.
        """
        if self.broken is not None:
            raise self.broken
        try:
            self._child.tray.take()  # what code has answered that took no notice of being stopped
            token, self._token, self._next_token = self._token, self._next_token, None
            if token is not None:
                self._child.channel.send(pack({"do": "release", "token": token}), deadline=self._deadline)
            self._child.channel.send(question, deadline=self._deadline)
            return self._answer(self._deadline, {} if parts is None else parts, most)
        except DeadlineError:
            self.broken = self._stop(LimitError("timeout", f"It was stopped after {self._allowance.seconds:g} s."))
        except ClosedError:
            self.broken = self._gone()
        except MessageTooLongError:
            what = f"Its answers were longer than the {self._allowance.answers_mb} MiB that are allowed in all."
            self.broken = self._kill(LimitError("malformed answer", what))
        except ProtocolError as error:
            self.broken = self._kill(LimitError("malformed answer", f"Its answer could not be read: {error}."))
        except MemoryError:
            self.broken = self._kill(LimitError("malformed answer", "Its answer was larger than the checker can take."))
        except _StopError as stop:
            self.broken = self._kill(stop.reason) if stop.deadly else self._stop(stop.reason)
        raise self.broken

    def _answer(self, deadline: float, parts: dict[int, Any], most: int) -> dict[str, Any]:
        outputs = 0
        try:
            while True:
                message = self._read(self._child.channel.receive(deadline, self._watch))
                if "out" in message:
                    self._output(message["out"])
                    outputs += 1
                elif "part" in message:
                    _add(message, parts, most)
                else:
                    return message
        finally:
            # What was broken off by an output has been answered up to there, however fast it went on.
            for data in self._child.tray.take():
                part = self._read(data)
                if _after(part) <= outputs:
                    _add(part, parts, most)

    def _read(self, data: bytes) -> dict[str, Any]:
        self._answered += len(data)
        if self._answered > self._allowance.answers_mb * 2**20:
            raise MessageTooLongError
        message = unpack(data, self._resolve, budget=self.items)
        if not isinstance(message, dict):
            raise ProtocolError("an answer that is no mapping")
        return message

    def _output(self, output: Any) -> None:
        try:
            # What a notebook can hold, and nothing else: an object of the student's in it would be asked while it is looked at.
            text = json.dumps(output)
            output = json.loads(text)
        except Exception as error:
            raise ProtocolError("an output that a notebook cannot hold") from error
        if not isinstance(output, dict):
            raise ProtocolError("an output that is no mapping")
        self._characters += len(text)
        if self._characters > self._allowance.output:
            what = f"It printed more than {self._allowance.output} characters and was stopped."
            raise _StopError(LimitError("output flood", what))
        self._take(output)

    def _watch(self) -> None:
        """Look after what only shows while time passes: memory and CPU time of the whole family of processes."""
        if self._child.memory() > self._allowance.memory_mb * 2**20:
            raise _StopError(LimitError("memory", memory_text(self._allowance.memory_mb)), deadly=True)
        used, own = self._child.cpu_seconds(), self._child.own_cpu_seconds()
        if self._cpu_of_children is None:
            # Most cells are over before anybody looks. What its children have used by the first look may be from cells before.
            self._cpu_of_children = used - own
        if used - self._cpu_of_children - self._cpu_at_start > self._allowance.cpu_seconds:
            what = f"It was stopped after {self._allowance.cpu_seconds:g} s of CPU time."
            raise _StopError(LimitError("timeout", what))

    def _stop(self, reason: LimitError) -> LimitError:
        """Interrupt what is running; where that does not help, kill it.

        What it has started goes on, and would take time from what is asked next: with company it is killed, too.
        """
        self._child.interrupt()
        deadline = monotonic() + GRACE_SECONDS
        try:
            while True:
                message = unpack(self._child.channel.receive(deadline), self._resolve, budget=self.items)
                # Code that takes no notice of the interruption may answer what is left of the question: that is not its end.
                if not isinstance(message, dict) or message.keys().isdisjoint({"out", "part"}):
                    return reason if self._child.is_alone() else self._kill(reason)
        except (DeadlineError, ClosedError, MessageTooLongError, ProtocolError):
            return self._kill(reason)

    def _kill(self, reason: LimitError) -> LimitError:
        self._child.kill()
        self.alive = False
        return reason

    def _gone(self) -> LimitError:
        self._child.kill()
        self.alive = False
        status = self._how_it_ended(self._child)
        if status == -signal.SIGXCPU:
            return LimitError("timeout", "It used up the CPU time that a submission has.")
        if status < 0 and status != -signal.SIGKILL:
            return LimitError("kernel died", f"The code crashed its process ({signal_name(-status)}).")
        return LimitError(
            "kernel died",
            "The process ended: the code ended it, crashed it, or used up the memory or the time that it has.",
        )


def signal_name(number: int) -> str:
    """Return the name of a signal; those between the named ones, which Linux has for real-time use, are told by their number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _after(message: dict[str, Any]) -> int:
    """Return after how many outputs a part of an answer came."""
    count = message.get("after")
    if type(count) is not int:
        raise ProtocolError("a part of an answer without its place among the outputs")
    return count


def _add(message: dict[str, Any], parts: dict[int, Any], most: int) -> None:
    number = message.get("part")
    if type(number) is not int or not 0 <= number < most or number in parts:
        raise ProtocolError("a part of an answer that was not asked for")
    parts[number] = message.get("answers")


def memory_text(memory_mb: int) -> str:
    """Return what a student is told who has used too much memory."""
    size = f"{memory_mb / 1024:g} GiB" if memory_mb >= 1024 else f"{memory_mb} MiB"
    return f"It needed more than {size} of memory."


def _filled(question: bytes, behind: tuple[bytes, ...]) -> bytes:
    """Return a packed question with packed values put into the empty list that it ends with."""
    assert question[-2:] == b"\x91\x00", "the last entry of the question is not an empty list"
    return question[:-2] + bytes(msgpack.Packer().pack_array_header(len(behind) + 1)) + b"\x00" + b"".join(behind)
