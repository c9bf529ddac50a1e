"""Serve requests inside the student's process: run cells, bind names to test cells, send observations.

Protects against:

- nothing by itself: student code shares the process and can change everything here

Does not protect against:

- forged answers: the checker (:mod:`autograder.engine.checker.rpc_client`) validates each message, and compares numbers with the reference
- forged counts of operations: code that takes the measuring apart can hide a loop or an in-place change
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch._C._autograd import (
    _disable_profiler,
    _disable_profiler_legacy,
    _enable_profiler,
    _enable_profiler_legacy,
    _prepare_profiler,
)
from torch._C._profiler import ProfilerActivity, ProfilerConfig, ProfilerState, _ExperimentalConfig

from autograder.checking.request import Observation, Request
from autograder.checking.subject import LocalSubject
from autograder.engine.student import thread_check
from autograder.engine.student.cell_shell import CellShell
from autograder.engine.student.definitions import run_for_definitions
from autograder.engine.transport.channel import Channel, ClosedError, Mailbox
from autograder.engine.transport.observations import observation_to_dict
from autograder.engine.transport.serialization import SerializationError, pack, unpack

# The profiler records no shapes, memory, stacks, operation counts or modules.
_QUIET = (False, False, False, False, False)
_EVERY_THREAD = ProfilerConfig(ProfilerState.KINETO, *_QUIET, _ExperimentalConfig(profile_all_threads=True))
_THIS_THREAD = ProfilerConfig(ProfilerState.CPU, *_QUIET, _ExperimentalConfig())


class RpcServer:
    """Serves requests one at a time until the client closes the connection.

    Args:
        channel: the connection.
        mailbox: receives the parts of an answer.
        shell: where cells run.
        max_bytes: the longest answer.
        called: collects the names of refused functions that are called.
    """

    def __init__(
        self,
        channel: Channel,
        mailbox: Mailbox,
        shell: CellShell,
        max_bytes: int,
        called: set[str] | None = None,
    ) -> None:
        self._channel = channel
        self._mailbox = mailbox
        self._shell = shell
        self._max_bytes = max_bytes
        self._called = set[str]() if called is None else called
        # The names of cells, by test cell: bound as they were when its visible questions were asked.
        self._names_at: dict[int, dict[str, Any]] = {}
        # What a test cell checks, by test cell: bound before its first question, so that code cannot exchange it between two.
        self._checked: dict[int, Any] = {}
        self._outputs = 0
        self._process = os.getpid()
        self._answering = self._sending = self._put_off = False

    def serve(self) -> None:
        """Answer requests until the connection closes."""
        signal.signal(signal.SIGINT, self._on_interrupt)
        try:
            while True:
                order = unpack(self._channel.receive(), trusted=True)
                try:
                    self._put_off, self._answering = False, True
                    answer = self._answer(order)
                    self._answering = False
                except KeyboardInterrupt:
                    # The interrupt came between two requests, but the client still expects a reply.
                    self._answering = False
                    answer = {"interrupted": True}
                if os.getpid() != self._process:
                    os._exit(0)  # a fork that a cell has made reaches the cell's end, too, and must not answer
                self._channel.send(pack(answer))
        except ClosedError:
            return

    def _on_interrupt(self, *_: object) -> None:
        """Interrupt the current request, but never within a message, so that every request gets one complete answer."""
        if self._sending:
            self._put_off = True
        elif self._answering:
            raise KeyboardInterrupt

    def _send_part(self, data: bytes) -> None:
        """Send a part of the answer."""
        if threading.current_thread() is not threading.main_thread():
            self._channel.send(data)  # an interrupt always hits the first thread
            return
        self._sending = True
        try:
            self._channel.send(data)
        finally:
            self._sending = False
        if self._put_off:
            self._put_off = False
            raise KeyboardInterrupt

    def _answer(self, order: dict[str, Any]) -> dict[str, Any]:
        self._outputs = 0
        try:
            handler: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, f"_do_{order['do']}")
            return handler(order)
        except BaseException as error:  # whatever student code raises ends its request only
            return {"interrupted": type(error) is KeyboardInterrupt}

    def _do_place(self, order: dict[str, Any]) -> dict[str, Any]:
        """Write a file to the notebook's folder."""
        path = Path.cwd() / order["name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(order["data"])
        return {"value": None}

    def _do_run(self, order: dict[str, Any]) -> dict[str, Any]:
        return {"value": self._shell.run(order["source"], self._emit)}

    def _do_define(self, order: dict[str, Any]) -> dict[str, Any]:
        """Run a cell for its definitions, skipping statements that fail because of refused functions."""
        run_for_definitions(self._shell, order["source"], complete=order["complete"])
        self._called.clear()
        return {"value": None}

    def _do_remember(self, order: dict[str, Any]) -> dict[str, Any]:
        self._names_at[order["cell"]] = dict(self._shell.user_ns)
        return {"value": None}

    def _do_recall(self, order: dict[str, Any]) -> dict[str, Any]:
        if names := self._names_at.get(order["cell"]):
            self._shell.user_ns.clear()
            self._shell.user_ns.update(names)
        return {"value": None}

    def _emit(self, output: dict[str, Any]) -> None:
        # Forks of this process would print into the middle of its own messages.
        if os.getpid() == self._process:
            self._outputs += 1
            self._send_part(pack({"out": output}, describe=True, max_bytes=self._max_bytes))

    def _do_look(self, order: dict[str, Any]) -> dict[str, Any]:
        defined = order["name"] in self._shell.user_ns
        if defined:
            self._checked[order["cell"]] = self._shell.user_ns[order["name"]]
        return {"value": defined}

    def _do_observe(self, order: dict[str, Any]) -> dict[str, Any]:
        subject, requests = LocalSubject(self._checked[order["cell"]]), iter(order["requests"])
        for number, size in enumerate(order["sizes"]):
            group = [Request(**next(requests)) for _ in range(size)]
            observed = _observe_group(subject, group, self._called, backward=order["backward"])
            answers = [self._pack_observation(item) for item in observed]
            # Send group by group, so that finished answers survive a later failure.
            self._post_part(pack({"part": number, "after": self._outputs, "answers": answers}))
        return {"value": None}

    def _post_part(self, part: bytes) -> None:
        if not self._mailbox.put(part):
            self._send_part(part)

    def _pack_observation(self, observed: Observation) -> bytes:
        try:
            return pack(observation_to_dict(observed), describe=True, max_bytes=self._max_bytes)
        except SerializationError as error:  # too many items, or too deep: only this answer is lost
            return pack(observation_to_dict(Observation(error=f"MalformedAnswer: {error}")))


def _observe_group(
    subject: LocalSubject, group: Sequence[Request], called: set[str], *, backward: bool
) -> list[Observation]:
    """Observe requests, and record in the first observation whether autograd's engine ran, which cannot be refused.

    Starting and stopping the profiler takes longer than profiling, so it runs once per group. Profiling all threads takes several times as
    long as profiling one, and one is enough for a process that has never had another thread.
    """
    if not backward:
        return [subject.observe_refused(request, called) for request in group]
    operators: set[str] = set()
    alone = thread_check.is_single_threaded()
    with _profile_this_thread(operators) if alone else _profile_all_threads(operators):
        observations = [subject.observe_refused(request, called) for request in group]
    if alone and not thread_check.is_single_threaded():
        # The process has just started its first other thread, which was not profiled: run the requests again.
        with _profile_all_threads(operators):
            for request in group:
                subject.observe(request)
    if observations and any(name.startswith("autograd::engine") for name in operators):
        observations[0] = replace(observations[0], functions=(*observations[0].functions, "backward"))
    return observations


@contextmanager
def _profile_all_threads(operators: set[str]) -> Iterator[None]:
    _prepare_profiler(_EVERY_THREAD, {ProfilerActivity.CPU})
    _enable_profiler(_EVERY_THREAD, {ProfilerActivity.CPU})
    try:
        yield
    finally:
        operators |= {event.name() for event in _disable_profiler().events()}


@contextmanager
def _profile_this_thread(operators: set[str]) -> Iterator[None]:
    _enable_profiler_legacy(_THIS_THREAD)
    try:
        yield
    finally:
        operators |= {event.name() for thread in _disable_profiler_legacy() for event in thread}
