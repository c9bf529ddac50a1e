"""Fork a process that answers requests of this process, one at a time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from autograder.engine.sandbox.lockdown import die_with_parent
from autograder.engine.transport.channel import Channel, ClosedError, DeadlineError, MessageTooLongError

_LONGEST = 2**31


class ForkedProcess:
    """A forked process that answers requests.

    Args:
        serve: runs in the fork with its end of the connection. The process ends when this function returns or raises.
    """

    def __init__(self, serve: Callable[[Channel], None]) -> None:
        ours, child_end = socket.socketpair()
        self._pid = os.fork()
        if not self._pid:
            status = 1
            with contextlib.suppress(BaseException):
                die_with_parent()
                ours.close()
                serve(Channel(child_end, _LONGEST))
                status = 0
            os._exit(status)
        child_end.close()
        self._channel = Channel(ours, _LONGEST)

    def ask(self, question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """Send a request and return the answer; if the process has ended, the key ``"lost"`` has the reason."""
        try:
            self._channel.send(json.dumps(question).encode())
            return dict(json.loads(self._channel.receive(monotonic() + seconds)))
        except (ClosedError, DeadlineError, MessageTooLongError, ValueError) as error:
            return {"lost": type(error).__name__}

    def close(self) -> None:
        """Kill the process."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._channel.close()
