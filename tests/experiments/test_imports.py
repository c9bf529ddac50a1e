"""A benchmark reaches into the engine; what is renamed there must not wait for the next measurement to be noticed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = [path for folder in ("benchmarks", "experiments") for path in sorted((ROOT / folder).glob("*.py"))]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_finds_what_it_imports(path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(path.parent)!r}); import {path.stem}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
