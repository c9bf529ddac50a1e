"""Run the real ``tfcourse autograde`` on a copy of a course, disturb it, run it again, and compare the grades.

Every fault is a function that takes a :class:`Trial`, disturbs one or more runs, and returns nothing. :meth:`Trial.differences` then says
what differs from a run that nobody disturbed.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.engine.transport.fork_server import FORK_SERVER

from .grades import written

COMMAND = Path(sys.executable).parent / "tfcourse"
LIMIT = 600.0


@dataclass(frozen=True)
class Undisturbed:
    """A course before grading, and what grading it undisturbed leaves.

    Attributes:
        root: the course folder; never written to.
        chapter: the chapter that is graded.
        seconds: how long the undisturbed run took.
        grades: what it left (see :func:`tests.faults.grades.written`).
        code: its exit code: 1, for the class has work that waits for a person.
    """

    root: Path
    chapter: str
    seconds: float
    grades: dict[str, Any]
    code: int


def undisturbed(root: Path, chapter: str, folder: Path) -> Undisturbed:
    """Grade a copy of a course without any fault."""
    copy = shutil.copytree(root, folder / "undisturbed")
    begin = time.monotonic()
    run = Run(copy, chapter, folder / "temporary")
    code = run.wait()
    if code not in (0, 1):
        raise RuntimeError(f"the undisturbed run ended with exit code {code}:\n{run.output()}")
    return Undisturbed(root, chapter, time.monotonic() - begin, written(copy), code)


class Run:
    """One ``tfcourse autograde`` as a process of its own.

    Args:
        root: the course folder.
        chapter: the chapter.
        temporary: its temporary folder, made if missing.
        words: further options.
        before: a program and its arguments that start the command, such as ``unshare``.
        environment: variables to set.
    """

    def __init__(
        self,
        root: Path,
        chapter: str,
        temporary: Path,
        *words: str,
        before: Sequence[str] = (),
        environment: dict[str, str] | None = None,
    ) -> None:
        temporary.mkdir(exist_ok=True)
        self._log = root.with_name(f"{root.name}.log")
        command = [*before, str(COMMAND), "autograde", chapter, "--device", "cpu", "--jobs", "2", "--course", str(root)]
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *words],
                stdout=log,
                stderr=log,
                env=os.environ | {"TMPDIR": str(temporary)} | (environment or {}),
            )

    def wait(self) -> int:
        """Return the exit code."""
        return self.process.wait(LIMIT)

    def output(self) -> str:
        """Return everything that the runs of this course have printed."""
        return self._log.read_text(errors="replace")

    def processes(self, module: str, *, server: bool = False) -> list[int]:
        """Return the ids of the run's processes whose command line names a module.

        Args:
            module: the module; the empty name stands for the command itself.
            server: whether to return the fork server of such processes, and not the processes.
        """
        if not module:
            return [self.process.pid]
        processes = (pid for pid in _descendants(self.process.pid) if module in _command_line(pid))
        return [pid for pid in processes if _is_fork_server(pid) == server]

    def kill(self, module: str, *, server: bool = False) -> bool:
        """Kill one process of the run, chosen as for :meth:`processes`; False if there is none (any more)."""
        for pid in self.processes(module, server=server):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            return True
        return False


class Trial:
    """A copy of the course on which one fault is tried."""

    def __init__(self, subject: Undisturbed, folder: Path) -> None:
        self.subject = subject
        self.folder = folder
        self.root = shutil.copytree(subject.root, folder / "course")

    def start(self, *words: str, **how: Any) -> Run:
        """Start a run."""
        return Run(self.root, self.subject.chapter, self.folder / "temporary", *words, **how)

    def differences(self) -> list[str]:
        """Finish grading without any fault, and name what differs from the undisturbed run."""
        run = self.start()
        code = run.wait()
        if code != self.subject.code:
            return [f"exit code {code}", run.output()]
        output = run.output()
        traceback = ["prints a traceback", output] if "Traceback" in output else []
        actual, expected = written(self.root), self.subject.grades
        return traceback + [
            str(key) for key in sorted({*actual, *expected}, key=str) if actual.get(key) != expected.get(key)
        ]


Fault = Callable[[Trial], None]


def _descendants(pid: int) -> Iterator[int]:
    """Yield the processes that a process has started, and theirs."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in task.read_text().split()]
        except OSError:
            continue
        for child in children:
            yield child
            yield from _descendants(child)


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _is_fork_server(pid: int) -> bool:
    """Return whether a process is a fork server. What it forks has its command line, but not its parent."""
    return FORK_SERVER in _command_line(pid) and FORK_SERVER not in _command_line(_parent(pid))


def _parent(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[1])
    except OSError:
        return 0
