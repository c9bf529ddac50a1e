"""A question gets an answer, or a broken limit that can be told; whatever comes in its place is a finding."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest
import torch

from autograder.engine.checker import rpc_client as module
from autograder.engine.checker.remote_objects import RemoteModule, RemoteObject, proxy_for
from autograder.engine.checker.rpc_client import CellLimits, LimitError
from autograder.engine.transport.serialization import Opaque, ProtocolError, Reference, pack, unpack

from .student import MAX_BYTES, Scripted, Student, conversation_with

BRIEF = CellLimits(0.3, 60, 4096, 1_000_000, 256)


def refer(item: Any) -> Reference:
    return Reference(1, "object", "it")


FORGED: dict[str, bytes] = {
    "nothing": b"",
    "no msgpack": b"\xc1\xff\xff",
    "a number": pack(3),
    "no value": pack({}),
    "an end": pack({"end": True}),
    "nothing there": pack({"missing": True}),
    "a text": pack({"value": "text"}),
    "none": pack({"value": None}),
    "a negative number": pack({"value": -(2**70)}),
    "a tensor": pack({"value": torch.full((3,), float("nan"))}),
    "a description": pack({"value": Opaque("x")}),
    "a proxy": pack({"value": object()}, refer),
    "a dictionary of proxies": pack({"value": {1: object()}}, refer),
    "an error": pack({"raised": {"type": "SystemExit", "bases": ["SystemExit"], "text": "bye"}}),
    "an error that is none": pack({"raised": 3}),
    "changes of another form": pack({"value": 1, "changed": [3]}),
    "changes to what is not there": pack({"value": 1, "changed": [[1, 2, 3], {"a": torch.ones(5)}]}),
    "a graph of nothing": pack({"value": 1, "graph": 5}),
    "a graph of outputs that are not there": pack({"value": torch.ones(2), "graph": 5, "attached": [7]}),
    "a graph by text": pack({"value": torch.ones(2), "graph": "x", "attached": ["0"]}),
    "a graph twice": pack({"value": torch.ones(2), "graph": 5, "attached": [0, 0]}),
    "a graph of whole numbers": pack({"value": torch.ones(2, dtype=torch.int64), "graph": 5, "attached": [0]}),
    "an output that is none": pack({"out": "x"}),
    "a thousand levels": b"\x91" * 1000,
}
QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "call": lambda it: it(torch.ones(3), [1], a={"b": 2}),
    "call with a gradient": lambda it: it(torch.ones(3, requires_grad=True)),
    "get": lambda it: it.attribute,
    "set": lambda it: setattr(it, "attribute", 3),
    "repr": repr,
    "str": str,
    "len": len,
    "bool": bool,
    "hash": hash,
    "int": int,
    "float": float,
    "iter": lambda it: next(iter(it)),
    "next": next,
    "contains": lambda it: 3 in it,
    "item": lambda it: it[0],
    "add": lambda it: it + 1,
    "equal": lambda it: it == it,
    "enter": lambda it: it.__enter__(),
    "close to": lambda it: torch.testing.assert_close(it(), torch.ones(2)),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS.keys())
def test_a_forged_answer_to_any_question_is_a_value_or_an_exception(question: Callable[[Any], Any]) -> None:
    for name, answer in FORGED.items():
        process = Scripted(*[answer] * 30)
        conversation = conversation_with(process)
        with contextlib.suppress(Exception):
            question(proxy_for(conversation, Reference(1, "object", "it")))
        assert process.asked, name
        assert conversation.broken is None or conversation.broken.kind in ("malformed answer", "kernel died"), name
        process.close()


def test_a_reference_of_any_kind_becomes_a_proxy() -> None:
    for kind in ("function", "class", "module", "iterator", "object", "nonsense", ""):
        process = Scripted(pack({"value": object()}, lambda item, kind=kind: Reference(5, kind, "x")))
        found = conversation_with(process).ask({"do": "look", "name": "x"})["value"]
        assert issubclass(type(found), RemoteObject)
        assert (type(found) is RemoteModule) == (kind == "module")
        process.close()


def test_forged_gradients_of_another_form_are_refused() -> None:
    forward = pack({"value": torch.ones(2), "graph": 1, "attached": [0]})
    for gradients in ([], [None] * 2, "text", 3, None, [torch.ones(4)], [torch.ones(2, 1)], ["x"], [Opaque("x")]):
        process = Scripted(forward, pack({"value": gradients}))
        it = proxy_for(conversation_with(process), Reference(1, "function", "f"))
        x = torch.ones(3, requires_grad=True)
        result = it(x)
        with pytest.raises(ProtocolError, match="gradient"):
            result.sum().backward()
        assert x.grad is None
        process.close()


def test_forged_changes_reach_no_argument_of_another_shape_or_kind() -> None:
    changed = [torch.ones(5), [9, 9], {"k": 1}], {"a": 7}
    process = Scripted(pack({"value": 1, "changed": list(changed)}))
    it = proxy_for(conversation_with(process), Reference(1, "function", "f"))
    tensor, number = torch.zeros(3), {"k": torch.zeros(2)}
    it(tensor, (1, 2), number)
    assert tensor.tolist() == [0, 0, 0]
    process.close()


def test_an_answer_longer_than_allowed_ends_the_process() -> None:
    process = Scripted()
    conversation = conversation_with(process)
    process._theirs.sendall((MAX_BYTES + 1).to_bytes(4, "little"))
    with pytest.raises(LimitError, match="limit") as caught:
        conversation.ask({"do": "look", "name": "x"})
    assert caught.value.kind == "malformed answer"
    assert not conversation.alive
    process.close()


def test_after_a_broken_limit_every_question_of_the_cell_breaks_the_same_until_the_next_cell(student: Student) -> None:
    student.begin(BRIEF)
    for _ in range(3):
        with pytest.raises(LimitError, match=r"stopped after 0\.3 s") as caught:
            student.run("while True: pass")
        assert caught.value.kind == "timeout"
    assert student.conversation.alive
    student.begin()
    assert student.define("f = lambda: 5")() == 5


@pytest.mark.parametrize(
    "stubborn",
    [
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        "import signal\nsignal.signal(signal.SIGINT, lambda *arguments: None)\nwhile True: pass",
    ],
)
def test_code_that_does_not_stop_when_told_is_killed(
    student: Student, stubborn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_SECONDS", 0.3)
    student.begin(BRIEF)
    with pytest.raises(LimitError) as caught:
        student.run(stubborn)
    assert caught.value.kind == "timeout"
    assert not student.conversation.alive
    assert student.process.wait() == -9


@pytest.mark.parametrize(
    ("source", "how"),
    [
        ("import os; os._exit(3)", "ended"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "ended"),
        ("import os; os.closerange(3, 100)", None),
    ],
)
def test_a_process_that_ends_is_told_with_how_it_ended(student: Student, source: str, how: str | None) -> None:
    with pytest.raises(LimitError, match=how) as caught:
        student.run(source)
    assert caught.value.kind == "kernel died"
    assert not student.conversation.alive


@pytest.fixture
def silent() -> Iterator[Scripted]:
    """A process that says nothing until it is interrupted."""
    stop = Event()

    def wait(question: Any) -> bytes:
        stop.wait()
        return b""

    process = Scripted(wait)
    process.interrupt = stop.set  # type: ignore[method-assign]
    yield process
    stop.set()
    process.close()


@pytest.mark.parametrize(("seconds", "memory", "kind"), [(0.0, 5000 * 2**20, "memory"), (1000.0, 0, "timeout")])
def test_memory_and_processor_time_are_watched_while_an_answer_is_waited_for(
    silent: Scripted, seconds: float, memory: int, kind: str
) -> None:
    conversation = conversation_with(silent)
    silent.cpu_seconds = silent.own_cpu_seconds = lambda: seconds  # type: ignore[method-assign]
    silent.memory = lambda: memory  # type: ignore[method-assign]
    with pytest.raises(LimitError) as caught:
        conversation.ask({"do": "look", "name": "x"})
    assert caught.value.kind == kind


def test_processor_time_of_children_is_counted_from_the_first_look_on(silent: Scripted) -> None:
    conversation = conversation_with(silent)
    used = iter([1000.0, 1300.0, 1599.0, 1601.0])
    silent.cpu_seconds = lambda: next(used)  # type: ignore[method-assign]
    with pytest.raises(LimitError, match="600 s of CPU time"):
        conversation.ask({"do": "look", "name": "x"})
    assert not list(used)


def test_an_interrupt_that_comes_too_late_is_not_taken_for_an_answer_to_the_next_question(student: Student) -> None:
    assert student.define("f = lambda: 'mine'")() == "mine"
    for _ in range(3):
        student.process.interrupt()
        assert student.define("f = lambda: 'mine'")() == "mine"


PACKED_FOR_EVER = """
class Endless:
    def __getattr__(self, name):
        while True: pass
f = lambda: Endless()
"""


def test_an_interrupt_while_an_answer_is_packed_ends_the_answer_and_nothing_else(student: Student) -> None:
    endless = student.define(PACKED_FOR_EVER)
    for _ in range(3):
        student.begin(BRIEF)
        with pytest.raises(LimitError, match=r"stopped after 0\.3 s"):
            endless()
    assert student.conversation.alive
    student.begin()
    assert student.define("f = lambda: 5")() == 5


def test_an_interrupt_never_cuts_a_message(student: Student) -> None:
    channel = student.process.channel
    channel.send(pack({"do": "run", "source": "while True: print('x' * 1_000_000)"}))
    sleep(0.5)  # by then it waits, in the middle of a message, for somebody to read on
    student.process.interrupt()
    said = [unpack(channel.receive(monotonic() + 20))]
    while "out" in said[-1]:
        said.append(unpack(channel.receive(monotonic() + 20)))
    assert said[-1] == {"value": False}
    assert student.define("f = lambda: 5")() == 5
