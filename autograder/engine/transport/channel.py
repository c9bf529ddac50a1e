"""Send length-prefixed messages over a connected socket, with limits on length and time.

Parts of an answer go to a mailbox (:class:`Mailbox`). A student's process answers a question group by group, so that earlier groups count
whatever happens to the rest. Sending each group to a waiting reader would wake that process up to 150 times per submission. On a second
socket the groups wait, and survive their writer, until the message that ends the answer arrives.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from time import monotonic

_LENGTH = struct.Struct("<I")
_PIECE, _SHORT = 2**20, 2**14
# The longest message in a mailbox. Longer messages are rare.
_ON_A_TRAY = 2**16


class ClosedError(Exception):
    """The other side has closed the connection, or its process has ended."""


class DeadlineError(Exception):
    """The other side did not answer in time."""


class MessageTooLongError(Exception):
    """The other side announced a message that exceeds the length limit."""


class Channel:
    """One end of a message connection.

    Args:
        connection: a connected stream socket; the channel closes it.
        max_bytes: the longest message that is accepted.
    """

    def __init__(self, connection: socket.socket, max_bytes: int = 2**28) -> None:
        self._socket = connection
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._there = bytearray()

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._socket.fileno()

    def send(self, *parts: bytes, deadline: float | None = None) -> None:
        """Send one message, the concatenation of the parts.

        Args:
            parts: the message.
            deadline: when to give up, on the clock of ``time.monotonic``.

        Raises:
            ClosedError: if the other side has closed the connection.
            DeadlineError: if the other side does not read it in time.
        """
        data = memoryview(b"".join((_LENGTH.pack(sum(map(len, parts))), *parts)))
        with self._lock:
            try:
                if deadline is None:
                    self._socket.sendall(data)
                    return
                while data:
                    self._wait_for_event(select.POLLOUT, deadline)
                    data = data[self._socket.send(data[:_PIECE], socket.MSG_DONTWAIT) :]
            except BlockingIOError:
                raise DeadlineError from None
            except OSError as error:
                raise ClosedError from error

    def receive(self, deadline: float | None = None, watch: Callable[[], None] | None = None) -> bytes:
        """Return the next message.

        Args:
            deadline: when to give up, on the clock of ``time.monotonic``.
            watch: called every quarter of a second while waiting; may raise.

        Raises:
            ClosedError: if the other side has closed the connection.
            DeadlineError: if the message does not arrive in time.
            MessageTooLongError: if it exceeds the limit; the connection is unusable afterwards.
        """
        (length,) = _LENGTH.unpack(self._receive_exactly(_LENGTH.size, deadline, watch))
        if length > self._max_bytes:
            raise MessageTooLongError
        return self._receive_exactly(length, deadline, watch)

    def _receive_exactly(self, length: int, deadline: float | None, watch: Callable[[], None] | None) -> bytes:
        # The buffer grows as data arrive: an announced length costs no memory, and a slow sender costs no more than others.
        # One read returns a short message with its length, and the next message if it has arrived.
        buffer = self._there
        while len(buffer) < length:
            self._wait_for_event(select.POLLIN, deadline, watch)
            try:
                piece = self._socket.recv(max(_SHORT, min(length - len(buffer), _PIECE)))
            except OSError as error:
                raise ClosedError from error
            if not piece:
                raise ClosedError
            buffer += piece
        message = bytes(memoryview(buffer)[:length])
        del buffer[:length]
        return message

    def _wait_for_event(self, event: int, deadline: float | None, watch: Callable[[], None] | None = None) -> None:
        if deadline is None and watch is None:
            return
        poll = select.poll()
        poll.register(self._socket, event)
        while True:
            remaining = None if deadline is None else deadline - monotonic()
            if remaining is not None and remaining <= 0:
                raise DeadlineError
            seconds = min((wait for wait in (0.25 if watch else None, remaining) if wait is not None), default=None)
            if poll.poll(None if seconds is None else 1000 * seconds):
                return
            if watch is not None:
                watch()

    def close(self) -> None:
        """Close the connection; a thread that waits for a message gets an error."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Mailbox:
    """One end of a connection that buffers messages without waking the reader, because wake-ups are expensive.

    Args:
        connection: a connected socket that preserves message boundaries (``SOCK_SEQPACKET``); the mailbox closes it.
        max_bytes: the most bytes that it may hold.
    """

    def __init__(self, connection: socket.socket, max_bytes: int = 2**28) -> None:
        self._socket = connection
        self._max_bytes = max_bytes
        self._room = bytearray()

    def put(self, data: bytes) -> bool:
        """Post a message, and return whether there was room for it."""
        if len(data) > _ON_A_TRAY:
            return False
        try:
            self._socket.send(data, socket.MSG_DONTWAIT)
        except OSError:
            return False
        return True

    def take(self) -> list[bytes]:
        """Return the waiting messages, even if the other side has ended.

        Raises:
            MessageTooLongError: if they exceed the limit together.
        """
        self._room = self._room or bytearray(_ON_A_TRAY)
        messages: list[bytes] = []
        total = 0
        while length := self._next():
            total += length
            if total > self._max_bytes:
                raise MessageTooLongError
            messages.append(bytes(memoryview(self._room)[:length]))
        return messages

    def _next(self) -> int:
        try:
            return self._socket.recv_into(self._room, flags=socket.MSG_DONTWAIT)
        except OSError:
            return 0

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def send_with_descriptors(connection: socket.socket, data: bytes, descriptors: Sequence[int]) -> None:
    """Send a short message with file descriptors to a trusted process."""
    socket.send_fds(connection, [_LENGTH.pack(len(data)) + data], list(descriptors))


def receive_with_descriptors(connection: socket.socket, count: int) -> tuple[bytes, list[int]]:
    """Receive a short message with its file descriptors.

    Raises:
        ClosedError: if the other side has gone.
    """
    head, descriptors, _, _ = socket.recv_fds(connection, _LENGTH.size, count)
    if len(head) < _LENGTH.size:
        raise ClosedError
    (length,) = _LENGTH.unpack(head)
    data = b""
    while len(data) < length:
        piece = connection.recv(length - len(data))
        if not piece:
            raise ClosedError
        data += piece
    return data, descriptors
