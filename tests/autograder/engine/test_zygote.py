"""Grading is the same wherever Python lies, also below the folders that a student's process writes to."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("elsewhere.py")
# Each with the folder for temporary files; the last is below one that is not /tmp.
PLACES = {"/tmp": "/tmp", "/dev/shm": "/tmp", "/var/tmp": ""}


@pytest.fixture(params=PLACES)
def environment(request: pytest.FixtureRequest) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder to show this environment in, and the variables to start its Python with."""
    home = Path(tempfile.mkdtemp(prefix="tfcourse-clone-", dir=request.param))
    folder = home / ".venv"
    folder.mkdir()
    yield folder, {**os.environ, "TMPDIR": PLACES[request.param] or str(home)}
    shutil.rmtree(home)


def test_a_notebook_that_goes_into_folders_and_writes_there_is_graded_wherever_python_lies(
    environment: tuple[Path, dict[str, str]],
) -> None:
    folder, variables = environment
    ran = subprocess.run(
        [sys.executable, "-P", str(PROGRAM), str(folder)], capture_output=True, text=True, check=False, env=variables
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        # Python itself is read-only (error 30); all else is the student's.
        "printed": ["/tmp", "/tmp/folder", "kept /tmp", "/tmp/home drawn 1", "OSError 30"],
        "errors": {},
        "points": {"double": 1.0},
        "isolation": "sandbox",
    }
