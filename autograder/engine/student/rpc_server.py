"""Serve remote calls inside the student's process: run cells, look up names, call functions, report observations.

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
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch._C._autograd import (
    _disable_profiler,
    _disable_profiler_legacy,
    _enable_profiler,
    _enable_profiler_legacy,
    _prepare_profiler,
)
from torch._C._profiler import ProfilerActivity, ProfilerConfig, ProfilerState, _ExperimentalConfig

from autograder.checking.request import OUT_OF_MEMORY, Observation, Request, tensors_in
from autograder.checking.subject import LocalSubject
from autograder.engine.shell.cell_shell import CellShell
from autograder.engine.student import thread_check
from autograder.engine.student.definitions import run_for_definitions
from autograder.engine.transport.channel import Channel, ClosedError, Mailbox
from autograder.engine.transport.observations import observation_to_dict
from autograder.engine.transport.serialization import Opaque, Reference, SerializationError, pack, unpack

MAX_TEXT = 4_000

# The profiler records no shapes, memory, stacks, operation counts or modules.
_QUIET = (False, False, False, False, False)
_EVERY_THREAD = ProfilerConfig(ProfilerState.KINETO, *_QUIET, _ExperimentalConfig(profile_all_threads=True))
_THIS_THREAD = ProfilerConfig(ProfilerState.CPU, *_QUIET, _ExperimentalConfig())


class RpcServer:
    """Serves requests one at a time, until the other side closes the connection.

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
        self._kept: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._graphs: dict[int, list[Tensor]] = {}
        self._next = self._outputs = 0
        self._process = os.getpid()
        self._answering = self._sending = self._put_off = False

    def serve(self) -> None:
        """Answer requests until the connection closes."""
        signal.signal(signal.SIGINT, self._interrupted)
        try:
            while True:
                question = unpack(self._channel.receive(), self._resolve, trusted=True)
                try:
                    self._put_off, self._answering = False, True
                    data = self._packed(self._answer(question))
                    self._answering = False
                except KeyboardInterrupt:
                    # The interrupt came between two requests, but the client still expects a reply.
                    self._answering = False
                    data = pack({"raised": _describe_exception(KeyboardInterrupt())})
                self._channel.send(data)
        except ClosedError:
            return

    def _interrupted(self, *_: object) -> None:
        """Interrupt the current request, but not in the middle of a message: every request gets exactly one complete answer."""
        if self._sending:
            self._put_off = True
        elif self._answering:
            raise KeyboardInterrupt

    def _send_part(self, data: bytes) -> None:
        """Send a message before the answer."""
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

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        self._outputs = 0
        try:
            handler: Callable[[dict[str, Any]], dict[str, Any]] = getattr(self, f"_do_{question['do']}")
            return handler(question)
        except BaseException as error:  # the exception of student code is the answer
            return {"raised": _describe_exception(error)}

    def _packed(self, answer: dict[str, Any]) -> bytes:
        if os.getpid() != self._process:
            os._exit(0)  # a fork that a cell has made reaches the cell's end, too, and must not answer
        try:
            data = pack(answer, self._stand_in, self._max_bytes)
        except Exception as error:  # inspecting a student's object may raise anything
            data = pack({"raised": _describe_exception(error)})
        if len(data) > self._max_bytes:
            message = f"the result takes {len(data) / 2**20:.0f} MiB, which is too much"
            data = pack({"raised": _describe_exception(SerializationError(message))})
        return data

    def _resolve(self, reference: Reference) -> Any:
        return self._kept[reference.number]

    def _stand_in(self, value: Any) -> Reference | Opaque:
        """Keep an object that cannot cross, and return a reference with its number; the same object keeps its number."""
        number = self._numbers.get(id(value))
        if number is None:
            self._next += 1
            number = self._numbers[id(value)] = self._next
            self._kept[number] = value
        name = getattr(value, "__name__", None)
        return Reference(number, _kind(value), name if type(name) is str else type(value).__name__)

    def _do_place(self, question: dict[str, Any]) -> dict[str, Any]:
        """Write a file beside the notebook."""
        path = Path.cwd() / question["name"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(question["data"])
        return {"value": None}

    def _do_run(self, question: dict[str, Any]) -> dict[str, Any]:
        return {"value": self._shell.run(question["source"], self._emit)}

    def _do_define(self, question: dict[str, Any]) -> dict[str, Any]:
        """Run a cell for what it defines, where functions are refused that it may call to compare itself with them."""
        run_for_definitions(self._shell, question["source"], complete=question["complete"])
        self._called.clear()
        return {"value": None}

    def _do_remember(self, question: dict[str, Any]) -> dict[str, Any]:
        self._names_at[question["cell"]] = dict(self._shell.user_ns)
        return {"value": None}

    def _do_recall(self, question: dict[str, Any]) -> dict[str, Any]:
        if names := self._names_at.get(question["cell"]):
            self._shell.user_ns.clear()
            self._shell.user_ns.update(names)
        return {"value": None}

    def _emit(self, output: dict[str, Any]) -> None:
        # Forks of this process would print into the middle of its own messages.
        if os.getpid() == self._process:
            self._outputs += 1
            self._send_part(pack({"out": output}, _described, self._max_bytes))

    def _do_look(self, question: dict[str, Any]) -> dict[str, Any]:
        name = question["name"]
        if name not in self._shell.user_ns:
            return {"missing": True}
        value = self._shell.user_ns[name]
        return {"value": self._stand_in(value) if callable(value) else value}

    def _do_forget(self, question: dict[str, Any]) -> dict[str, Any]:
        del self._shell.user_ns[question["name"]]
        return {"value": None}

    def _do_bind(self, question: dict[str, Any]) -> dict[str, Any]:
        self._shell.user_ns[question["name"]] = question["value"]
        return {"value": None}

    def _do_call(self, question: dict[str, Any]) -> dict[str, Any]:
        arguments, named = question["args"], question["kwargs"]
        tensors = tensors_in((arguments, named))
        leaves = [tensors[i] for i in question["wrt"]]
        for leaf in leaves:
            leaf.requires_grad_()
        # A leaf that requires a gradient cannot be changed in place; its product with 1 can, like a layer's output.
        arguments, named = _replace((arguments, named), {id(leaf): leaf * 1 for leaf in leaves})
        before = pack([arguments, named], self._stand_in, self._max_bytes)
        with torch.set_grad_enabled(question["grad"]):
            result = question["of"](*arguments, **named)
        answer: dict[str, Any] = {"value": result, "graph": None, "attached": []}
        if question["grad"]:
            outputs = tensors_in(result)
            attached = [i for i, output in enumerate(outputs) if output.requires_grad]
            if attached:
                self._next += 1
                self._graphs[self._next] = [*leaves, *(outputs[i] for i in attached)]
                answer |= {"graph": self._next, "attached": attached}
        after = pack([arguments, named], self._stand_in, self._max_bytes)
        answer["changed"] = [arguments, named] if after != before else None
        return answer

    def _do_backward(self, question: dict[str, Any]) -> dict[str, Any]:
        tensors, count = self._graphs[question["graph"]], question["wrt"]
        leaves, outputs = tensors[:count], tensors[count:]
        for leaf in leaves:
            leaf.grad = None
        torch.autograd.backward(outputs, question["grads"], retain_graph=True)
        return {"value": [leaf.grad for leaf in leaves]}

    def _do_get(self, question: dict[str, Any]) -> dict[str, Any]:
        value = getattr(question["of"], question["name"])
        if isinstance(value, Tensor):
            return {"value": value, "grad": value.grad, "requires_grad": value.requires_grad}
        return {"value": self._stand_in(value) if callable(value) else value}

    def _do_set(self, question: dict[str, Any]) -> dict[str, Any]:
        setattr(question["of"], question["name"], question["value"])
        return {"value": None}

    def _do_special(self, question: dict[str, Any]) -> dict[str, Any]:
        """Apply an operator or a built-in function: ``len``, ``repr``, ``a + b``, ``a[i]``."""
        return {"value": _SPECIAL[question["name"]](question["of"], *question["args"])}

    def _do_next(self, question: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"value": next(question["of"])}
        except StopIteration:
            return {"end": True}

    def _do_observe(self, question: dict[str, Any]) -> dict[str, Any]:
        subject, requests = LocalSubject(question["of"]), iter(question["requests"])
        for number, size in enumerate(question["sizes"]):
            group = [Request(**next(requests)) for _ in range(size)]
            observed = _observed(subject, group, self._called, backward=question["backward"])
            answers = [self._packed_observation(item) for item in observed]
            # Send group by group, so that finished answers survive a later failure.
            self._lay_down(pack({"part": number, "after": self._outputs, "answers": answers}, None, self._max_bytes))
        return {"value": None}

    def _lay_down(self, part: bytes) -> None:
        if not self._mailbox.put(part):
            self._send_part(part)

    def _packed_observation(self, observed: Observation) -> bytes:
        try:
            return pack(observation_to_dict(observed), _described, self._max_bytes)
        except SerializationError as error:  # too many items, or too deep: only this answer is lost
            return pack(observation_to_dict(Observation(error=f"MalformedAnswer: {error}")))

    def _do_drop(self, question: dict[str, Any]) -> dict[str, Any]:
        for number in question["numbers"]:
            self._numbers.pop(id(self._kept.pop(number, None)), None)
        return {"value": None}


_SPECIAL: dict[str, Callable[..., Any]] = {
    "repr": repr, "str": str, "len": len, "bool": bool, "hash": hash, "int": int, "float": float, "iter": iter,
    "dir": dir, "contains": lambda a, b: b in a, "getitem": lambda a, key: a[key],
    "setitem": lambda a, key, value: a.__setitem__(key, value), "delitem": lambda a, key: a.__delitem__(key),
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "add": lambda a, b: a + b, "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b, "truediv": lambda a, b: a / b, "matmul": lambda a, b: a @ b, "neg": lambda a: -a,
    "radd": lambda a, b: b + a, "rsub": lambda a, b: b - a, "rmul": lambda a, b: b * a, "rtruediv": lambda a, b: b / a,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "pow": lambda a, b: a**b, "abs": abs,
    "enter": lambda a: a.__enter__(), "exit": lambda a: a.__exit__(None, None, None),
}  # fmt: skip


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return "class"
    if isinstance(value, nn.Module):
        return "module"
    if isinstance(value, (types.FunctionType, types.MethodType, types.BuiltinFunctionType)):
        return "function"
    return "iterator" if isinstance(value, (types.GeneratorType, Iterator)) else "object"


def _described(value: Any) -> Opaque:
    return Opaque(f"a {type(value).__name__}")


def _observed(
    subject: LocalSubject, group: Sequence[Request], called: set[str], *, backward: bool
) -> list[Observation]:
    """Observe requests; the first observation records whether autograd's engine ran, which is no operator and cannot be refused.

    Starting and stopping the profiler takes longer than profiling, so it runs once per group. Profiling all threads takes several times as
    long as profiling one, and one is enough for a process that has never had another thread.
    """
    if not backward:
        return [subject.observe_refused(request, called) for request in group]
    operators: set[str] = set()
    alone = thread_check.is_single_threaded()
    with _in_this_thread(operators) if alone else _in_every_thread(operators):
        observations = [subject.observe_refused(request, called) for request in group]
    if alone and not thread_check.is_single_threaded():
        # The process has just started its first other thread, which was not profiled: run the requests again.
        with _in_every_thread(operators):
            for request in group:
                subject.observe(request)
    if observations and any(name.startswith("autograd::engine") for name in operators):
        observations[0] = replace(observations[0], functions=(*observations[0].functions, "backward"))
    return observations


@contextmanager
def _in_every_thread(operators: set[str]) -> Iterator[None]:
    _prepare_profiler(_EVERY_THREAD, {ProfilerActivity.CPU})
    _enable_profiler(_EVERY_THREAD, {ProfilerActivity.CPU})
    try:
        yield
    finally:
        operators |= {event.name() for event in _disable_profiler().events()}


@contextmanager
def _in_this_thread(operators: set[str]) -> Iterator[None]:
    _enable_profiler_legacy(_THIS_THREAD)
    try:
        yield
    finally:
        operators |= {event.name() for thread in _disable_profiler_legacy() for event in thread}


def _describe_exception(error: BaseException) -> dict[str, Any]:
    """Describe an exception: its type, the built-in types it derives from, its text, and where it was raised."""
    try:
        text = str(error)[:MAX_TEXT]
    except BaseException:  # str() runs student code, which may raise anything
        text = "(its text cannot be shown)"
    return {
        "type": type(error).__name__,
        "bases": [base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins"],
        "text": text,
        "where": _frames(error),
        "memory": _is_about_memory(error, text),
    }


def _is_about_memory(error: BaseException, text: str) -> bool:
    return isinstance(error, MemoryError) or any(sign in text for sign in OUT_OF_MEMORY)


def _frames(error: BaseException) -> list[str]:
    """Return the lines of a student's cells in an exception's traceback, innermost last."""
    lines: list[str] = []
    trace = error.__traceback__
    while trace is not None and len(lines) < 20:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith("<ipython-input"):
            lines.append(f"{code.co_name}, line {trace.tb_lineno}")
        trace = trace.tb_next
    return lines


def _replace(value: Any, by: dict[int, Tensor]) -> Any:
    if isinstance(value, Tensor):
        return by.get(id(value), value)
    if isinstance(value, dict):
        return {key: _replace(item, by) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(_replace(item, by) for item in value)
    return value
