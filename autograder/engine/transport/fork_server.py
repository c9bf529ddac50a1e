"""Fork processes from a fork server, a program that imports the required packages and then only forks.

Importing PyTorch takes a second of CPU time in every process. Forked processes share the server's memory pages instead.

The server has one thread and sends no answers. A forked process announces itself over its own connection, with a file descriptor of itself,
so that no process waits for a server that is still importing. If the server dies, its unread orders close this connection.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from autograder.engine.transport.channel import ClosedError, receive_with_descriptors, send_with_descriptors

# Seconds that a server may need for its imports.
START_SECONDS = 120.0
# The argument that makes a program a fork server.
FORK_SERVER = "--fork-server"
# The most connections and locks that one order hands over.
_MOST_DESCRIPTORS = 4


class ForkServerClient:
    """A client for a fork server that this process has started.

    Args:
        module: the program; it is called with :data:`FORK_SERVER`, the descriptor of its connection, and the folder.
        environment: its environment variables.
        folder: its folder for temporary files, which it removes when the connection closes: this process may have been killed.
        descriptors: further descriptors that it inherits.
    """

    def __init__(
        self, module: str, environment: Mapping[str, str], folder: str, descriptors: Sequence[int] = ()
    ) -> None:
        self._lock = threading.Lock()
        self._control, server_end = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, FORK_SERVER, str(server_end.fileno()), folder],
            pass_fds=[server_end.fileno(), *descriptors],
            stdin=subprocess.DEVNULL,
            env=dict(environment),
            cwd="/",
            start_new_session=True,
        )
        server_end.close()

    @property
    def pid(self) -> int:
        """The server's process id."""
        return self._process.pid

    def fork(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        """Order a fork, and return at once.

        Args:
            order: tells the forked process what to do.
            descriptors: what it inherits, its connection first.

        Raises:
            OSError: if the server has died.
        """
        with self._lock:
            send_with_descriptors(self._control, json.dumps(order).encode(), descriptors)

    def close(self) -> None:
        """End the server. Forked processes continue."""
        self._control.close()
        self._process.kill()
        self._process.wait()


class ForkServerChild:
    """A process that a fork server has forked, which is not a child of this process.

    Args:
        pid: its number.
        handle: a pidfd of it, which this object closes.
    """

    def __init__(self, pid: int, handle: int) -> None:
        self.pid = pid
        self._handle = handle

    @classmethod
    def wait_for_announcement(cls, connection: socket.socket, seconds: float) -> ForkServerChild:
        """Wait until the process at the other end of a connection announces itself.

        Raises:
            OSError: if it does not within that time, or the connection breaks.
            ClosedError: if it never came into being.
        """
        connection.settimeout(seconds)
        message, handles = receive_with_descriptors(connection, 1)
        connection.settimeout(None)
        if len(handles) != 1:
            raise ClosedError
        return cls(json.loads(message)["pid"], handles[0])

    def poll(self) -> int | None:
        """Return None while the process runs, as ``Popen.poll`` does."""
        return None if self._handle >= 0 and not _has_ended(self._handle, 0) else 0

    def wait(self) -> int:
        """Wait for the end of the process."""
        if self._handle >= 0:
            _has_ended(self._handle, None)
            os.close(self._handle)
            self._handle = -1
        return 0


def kill_group(process: subprocess.Popen[bytes] | ForkServerChild) -> None:
    """Kill a process group through its leader, and wait until the leader has ended."""
    # The number of a forked process that has ended may be another's by now; a child keeps its number until somebody waits for it.
    if isinstance(process, subprocess.Popen) or process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _has_ended(handle: int, milliseconds: int | None) -> bool:
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(milliseconds))


def serve_forks(
    arguments: Sequence[str],
    warm_up: Callable[[], None],
    run: Callable[[dict[str, Any], list[int]], None],
    prepare: Callable[[dict[str, Any]], None] = lambda order: None,
) -> None:
    """Fork a process for each order until the client closes the connection.

    Args:
        arguments: of the program, after :data:`FORK_SERVER`.
        warm_up: imports what all forked processes need.
        run: what a forked process does with its order and its descriptors.
        prepare: what this process does with the order before it forks; later forks inherit it, too.
    """
    control = socket.socket(fileno=int(arguments[0]))
    del sys.argv[1:]  # students' processes have no use for it
    gc.disable()  # imports make little garbage, and looking for it takes a sixth of their time
    try:
        with warnings.catch_warnings():
            # Of a folder that went with its killed command.
            warnings.filterwarnings("ignore", "IPython (dir|parent) ", UserWarning)
            warm_up()
    except OSError:
        if os.path.isdir(arguments[1]):
            raise
        return  # the command was killed meanwhile, and its other server has removed their folder
    # Objects that exist now are never garbage: a fork that scanned them would copy each page that they are on.
    gc.freeze()
    gc.enable()
    while True:
        try:
            message, descriptors = receive_with_descriptors(control, _MOST_DESCRIPTORS)
        except (ClosedError, OSError):
            shutil.rmtree(arguments[1], ignore_errors=True)
            return
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:  # their processor time counts as this process's
                pass
        order = json.loads(message)
        prepare(order)
        try:
            if not os.fork():
                _run_fork(control, run, order, descriptors)
        except OSError:  # too many processes: the connection closes, and who waits starts a program
            pass
        for descriptor in descriptors:
            os.close(descriptor)


def _run_fork(
    control: socket.socket,
    run: Callable[[dict[str, Any], list[int]], None],
    order: dict[str, Any],
    descriptors: list[int],
) -> None:
    """Run the forked process, and never return."""
    status = 1
    try:
        os.setsid()
        control.close()
        if _announce_process(descriptors[0]):
            run(order, descriptors)
        status = 0
    except ConnectionError:
        pass  # who would wait for this process has ended
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _announce_process(descriptor: int) -> bool:
    """Send this process's id over a connection; return whether the other end is open."""
    handle = os.pidfd_open(os.getpid())
    try:
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            send_with_descriptors(connection, json.dumps({"pid": os.getpid()}).encode(), [handle])
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
