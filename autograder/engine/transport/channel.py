"""A stream of messages over a connected socket: each a length and so many bytes, with a cap on the length and on the time.

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
# The longest message that lies on a tray. Longer ones are few.
_ON_A_TRAY = 2**16


class ClosedError(Exception):
    """The other side has closed the connection: its process has ended, or closed it itself."""


class DeadlineError(Exception):
    """The other side has not answered in time."""


class MessageTooLongError(Exception):
    """The other side announces a message that is longer than is allowed."""


class Channel:
    """One end of a connection.

    Args:
        connection: a connected stream socket; the channel closes it.
        max_bytes: the longest message that is taken.
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
        """Send one message, made of the parts in a row.

        Args:
            parts: the message.
            deadline: when to give up, on the clock of ``time.monotonic``.

        Raises:
            ClosedError: if nobody is there to take it.
            DeadlineError: if it is not taken in time.
        """
        data = memoryview(b"".join((_LENGTH.pack(sum(map(len, parts))), *parts)))
        with self._lock:
            try:
                if deadline is None:
                    self._socket.sendall(data)
                    return
                while data:
                    self._wait(select.POLLOUT, deadline)
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
            ClosedError: if the other side has gone.
            DeadlineError: if it is not there in time.
            MessageTooLongError: if it is longer than is allowed; the connection is of no use afterwards.
        """
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size, deadline, watch))
        if length > self._max_bytes:
            raise MessageTooLongError
        return self._exactly(length, deadline, watch)

    def _exactly(self, length: int, deadline: float | None, watch: Callable[[], None] | None) -> bytes:
        # Room is made as data arrive: a length that is only announced costs nothing, and a sender who dribbles costs no more than others.
        # A short message comes with its length, and with the next one if that is there.
        there = self._there
        while len(there) < length:
            self._wait(select.POLLIN, deadline, watch)
            try:
                piece = self._socket.recv(max(_SHORT, min(length - len(there), _PIECE)))
            except OSError as error:
                raise ClosedError from error
            if not piece:
                raise ClosedError
            there += piece
        message = bytes(memoryview(there)[:length])
        del there[:length]
        return message

    def _wait(self, event: int, deadline: float | None, watch: Callable[[], None] | None = None) -> None:
        if deadline is None and watch is None:
            return
        poll = select.poll()
        poll.register(self._socket, event)
        while True:
            left = None if deadline is None else deadline - monotonic()
            if left is not None and left <= 0:
                raise DeadlineError
            pause = 0.25 if watch is not None else left
            if poll.poll(
                1000 * min(pause, left)
                if pause is not None and left is not None
                else None
                if pause is None
                else 1000 * pause
            ):
                return
            if watch is not None:
                watch()

    def close(self) -> None:
        """Close the connection; who waits for something to arrive on it learns so."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Mailbox:
    """One end of a connection on which messages lie until somebody takes them: nobody is woken by one, which costs more than to write it.

    Args:
        connection: a connected socket that keeps messages apart (``SOCK_SEQPACKET``); the tray closes it.
        max_bytes: how much may lie there.
    """

    def __init__(self, connection: socket.socket, max_bytes: int = 2**28) -> None:
        self._socket = connection
        self._max_bytes = max_bytes
        self._room = bytearray()

    def put(self, data: bytes) -> bool:
        """Lay a message down, and return whether there was room for it."""
        if len(data) > _ON_A_TRAY:
            return False
        try:
            self._socket.send(data, socket.MSG_DONTWAIT)
        except OSError:
            return False
        return True

    def take(self) -> list[bytes]:
        """Return the messages that lie there. What the other side has laid down is there even if it has gone.

        Raises:
            MessageTooLongError: if it is more than is allowed.
        """
        self._room = self._room or bytearray(_ON_A_TRAY)
        found: list[bytes] = []
        total = 0
        while length := self._next():
            total += length
            if total > self._max_bytes:
                raise MessageTooLongError
            found.append(bytes(memoryview(self._room)[:length]))
        return found

    def _next(self) -> int:
        try:
            return self._socket.recv_into(self._room, flags=socket.MSG_DONTWAIT)
        except OSError:
            return 0

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def send_with_descriptors(connection: socket.socket, data: bytes, descriptors: Sequence[int]) -> None:
    """Send a short message with open files to a process that is trusted."""
    socket.send_fds(connection, [_LENGTH.pack(len(data)) + data], list(descriptors))


def receive_with_descriptors(connection: socket.socket, count: int) -> tuple[bytes, list[int]]:
    """Return a short message and the open files that came with it.

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
