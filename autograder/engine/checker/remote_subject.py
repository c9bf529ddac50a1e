"""Observe a student's function or class in its own process, and validate each observation's form.

An answer with the same bytes as the reference's answer is correct and is neither decoded nor compared. Between a third and three quarters
of five students' answers were bit-identical. No test is sent twice for one test cell: the visible and the hidden sheet share the answers to
the visible tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from autograder.checking.request import OUT_OF_MEMORY, Observation, Request
from autograder.checking.subject import UsesReferenceError
from autograder.engine.checker.rpc_client import LimitError, StudentClient, memory_text
from autograder.engine.transport.msgpack_scan import ProtocolError
from autograder.engine.transport.observations import MAX_TEXT, observation_from_dict, observation_to_dict
from autograder.engine.transport.serialization import SerializationError, pack, unpack

# Serialized requests, with the request objects: every student answers the same sheet, so each request is serialized once.
_packed: dict[int, tuple[Request, bytes]] = {}

# Right answers by their bytes: many answers match to the last bit and need no parsing.
_expected: dict[bytes, Observation] = {}


class RemoteSubject:
    """A student's function or class in the student's process.

    Args:
        conversation: with the student's process.
        cell: the index of the test cell to which that process has bound the function or class.
        name: its name.
    """

    def __init__(self, conversation: StudentClient, cell: int, name: str) -> None:
        self._conversation = conversation
        self._cell = cell
        self._name = name

    def observe(self, request: Request) -> Observation:
        """Carry out one request and return the observation."""
        return self.observe_groups([[request]])[0][0]

    def observe_groups(
        self, groups: Sequence[Sequence[Request]], *, forbidden: Sequence[str] = ()
    ) -> list[list[Observation]]:
        """Carry out groups of requests and return their observations.

        After a broken limit no request is sent: its group and all later groups get that error. A request that the same cell has sent before
        (for another row, or for the visible part of the check) gets its earlier answer.

        Args:
            groups: the requests.
            forbidden: names of functions that the process must refuse.

        Raises:
            RuntimeError: if the process allows one of them.
        """
        cached = self._conversation.known
        keys = [list(map(pack_request, group)) for group in groups]
        requested = set(cached)
        fresh: list[dict[bytes, Request]] = []
        for group, names in zip(groups, keys, strict=True):
            if new := {key: request for request, key in zip(group, names, strict=True) if key not in requested}:
                fresh.append(new)
            requested.update(names)
        if fresh:
            for new, observations in zip(
                fresh, self._send_groups([list(new.values()) for new in fresh], forbidden), strict=True
            ):
                cached |= dict(zip(new, observations, strict=True))
        return [[cached[key] for key in names] for names in keys]

    def _send_groups(self, groups: Sequence[Sequence[Request]], forbidden: Sequence[str]) -> list[list[Observation]]:
        if not self._conversation.forbidden.issuperset(forbidden):
            raise RuntimeError(f"the process allows what {self._name} forbids")
        sizes = [len(group) for group in groups]
        question = {"do": "observe", "cell": self._cell, "backward": "backward" in forbidden}
        question |= {"sizes": sizes, "requests": []}
        packed = [pack_request(request) for group in groups for request in group]
        parts: dict[int, Any] = {}
        try:
            answer = self._conversation.ask(question, *packed, parts=parts, most=len(groups))
            instead = _malformed_answer("its answer does not match the request")
            if answer.get("interrupted") is True:
                instead = Observation(error=KeyboardInterrupt.__name__)  # the interrupt ended the reply, too
        except LimitError as error:
            instead = Observation(error=f"{_NAMES[error.kind]}: {error.message}")
        observations = []
        for number, size in enumerate(sizes):
            part = parts.get(number)
            fits = isinstance(part, list) and len(part) == size
            observations.append([self._parse_observation(item) for item in part] if fits and part else [instead] * size)
        return observations

    def _parse_observation(self, data: Any) -> Observation:
        if isinstance(data, bytes) and data in _expected:
            return _expected[data]
        try:
            observation = observation_from_dict(unpack(data, budget=self._conversation.items))
        except (ProtocolError, TypeError) as error:
            return _malformed_answer(str(error))
        if observation.error is not None and any(sign in observation.error for sign in OUT_OF_MEMORY):
            return Observation(error=f"MemoryLimit: {memory_text(self._conversation.memory_mb)}")
        if observation.error is not None and observation.error.startswith(UsesReferenceError.__name__):
            # The reference does not exist in that process, so the student's code must have made an exception of this name.
            return replace(observation, error="Exception")
        return observation


_NAMES = {
    "timeout": "TimeLimit",
    "memory": "MemoryLimit",
    "output flood": "OutputLimit",
    "kernel died": "ProcessEnded",
    "malformed answer": "MalformedAnswer",
}


def pack_request(request: Request) -> bytes:
    """Serialise a request, with a cache."""
    entry = _packed.get(id(request))
    if entry is None or entry[0] is not request:
        entry = (
            request,
            pack({name: value for name, value in vars(request).items() if value is not None and value != ()}),
        )
        _packed[id(request)] = entry
    return entry[1]


def register_answer(answer: Observation) -> None:
    """Register a right answer, so that equal bytes are mapped to this object without parsing."""
    with suppress(SerializationError):
        _expected.setdefault(pack(observation_to_dict(answer)), answer)


def _malformed_answer(why: str) -> Observation:
    return Observation(error=f"MalformedAnswer: {why[:MAX_TEXT]}")
