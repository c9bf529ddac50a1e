"""A course folder that is made once for all processes of a test run."""

from __future__ import annotations

import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.course.release import student_build


def made_once(folder: Path, make: Callable[[Path], object]) -> Path:
    """Return the course folder in a folder, made by whoever asks first. Do not write into it."""
    root = folder / "course"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock, pytest.MonkeyPatch.context() as patch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not root.exists():
            # nbgrader calls alembic by its name when it makes a gradebook; it lies beside this Python.
            patch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
            # No test reads the recorded answers of these students' packages, which take a minute.
            patch.setattr(student_build, "_read_recordings", lambda root, chapter: {})
            make(root.with_name("making"))
            root.with_name("making").rename(root)
    return root
