"""Real schedulers and workers, each a process of its own, on the loopback interface and on ports that are free."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


class DaskProcesses:
    """A scheduler and the workers that a test starts for it. All are ended with the test.

    Args:
        folder: for their files.
        options: of the scheduler.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.workers: list[subprocess.Popen[bytes]] = []
        self._folder = folder
        self._log = (folder / "log").open("ab")
        told = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--scheduler-file", str(told), *options)
        self.address = str(_wait_for(lambda: json.loads(told.read_text())["address"], self.scheduler, folder / "log"))

    def add_worker(self, *options: str, threads: int = 1) -> subprocess.Popen[bytes]:
        """Start a worker without a nanny, so that nobody starts it again when it is killed."""
        folder = self._folder / f"worker-{len(self.workers)}"
        common = ["--no-nanny", "--nthreads", str(threads), "--local-directory", str(folder)]
        self.workers.append(self._start("worker", self.address, *common, *options))
        return self.workers[-1]

    def end(self) -> None:
        """Kill what is still there."""
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()
        self._log.close()

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--host", "127.0.0.1", "--no-dashboard"]
        port = ["--port", "0"] if kind == "scheduler" else []
        path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [*program, *port, *options],
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=self._log,
            env={**os.environ, "PYTHONPATH": path},
        )


def _wait_for(ask: Callable[[], Any], process: subprocess.Popen[bytes], log: Path) -> Any:
    while process.poll() is None:
        try:
            return ask()
        except (OSError, ValueError):
            time.sleep(0.05)
    raise AssertionError(log.read_text(errors="replace")[-2000:])


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[DaskProcesses]:
    """A scheduler of one's own, without workers."""
    made = DaskProcesses(tmp_path)
    yield made
    made.end()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskProcesses]:
    """A scheduler with two workers that nobody kills."""
    made = DaskProcesses(tmp_path_factory.mktemp("shared"))
    made.add_worker()
    made.add_worker()
    yield made
    made.end()


@pytest.fixture
def obedient(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class of the executor that does what a notebook says, under the name that workers know it by."""
    monkeypatch.syspath_prepend(HERE)
    return __import__("obedient").Obedient
