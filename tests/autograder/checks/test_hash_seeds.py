"""Questions and answers do not depend on the order of sets, which differs between processes if the items are strings, as in chapter 06."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from autograder.checks import exercises

CHAPTER = "tfcourse.tokenization"
PROGRAM = """
import hashlib, sys
from pathlib import Path
from autograder.checking.recorded import write_sheet
from autograder.checks import exercises
path = Path(sys.argv[1])
for name in sys.argv[2:]:
    write_sheet(exercises()[name].sheet(), path)
    print(name, hashlib.sha256(path.read_bytes()).hexdigest())
"""


def test_sheets_of_strings_are_the_same_in_processes_with_other_hashes(tmp_path: Path) -> None:
    names = [name for name, one in exercises().items() if one.reference.__module__ == CHAPTER]
    assert "train_bpe" in names
    hashes = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path / f"{seed}.safetensors"), *names],
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for seed in ("1", "7")
    ]
    assert len(hashes[0]) == len(names)
    assert hashes[0] == hashes[1]
