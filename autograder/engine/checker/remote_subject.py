"""A student's function or class as a check examines it: requests go out, observations come back, and none of them is believed in form.

An answer that arrives as the very bytes of the reference's answer is neither decoded nor judged: it is right. Between a third and three
quarters of five students' answers were right to the last bit. Visible questions are answered from memory within a cell: `check(f)` and
`check(f, hidden=True)` stand together, and the second asks what the first asked. The answers are kept until the cell ends and no longer,
so that a function with a state is not judged by an older one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from autograder.checking.request import OUT_OF_MEMORY, Observation, Request
from autograder.checking.subject import UsesReferenceError
from autograder.engine.checker.rpc_client import LimitError, StudentClient, memory_text
from autograder.engine.student.rpc_server import told
from autograder.engine.transport.serialization import ProtocolError, Reference, SerializationError, pack, unpack

MAX_TEXT = 1_000

# What is said of a process in which the grader's own code was changed.
UNPROVEN = "Exception: the process does not refuse what the exercise forbids"

# Packed requests, with what they were made of: a question sheet is asked of every student, so each of its requests is packed once.
_packed: dict[int, tuple[Request, bytes]] = {}

# Right answers as they arrive if they are right to the last bit, as many are: they need not be read to be known.
_expected: dict[bytes, Observation] = {}


class RemoteSubject:
    """Something of a student's, in the student's process.

    Args:
        conversation: with the student's process.
        reference: what that process knows the function or class by.
    """

    def __init__(self, conversation: StudentClient, reference: Reference) -> None:
        self._conversation = conversation
        self._reference = reference

    def observe(self, request: Request) -> Observation:
        """Do what the request asks and tell what happened."""
        return self.observe_groups([[request]])[0][0]

    def observe_groups(
        self, groups: Sequence[Sequence[Request]], *, forbidden: Sequence[str] = ()
    ) -> list[list[Observation]]:
        """Do what each request asks and tell what happened.

        Once a limit is broken nothing more is asked: its group, and those after it, are answered with that. What the same cell has asked
        before, for another aspect or for the visible part of the check, is answered as it was.

        Args:
            groups: what to do.
            forbidden: names of functions that are refused meanwhile.
        """
        known, number = self._conversation.known, self._reference.number
        keys = [[(number, packed_request(request)) for request in group] for group in groups]
        asked = set(known)
        fresh: list[dict[tuple[int, bytes], Request]] = []
        for group, names in zip(groups, keys, strict=True):
            if new := {key: request for request, key in zip(group, names, strict=True) if key not in asked}:
                fresh.append(new)
            asked.update(names)
        if fresh:
            for new, found in zip(fresh, self._ask([list(new.values()) for new in fresh], forbidden), strict=True):
                known |= dict(zip(new, found, strict=True))
        return [[known[key] for key in names] for names in keys]

    def _ask(self, groups: Sequence[Sequence[Request]], forbidden: Sequence[str]) -> list[list[Observation]]:
        sizes, exercise = [len(group) for group in groups], self._reference.name
        nonce, proof = self._conversation.refusal(exercise, forbidden) if forbidden else (b"", None)
        question = {"do": "observe", "of": self._reference, "exercise": exercise, "forbidden": list(forbidden)}
        question |= {"nonce": nonce, "sizes": sizes, "requests": []}
        packed = [packed_request(request) for group in groups for request in group]
        parts: dict[int, Any] = {}
        try:
            answer = self._conversation.ask(question, *packed, parts=parts, most=len(groups) + 1)
            instead = _malformed("it answered something else than was asked")
            raised = answer.get("raised")
            if isinstance(raised, dict) and raised.get("type") == KeyboardInterrupt.__name__:
                instead = Observation(error=KeyboardInterrupt.__name__)  # it ends even the answering
        except LimitError as error:
            instead = Observation(error=f"{_NAMES[error.kind]}: {error.what}")
        if proof is not None and parts and parts.pop(len(groups), None) != proof:
            parts, instead = {}, Observation(error=UNPROVEN)
        found = []
        for number, size in enumerate(sizes):
            part = parts.get(number)
            fits = isinstance(part, list) and len(part) == size
            found.append([self._observation(item) for item in part] if fits and part else [instead] * size)
        return found

    def _observation(self, data: Any) -> Observation:
        if isinstance(data, bytes) and data in _expected:
            return _expected[data]
        try:
            found = read(unpack(data, budget=self._conversation.items))
        except (ProtocolError, TypeError) as error:
            return _malformed(str(error))
        if found.error is not None and any(sign in found.error for sign in OUT_OF_MEMORY):
            return Observation(error=f"MemoryLimit: {memory_text(self._conversation.memory_mb)}")
        if found.error is not None and found.error.startswith(UsesReferenceError.__name__):
            # Where it lives there is nothing of the course's to be used: an exception of the student's goes by that name.
            return replace(found, error="Exception")
        return found


_NAMES = {
    "timeout": "TimeLimit",
    "memory": "MemoryLimit",
    "output flood": "OutputLimit",
    "kernel died": "ProcessEnded",
    "malformed answer": "MalformedAnswer",
}


def packed_request(request: Request) -> bytes:
    """Return a request as bytes."""
    known = _packed.get(id(request))
    if known is None or known[0] is not request:
        known = (
            request,
            pack({name: value for name, value in vars(request).items() if value is not None and value != ()}),
        )
        _packed[id(request)] = known
    return known[1]


def expect(answer: Observation) -> None:
    """Take note of a right answer: one that arrives as the same bytes is the very same object."""
    with suppress(SerializationError):
        _expected.setdefault(pack(told(answer)), answer)


def _malformed(why: str) -> Observation:
    return Observation(error=f"MalformedAnswer: {why[:MAX_TEXT]}")


def read(said: Any) -> Observation:
    """Return the observation that somebody told, of which every field is what it should be.

    Raises:
        TypeError: if one is not.
    """
    if not isinstance(said, dict):
        raise TypeError("an observation that is no mapping")
    outputs = said.get("outputs", {})
    if not isinstance(outputs, Mapping) or not all(isinstance(name, str) for name in outputs):
        raise TypeError("outputs without names")
    error = said.get("error")
    return Observation(
        outputs=dict(outputs),
        error=None if error is None else _text(error),
        unfinished=said.get("unfinished") is True,
        mutated=_texts(said.get("mutated", ())),
        attached=_texts(said.get("attached", ())),
        operations=_count(said.get("operations")),
        largest=_count(said.get("largest")),
        functions=_texts(said.get("functions", ())),
        lines=_count(said.get("lines")),
        containers=_texts(said.get("containers", ())),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("a text that is none")
    return value[:MAX_TEXT]


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, tuple) or len(value) > 10_000:
        raise TypeError("a list of texts that is none")
    return tuple(map(_text, value))


def _count(value: Any) -> int | None:
    if value is not None and (type(value) is not int or value < 0):
        raise TypeError("a number of operations that is none")
    return value
