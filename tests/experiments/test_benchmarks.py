"""The scripts of benchmarks and experiments find what they import, and the comparison of models compares equal ones."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
from torch import Tensor

ROOT = Path(__file__).parents[2]
SCRIPTS = [path for folder in ("benchmarks", "experiments") for path in sorted((ROOT / folder).glob("*.py"))]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_finds_what_it_imports(path: Path) -> None:
    code = f"import sys; sys.path.insert(0, {str(path.parent)!r}); import {path.stem}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_model_is_compared_and_two_write(experiment: Callable[[str], ModuleType]) -> None:
    found = experiment("models").figures(1, width=16, layers=1, new_tokens=3)
    assert [row[0] for row in found.rows] == ["Bert", "Gpt", "Gpt", "T5", "ViT", "Llama", "Llama"]
    assert all(row[4] > 0 for row in found.rows)
    assert "ours / theirs" in found.text()


def test_rounds_are_taken_in_turns_and_the_first_does_not_count(experiment: Callable[[str], ModuleType]) -> None:
    seen: list[str] = []

    def run(name: str) -> Callable[[], Tensor]:
        return lambda: seen.append(name) or Tensor()  # type: ignore[func-returns-value]

    assert len(experiment("models").in_turns(run("a"), run("b"), 2)) == 2
    assert seen == ["a", "b"] * 3
