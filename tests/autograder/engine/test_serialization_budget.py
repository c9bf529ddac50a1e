"""Items cost who reads them more than their bytes: there is a cap for one answer and for all answers of a cell."""

from __future__ import annotations

import pytest

from autograder.checking.draw import Case
from autograder.engine.checker.remote_subject import RemoteSubject
from autograder.engine.transport.msgpack_scan import ItemBudget, ProtocolError
from autograder.engine.transport.serialization import pack, unpack

from .student import Scripted, conversation_with


def part(items: int) -> bytes:
    return pack({"part": 0, "after": 0, "answers": [pack({"outputs": {"output": [0] * items}})]})


def test_what_is_left_of_the_items_is_shared_by_all_messages() -> None:
    budget = ItemBudget(2500)
    for _ in range(2):
        assert len(unpack(pack([0] * 1000), budget=budget)) == 1000
    with pytest.raises(ProtocolError, match="more than 2500 items in all"):
        unpack(pack([0] * 1000), budget=budget)
    with pytest.raises(ProtocolError, match="more than 2500 items in all"):
        unpack(pack([1]), budget=budget)


def test_two_million_items_are_refused_in_words_that_name_the_limit() -> None:
    million = b"\x92" + b"\x00" + b"\xdd" + (2_000_000).to_bytes(4, "big") + b"\x00" * 2_000_000
    with pytest.raises(ProtocolError, match="more than 100000 items"):
        unpack(million)


def test_the_items_of_all_answers_to_a_cell_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Scripted(*[[part(900), pack({"value": None})]] * 4)
    conversation = conversation_with(process)
    conversation.items = ItemBudget(2500)
    subject = RemoteSubject(conversation, 0, "f")
    errors = [subject.observe(Case({"x": index}).request()).error or "" for index in range(4)]
    assert errors[:2] == ["", ""]
    assert all("more than 2500 items in all" in error for error in errors[2:])
    process.close()
