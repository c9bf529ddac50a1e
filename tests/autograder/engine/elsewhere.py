"""A program that grades a notebook with a Python that lies in another folder.

``python elsewhere.py FOLDER`` shows this environment in ``FOLDER`` too, in a mount namespace of its own, starts the Python there, and
prints as JSON what came of a submission that looks at the folders it may write to and goes into some of them.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[2]

LOOK = """
import os, sys, tempfile
%cd /tmp
open('/tmp/note', 'w').write('kept')
os.mkdir('/tmp/folder')
%cd folder
os.replace('/tmp/note', 'note')
print(open('note').read(), tempfile.gettempdir())
open('/dev/shm/shared', 'w').close()
%cd -q ~
import matplotlib.pyplot as plt
import wave  # from the part of Python that nothing has imported yet
print(os.getcwd(), 'drawn', len(plt.plot([1, 2])))
try:
    open(os.path.join(sys.prefix, 'note'), 'w')
except OSError as error:
    print(type(error).__name__, error.errno)
"""
CELLS = ((LOOK, None), ("def double(x):\n    return 2 * x", None), ("assert double(2) == 4", "double"))


def main(folder: str, stage: str = "") -> None:
    """Start the Python in the folder, or, started there, grade."""
    sys.path[:0] = [str(PROJECT)]
    if stage != "grade":
        _move_to(folder)
    assert sys.prefix == folder, f"{sys.prefix} is not {folder}"
    from autograder.engine.settings import GradingSettings
    from autograder.engine.workers.executor import create_executor
    from tests.autograder.engine.workers import grade

    executor = create_executor(GradingSettings(seed=5))
    graded = grade(executor, *CELLS)
    executor.close()
    print(json.dumps({
        "printed": graded.printed(0).splitlines(),
        "errors": graded.errors(),
        "points": graded.points,
        "isolation": graded.execution.isolation,
    }))  # fmt: skip


def _move_to(folder: str) -> None:
    from autograder.engine.sandbox import linux

    user, group = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWNS | (linux.CLONE_NEWUSER if user else 0))
    if user:
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1\n", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1\n", encoding="ascii")
    linux.mount("", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    linux.mount(sys.prefix, folder, flags=linux.MS_BIND | linux.MS_REC)
    python = f"{folder}/bin/{Path(sys.executable).name}"
    os.execv(python, [python, "-P", __file__, folder, "grade"])


if __name__ == "__main__":
    main(*sys.argv[1:])
