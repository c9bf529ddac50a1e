"""Messages arrive whole, in order and in time, or the reader is told why not."""

from __future__ import annotations

import os
import socket
import struct
import threading
import tracemalloc
from collections.abc import Iterator
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.engine.transport.channel import (
    Channel,
    ClosedError,
    DeadlineError,
    Mailbox,
    MessageTooLongError,
    receive_with_descriptors,
    send_with_descriptors,
)

from .values import examples

SOON = 0.05
# Longer than what a socket takes at once, so that a sender has to wait in the middle of its message.
LONG = 1_000_000


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket]]:
    """A channel, and the bare socket at its other end."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours, 10**7)
    yield channel, theirs
    channel.close()
    theirs.close()


def in_thread(work: object, *arguments: object) -> threading.Thread:
    """Do something beside."""
    thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


@examples
@given(st.lists(st.lists(st.binary(max_size=50), max_size=3), max_size=5))
def test_messages_arrive_in_order_and_whole(messages: list[list[bytes]]) -> None:
    ours, theirs = map(Channel, socket.socketpair())
    for parts in messages:
        ours.send(*parts)
    assert [theirs.receive() for _ in messages] == [b"".join(parts) for parts in messages]
    ours.close()
    theirs.close()


@pytest.mark.parametrize("deadline", [None, 60.0])
def test_a_message_longer_than_any_buffer_arrives(ends: tuple[Channel, socket.socket], deadline: float | None) -> None:
    channel, other = ends
    content = os.urandom(2**16) * 100
    until = None if deadline is None else monotonic() + deadline
    sender = in_thread(lambda: Channel(other).send(content, deadline=until))
    assert channel.receive(until) == content
    sender.join()


def test_an_announced_length_past_the_limit_is_refused_before_it_comes(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    other.sendall(struct.pack("<I", 10**7 + 1))
    with pytest.raises(MessageTooLongError):
        channel.receive(monotonic() + 60)


def test_a_length_that_is_only_announced_costs_nothing(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    other.sendall(struct.pack("<I", 10**7) + b"x")
    tracemalloc.start()
    with pytest.raises(DeadlineError):
        channel.receive(monotonic() + SOON)
    assert tracemalloc.get_traced_memory()[1] < 2**21  # the piece that is looked for at once
    tracemalloc.stop()


class Dribbling:
    """A socket out of which a message comes byte by byte."""

    def __init__(self, content: bytes) -> None:
        self._bytes = iter(content)

    def recv(self, length: int) -> bytes:
        return bytes([next(self._bytes)])

    def fileno(self) -> int:
        return 0


def test_a_message_that_dribbles_in_arrives_and_takes_no_more_room_than_another() -> None:
    content = os.urandom(200_000)
    channel = Channel(Dribbling(struct.pack("<I", len(content)) + content))  # type: ignore[arg-type]
    tracemalloc.start()
    assert channel.receive() == content
    assert tracemalloc.get_traced_memory()[1] < 4 * len(content)
    tracemalloc.stop()


@pytest.mark.parametrize("begun", [b"", b"\x05\x00", struct.pack("<I", 5), struct.pack("<I", 5) + b"abc"])
def test_a_message_that_does_not_come_in_time_is_late_wherever_it_stops(
    ends: tuple[Channel, socket.socket], begun: bytes
) -> None:
    channel, other = ends
    other.sendall(begun)
    with pytest.raises(DeadlineError):
        channel.receive(monotonic() + SOON)


@pytest.mark.parametrize("begun", [b"", b"\x05\x00", struct.pack("<I", 5), struct.pack("<I", 5) + b"abc"])
def test_a_connection_that_is_closed_in_the_middle_is_closed(ends: tuple[Channel, socket.socket], begun: bytes) -> None:
    channel, other = ends
    other.sendall(begun)
    other.close()
    with pytest.raises(ClosedError):
        channel.receive(monotonic() + 60)
    with pytest.raises(ClosedError):
        channel.send(b"x" * 10**6, deadline=monotonic() + 60)


def test_an_other_side_that_takes_nothing_makes_the_sender_late(ends: tuple[Channel, socket.socket]) -> None:
    channel, _ = ends
    with pytest.raises(DeadlineError):
        channel.send(b"x" * 10**7, deadline=monotonic() + SOON)


def test_senders_at_the_same_moment_do_not_get_into_each_others_messages(ends: tuple[Channel, socket.socket]) -> None:
    channel, other = ends
    sender = Channel(other)
    threads = [in_thread(lambda i=i: [sender.send(bytes([i]) * LONG) for _ in range(3)]) for i in range(6)]
    found = [channel.receive(monotonic() + 60) for _ in range(18)]
    for thread in threads:
        thread.join()
    assert all(item == item[:1] * LONG for item in found)
    assert sorted(item[0] for item in found) == sorted(list(range(6)) * 3)


def test_a_short_message_brings_open_files_along() -> None:
    ours, theirs = socket.socketpair()
    reading, writing = os.pipe()
    send_with_descriptors(ours, b"here it is", [writing])
    os.close(writing)
    data, descriptors = receive_with_descriptors(theirs, 1)
    os.write(descriptors[0], b"through it")
    os.close(descriptors[0])
    assert (data, os.read(reading, 100)) == (b"here it is", b"through it")
    ours.close()
    with pytest.raises(ClosedError):
        receive_with_descriptors(theirs, 1)
    theirs.close()
    os.close(reading)


@pytest.fixture
def trays() -> Iterator[tuple[Mailbox, Mailbox]]:
    """Both ends of a connection for what lies about."""
    a, b = (Mailbox(end, 2**20) for end in socket.socketpair(type=socket.SOCK_SEQPACKET))
    yield a, b
    a.close()
    b.close()


def test_what_was_laid_down_lies_there_until_it_is_taken(trays: tuple[Mailbox, Mailbox]) -> None:
    here, there = trays
    assert there.take() == []
    assert all(here.put(data) for data in (b"one", b"x" * 2**16, b"three"))
    assert there.take() == [b"one", b"x" * 2**16, b"three"]
    assert there.take() == []


def test_what_is_too_long_or_one_too_many_is_not_laid_down_and_spoils_nothing(trays: tuple[Mailbox, Mailbox]) -> None:
    here, there = trays
    assert not here.put(b"x" * (2**16 + 1))
    put = 0
    while here.put(b"y" * 5_000):
        put += 1
    assert there.take() == [b"y" * 5_000] * put
    assert here.put(b"z")
    assert there.take() == [b"z"]


def test_what_somebody_laid_down_who_has_gone_is_there(trays: tuple[Mailbox, Mailbox]) -> None:
    here, there = trays
    here.put(b"last words")
    here.close()
    assert there.take() == [b"last words"]
    assert there.take() == []
    assert not there.put(b"to nobody")


def test_who_lays_down_without_end_is_not_waited_for() -> None:
    here, there = socket.socketpair(type=socket.SOCK_SEQPACKET)
    mailbox = Mailbox(there, 10_000)
    for _ in range(11):
        here.send(b"x" * 1_000)
    with pytest.raises(MessageTooLongError):
        mailbox.take()
    here.close()
    mailbox.close()
