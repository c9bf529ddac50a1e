"""Looking at a process with its descendants while they live: processor time and memory (Linux only)."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def family(pid: int) -> list[int]:
    """Return a process and its descendants, in namespaces of their own too."""
    children: dict[int, list[int]] = defaultdict(list)
    for entry in (path.name for path in Path("/proc").iterdir()):
        if entry.isdigit() and (fields := _stat(int(entry))):
            children[int(fields[1])].append(int(entry))
    found, waiting = [], [pid]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += children[one]
    return found


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process and its descendants, with that of those that have ended and were waited for."""
    # In a process's own line: its time, and the time of the children that it has waited for, each user and system.
    return sum(sum(map(int, fields[11:15])) for one in family(pid) if (fields := _stat(one))) / _TICK


def memory(pid: int) -> dict[int, int]:
    """Return the bytes of memory of a process and each of its descendants; what several share is divided among them (PSS)."""
    found = {}
    for one in family(pid):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        found[one] = next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return found


def _stat(pid: int) -> list[str]:
    """Return the fields of a process behind its name, or nothing if it has gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return []
