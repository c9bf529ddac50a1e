"""The same seed asks the same questions in every process: no maker of cases depends on the order of a set of texts."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import hashlib
from autograder.checks import exercises
for name, exercise in exercises().items():
    if exercise.chapter.startswith("06"):
        sheet = exercise.sheet(hidden=True, seed=3)
        asked = [[probe.requests[0].arguments for probe in section.probes] for section in sheet.sections]
        print(name, hashlib.sha256(repr(asked).encode()).hexdigest())
"""


def questions(hash_seed: int) -> str:
    """Return a digest of the questions about texts, from a process with this order of sets."""
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


def test_questions_do_not_depend_on_the_order_of_sets() -> None:
    first = questions(1)
    assert len(first.splitlines()) > 8
    assert questions(2) == first
