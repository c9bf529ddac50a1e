"""A question gets an answer, or a broken limit that can be told; whatever comes in its place is a finding."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event
from time import monotonic, sleep
from typing import Any

import pytest

from autograder.checking.draw import Case
from autograder.engine.checker import rpc_client as module
from autograder.engine.checker.rpc_client import CellLimits, LimitError
from autograder.engine.transport.serialization import pack, unpack

from .student import MAX_BYTES, Scripted, Student, conversation_with

BRIEF = CellLimits(0.3, 60, 4096, 1_000_000, 256)


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
    assert student.result("f = lambda: 5") == 5


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
    silent.uses_more_memory_than = lambda limit: memory > limit  # type: ignore[method-assign]
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
    assert student.result("f = lambda: 'mine'") == "mine"
    for _ in range(3):
        student.process.interrupt()
        assert student.result("f = lambda: 'mine'") == "mine"


PACKED_FOR_EVER = """
class Endless:
    @property
    def __class__(self):
        while True: pass
f = lambda: Endless()
"""


def test_an_interrupt_while_an_answer_is_packed_ends_the_answer_and_nothing_else(student: Student) -> None:
    endless = student.define(PACKED_FOR_EVER)
    for _ in range(3):
        student.begin(BRIEF)
        assert "stopped after 0.3 s" in (endless.observe(Case({}).request()).error or "")
    assert student.conversation.alive
    student.begin()
    assert student.result("f = lambda: 5") == 5


def test_an_interrupt_never_cuts_a_message(student: Student) -> None:
    channel = student.process.channel
    channel.send(pack({"do": "run", "source": "while True: print('x' * 1_000_000)"}))
    sleep(0.5)  # by then it waits, in the middle of a message, for somebody to read on
    student.process.interrupt()
    said = [unpack(channel.receive(monotonic() + 20))]
    while "out" in said[-1]:
        said.append(unpack(channel.receive(monotonic() + 20)))
    assert said[-1] == {"value": False}
    assert student.result("f = lambda: 5") == 5
