"""It is told which tests notice which changes, which changes nobody notices, and which tests notice none."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULE = "def is_late(days, grace):\n    return days > grace\n\ndef unused():\n    return 1\n"
TESTS = """
from lateness import is_late

def test_after_the_grace_period():
    assert is_late(3, 2)

def test_on_the_last_day():
    assert not is_late(2, 2)

def test_nothing():
    is_late(1, 2)
"""


def test_the_table_names_noticing_tests_idle_tests_and_survivors(tmp_path: Path) -> None:
    (tmp_path / "lateness.py").write_text(MODULE)
    (tmp_path / "test_lateness.py").write_text(TESTS)
    command = [sys.executable, "-m", "tools.kills", str(tmp_path / "lateness.py"), str(tmp_path), "--sample", "99"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    table, _, survivors = done.stdout.partition("Survivors:")
    noticing, _, idle = table.partition("tests notice none:")
    assert "test_after_the_grace_period" in noticing
    assert "test_on_the_last_day" in noticing
    assert idle.split() == [name for name in idle.split() if name.endswith("test_nothing")] != []
    assert "unused: 1  →  2" in survivors
    assert "is_late" not in survivors
