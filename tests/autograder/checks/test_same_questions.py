"""Questions and answers do not depend on the order of sets, which differs between processes if the items are strings, as in chapter 06."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import hashlib, sys
from pathlib import Path
from autograder.checking.recorded import write_sheet
from autograder.checks import exercises
path = Path(sys.argv[1])
for name, exercise in exercises().items():
    if exercise.chapter.startswith("06"):
        write_sheet(exercise.sheet(), path)
        hidden = exercise.sheet(hidden=True, seed=3)
        asked = [[probe.requests[0].arguments for probe in section.probes] for section in hidden.sections]
        print(name, hashlib.sha256(path.read_bytes() + repr(asked).encode()).hexdigest())
"""


def digests(path: Path, hash_seed: int) -> list[str]:
    """Return digests of the visible sheets and the hidden questions about texts, from a process with this order of sets."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PROGRAM, str(path)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


def test_sheets_of_strings_and_hidden_questions_are_the_same_in_every_process(tmp_path: Path) -> None:
    first = digests(tmp_path / "sheet.safetensors", 1)
    assert len(first) > 8
    assert digests(tmp_path / "sheet.safetensors", 7) == first
