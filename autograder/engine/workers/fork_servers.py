"""Keep two fork servers for a pool of workers: one forks the workers, the other their zygotes.

They are two, and neither is forked from the other, so that a student's process has no ancestor that has held the reference, a question or
the instructor's environment.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from contextlib import suppress
from pathlib import Path

from autograder.engine.environment import worker_environment
from autograder.engine.settings import GradingSettings
from autograder.engine.transport.channel import Channel, ClosedError
from autograder.engine.transport.fork_server import START_SECONDS, ForkServerChild, ForkServerClient
from autograder.engine.workers.sandbox_settings import student_environment
from autograder.engine.workers.temp_folders import locked_temp_folder

# They differ between processes that are otherwise alike.
FOLDERS = frozenset({"IPYTHONDIR", "TEMP", "TMP", "TMPDIR"})


class ForkServers:
    """The two fork servers of a pool that grades on the CPU.

    Args:
        settings: the seed of the workers: a process orders its sets by a number that it gets when it starts.
    """

    def __init__(self, settings: GradingSettings) -> None:
        self._folder, self._in_use = locked_temp_folder()
        for_students = {**student_environment(settings, Path(self._folder)), "TMPDIR": self._folder}
        # No student's process may inherit a file of this machine, so the server of zygotes does not hold the folder's lock.
        self._zygotes = ForkServerClient("autograder.engine.student.zygote", for_students, self._folder)
        self._workers = ForkServerClient(
            "autograder.engine.workers.worker",
            worker_environment(self._folder, settings.device),
            self._folder,
            [self._in_use],
        )
        self._students_have = {name: value for name, value in for_students.items() if name not in FOLDERS}

    def fork_worker(
        self, connection: socket.socket, lock: int, folder: str, settings: GradingSettings, chapter: str
    ) -> None:
        """Order a worker and its zygote, and return at once.

        Args:
            connection: the worker's end of the connection to it.
            lock: the descriptor of the lock of its temporary folder.
            folder: that folder.
            chapter: the chapter whose questions it needs first; they are made once for all workers. Empty for none.

        Raises:
            OSError: if the server of workers has died.
        """
        workers_end, zygotes_end = socket.socketpair()
        with workers_end, zygotes_end:
            order = {
                "folder": folder,
                "environment": self._students_have,
                "seed": settings.seed or 0,
                "chapter": chapter,
            }
            self._workers.fork(order, [connection.fileno(), workers_end.fileno(), lock])
            try:
                self._zygotes.fork({}, [zygotes_end.fileno()])
            except OSError:  # the connection closes, and the worker starts a zygote
                return

    def cpu_capability(self) -> str:
        """Return PyTorch's CPU capability in workers; empty if the server of workers has died."""
        ours, workers_end = socket.socketpair()
        with ours:
            with workers_end, suppress(OSError):
                self._workers.fork({"tell": "cpu capability"}, [workers_end.fileno()])
            with suppress(OSError, ClosedError, ValueError):
                ForkServerChild.wait_for_announcement(ours, START_SECONDS).wait()
                return str(json.loads(Channel(ours).receive()))
        return ""

    def close(self) -> None:
        """End both servers and remove their folder."""
        self._zygotes.close()
        self._workers.close()
        shutil.rmtree(self._folder, ignore_errors=True)
        os.close(self._in_use)
