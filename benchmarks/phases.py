"""Where ``tfcourse autograde`` spends its processor time: a sampling profile of all its processes, by phase.

    pip install py-spy
    python benchmarks/phases.py [--students 24] [--chapter 05] [--json FILE]

A sample belongs to the first phase of the list one of whose modules is on its stack. Samples of a process that waits for another one are
left out. Page faults after a fork are time of the system and not in it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from classroom import CHAPTER, PROJECT, classroom
from measure import Figures

from autograder.course.authoring.chapter import find_chapter

PHASES = {
    "importing modules": ("<frozen importlib._bootstrap>",),
    "diagnosing mistakes": ("autograder/checking/diagnosis.py",),
    "running students' cells": ("engine/student/cell_shell.py", "engine/student/definitions.py"),
    "answering questions": ("autograder/checking/subject.py",),
    "judging answers": ("autograder/checking/", "autograder/mistakes/", "engine/checker/"),
    "recording grades": ("grading/record/", "autograder/course/gradebook/"),
    "writing feedback pages": ("grading/feedback/",),
    "reading submissions": ("autograder/intake/", "autograder/static_analysis/"),
    "starting and isolating processes": ("engine/student/", "engine/sandbox/", "engine/workers/"),
}
_REST = "the rest"
# Functions in which a process waits for another one.
_WAITING = (
    "zygote.py:_enter",
    "socket.py:recv_fds",
    "channel.py:",
    "selectors.py:select",
    "connection.py:wait",
    "threading.py:wait",
    "subprocess.py:_try_wait",
)
_RATE = 50


def main() -> None:
    """Measure, print the table, and write it if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--students", type=int, default=24, help="submissions (default: 24)")
    parser.add_argument("--chapter", default=CHAPTER, help="the chapter, as a number or a folder (default: 03)")
    parser.add_argument("--json", type=Path, help="where to write the figures for write_docs.py")
    options = parser.parse_args()
    profiler = shutil.which("py-spy")
    if profiler is None:
        parser.error("py-spy is not installed: pip install py-spy")
    chapter = find_chapter(PROJECT, options.chapter).name
    with tempfile.TemporaryDirectory(prefix="tfcourse-benchmark-") as folder:
        room = classroom(Path(folder) / "course", options.students, chapter=chapter)
        samples = _profile(profiler, chapter, room.course.root, Path(folder) / "stacks")
    total = sum(samples.values())
    figures = Figures("phases", "", ("phase", "share of the samples", "ms per submission"))
    for phase in (*PHASES, _REST):
        figures.rows.append(
            (phase, f"{samples[phase] / total:.0%}", round(1000 * samples[phase] / _RATE / options.students))
        )
    figures.command = f"python benchmarks/phases.py --students {options.students} --chapter {options.chapter}"
    figures.notes = [f"{total} samples at {_RATE} per second and process."]
    figures.tell(options.json)


def _profile(profiler: str, chapter: str, course: Path, output: Path) -> Counter[str]:
    """Return the number of samples by phase."""
    command = [profiler, "record", "--subprocesses", "--rate", str(_RATE), "--format", "raw", "--output", output, "--"]
    command += [
        sys.executable,
        Path(sys.executable).with_name("tfcourse"),
        "autograde",
        chapter,
        "--course",
        course,
        "--jobs",
        "2",
    ]
    subprocess.run(list(map(str, command)), check=True, stdout=sys.stderr, env={**os.environ, "OMP_NUM_THREADS": "1"})
    samples = Counter[str]()
    for line in output.read_text(encoding="utf-8").splitlines():
        stack, _, count = line.rpartition(" ")
        innermost = _place(stack.rpartition(";")[2])
        if not any(waiting in innermost for waiting in _WAITING):
            samples[_phase(stack)] += int(count)
    return samples


def _place(frame: str) -> str:
    """Return a frame such as ``select (selectors.py:468)`` as module and function, ``selectors.py:select``."""
    function, _, module = frame.partition(" (")
    return f"{module.partition(':')[0]}:{function.rpartition('.')[2]}"


def _phase(stack: str) -> str:
    return next((phase for phase, modules in PHASES.items() if any(module in stack for module in modules)), _REST)


if __name__ == "__main__":
    main()
