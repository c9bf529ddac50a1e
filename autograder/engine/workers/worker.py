"""Run a worker: a program that grades submissions one after the other.

The worker holds the reference, the checks, and all questions and answers so far. It forks checkers, which do the grading: no checker
recomputes what an earlier one has computed, and a crashed checker loses nothing. A checker grades several submissions, one after the
other, because forking and warming up another one costs a tenth of a submission.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.engine.interface import Execution, Executor, Submission
from autograder.engine.sandbox.lockdown import raise_file_limit
from autograder.engine.settings import GradingSettings
from autograder.engine.transport.channel import Channel, ClosedError
from autograder.engine.transport.fork_server import FORK_SERVER, serve_forks
from autograder.engine.workers.engine import Engine, Standby, answer_cache, warm_up_worker
from autograder.engine.workers.temp_folders import LOCK


def main(descriptor: int, standby: Standby | None = None) -> None:
    """Grade submissions from a connection until it closes.

    Args:
        descriptor: of the connection.
        standby: a zygote that may be there already.
    """
    channel = Channel(socket.socket(fileno=descriptor), 2**31)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that the user started handles Ctrl-C
    raise_file_limit()
    engine: Executor | None = None
    try:
        while True:
            ((kind, content),) = json.loads(channel.receive()).items()
            if kind == "settings":
                # A new run. This process keeps its imports and its questions.
                settings = GradingSettings(**content)
                if not isinstance(engine, Engine) or not engine.change_settings(settings):
                    if engine is not None:
                        engine.close()
                    engine = _create_executor(settings, standby)
                    standby = None
                continue
            assert engine is not None, "settings come first"
            channel.send(json.dumps(asdict(engine.grade_one(Submission(**content)))).encode())
            if isinstance(engine, FailedExecutor):
                return  # a new worker may succeed
    except ClosedError:
        return
    finally:
        if engine is not None:
            engine.close()
        if ((temp_folder := Path(tempfile.gettempdir())) / LOCK).is_file():
            # The folder belongs to this process, and its creator may have been killed.
            shutil.rmtree(temp_folder, ignore_errors=True)


def serve_workers(arguments: Sequence[str]) -> None:
    """Import the modules that all workers need, and fork workers until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise_file_limit()
    serve_forks(arguments, warm_up_worker, _run_worker, _load_chapter)


def _load_chapter(order: dict[str, Any]) -> None:
    """Load a chapter's test cases, once for all workers."""
    if order.get("chapter") and answer_cache(order["seed"], "cpu").fill_chapter(order["chapter"]):
        gc.freeze()


def _run_worker(order: dict[str, Any], descriptors: list[int]) -> None:
    if "tell" in order:
        import torch

        Channel(socket.socket(fileno=descriptors[0])).send(json.dumps(torch.backends.cpu.get_cpu_capability()).encode())
        return
    os.environ["TMPDIR"], tempfile.tempdir = order["folder"], None
    connection, zygote, _ = descriptors  # the last one is the lock of its folder
    main(connection, Standby(socket.socket(fileno=zygote), order["environment"]))


def _create_executor(settings: GradingSettings, standby: Standby | None) -> Executor:
    try:
        if settings.warm:
            return Engine(settings, standby)
        from autograder.engine.workers.plain import PlainExecutor

        return PlainExecutor(settings)
    except OSError as error:  # no room for temporary files, no process, no memory
        return FailedExecutor(f"a worker could not be made ready ({type(error).__name__}: {error})")


class FailedExecutor:
    """An executor that returns a failure, because the engine could not start.

    Args:
        reason: why it could not start.
    """

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def grade_one(self, submission: Submission) -> Execution:
        """Return the reason as a failed execution."""
        return Execution(submission.student, "", 0.0, self._reason)

    def close(self) -> None:
        """Do nothing: there are no resources."""


if __name__ == "__main__":
    if sys.argv[1] == FORK_SERVER:
        serve_workers(sys.argv[2:])
    else:
        main(int(sys.argv[1]))
