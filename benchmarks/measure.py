"""Measuring commands with all the processes that they start, and telling the figures.

Processor time is that of the whole family of processes, also of those that outlive their parents: this process adopts them (Linux only) and
waits for their end. It depends little on what else the machine does; wall-clock time does, so measure it on a quiet machine.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, time
from typing import Self

RESULTS = Path(__file__).parent / "results"
_PR_SET_CHILD_SUBREAPER = 36
_LOOK_SECONDS = 0.05


@dataclass(frozen=True)
class Cost:
    """What something took.

    Attributes:
        wall: seconds on the clock.
        cpu: seconds of processor time.
    """

    wall: float
    cpu: float


def cost_of(command: Sequence[str | Path], *, cwd: Path | None = None, accepted: Sequence[int] = (0,)) -> Cost:
    """Run a command to its end and return what it took, with all its descendants.

    Args:
        command: the command.
        cwd: where to run it.
        accepted: exit codes that are as they should be.

    Raises:
        RuntimeError: if it ends otherwise; the text holds what it printed.
    """
    adopt_orphans()
    before, begin = cpu_of_children(), perf_counter()
    done = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, check=False)
    wall = perf_counter() - begin
    if done.returncode not in accepted:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    wait_for_orphans()
    return Cost(wall, cpu_of_children() - before)


class Processors:
    """How busy the machine's processors are while a block runs, whoever uses them (Linux only)."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int, int]] = []
        self._ended = Event()
        self._thread = Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            ticks = [int(field) for field in _lines("/proc/stat")[0].split()[1:9]]
            # The fourth is idle, the fifth is idle while a disk is waited for.
            self._seen.append((time(), sum(ticks), ticks[3] + ticks[4]))

    def busy(self, begin: float, end: float) -> float:
        """Return the share of all processors' time that was used between two moments of the block, in seconds since the epoch."""
        between = [seen for seen in self._seen if begin <= seen[0] <= end]
        (_, ticks, idle), (_, later, idle_later) = between[0], between[-1]
        return 1 - (idle_later - idle) / (later - ticks)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parents end."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def wait_for_orphans() -> None:
    """Wait for every process that is a child of this one."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            return


def cpu_of_children() -> float:
    """Return the processor time of all descendants that have ended and have been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def cpu_of_self() -> float:
    """Return the processor time of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


@dataclass(frozen=True)
class Target:
    """A figure that is to be reached.

    Attributes:
        what: the figure.
        seen: its value.
        wanted: the value that it should have at least, or at most.
        most: whether less is better.
        unit: of both.
    """

    what: str
    seen: float
    wanted: float
    most: bool = False
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether it is reached, as seen."""
        return self.seen <= self.wanted if self.most else self.seen >= self.wanted


@dataclass
class Figures:
    """What a benchmark has found.

    Attributes:
        name: the benchmark's.
        command: how it was run.
        columns: heads of the table's columns.
        rows: the table's rows.
        targets: what was to be reached.
        notes: sentences below the table.
    """

    name: str
    command: str
    columns: Sequence[str]
    rows: list[Sequence[object]] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def tell(self, file: Path | None) -> None:
        """Print the figures as Markdown, and write them to a file for ``write_docs.py``."""
        print(self.text())
        if file is not None:
            data = {**asdict(self), "machine": machine(), "text": self.text()}
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def text(self) -> str:
        """Return the figures as Markdown."""
        lines = [f"`{self.command}`", "", *table(self.columns, self.rows)]
        if self.targets:
            rows = [
                (
                    target.what,
                    f"{'at most' if target.most else 'at least'} {target.wanted:g}{target.unit}",
                    f"{target.seen:.3g}{target.unit}",
                    "met" if target.met else "NOT met",
                )
                for target in self.targets
            ]
            lines += ["", *table(("target", "required", "measured", "result"), rows)]
        if self.notes:
            lines += ["", *self.notes]
        return "\n".join(lines)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Return the lines of a Markdown table."""
    texts = [[f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    return ["| " + " | ".join(row) + " |" for row in [list(columns), ["---"] * len(columns), *texts]]


def machine() -> dict[str, str | int | float]:
    """Return what the figures depend on."""
    names = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    return {
        "processor": names[0] if names else platform.processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": version("torch"),
        "nbgrader": version("nbgrader"),
        "load when it ended": round(os.getloadavg()[0], 1),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
