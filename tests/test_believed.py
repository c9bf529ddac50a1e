"""What has passed is left out until it changes, and neither an outdated key nor a forged one gets through where everything runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from .believed import EVERYTHING, ROOT, current_keys

CONFTEST = """
import json
from pathlib import Path
from tests.believed import Believer

def pytest_configure(config):
    config.addinivalue_line("markers", "believed: as in the course")
    keys = lambda: json.loads(Path("now.json").read_text())
    config.pluginmanager.register(Believer(config, keys, Path("committed.json")))
"""
TESTS = """
from pathlib import Path
import pytest

@pytest.mark.believed
@pytest.mark.parametrize("name", ["one", "two"])
def test_an_exercise(name):
    assert name in Path("right").read_text()

def test_something_else():
    pass
"""
NOW = {"exercise one": {"reference": "1", "questions": "2"}, "exercise two": {"reference": "3", "questions": "4"}}
BOTH = "3 passed"

Run = Callable[..., tuple[int, str, Mapping[str, Mapping[str, str]]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run two exercises' tests; return the exit code, the report, and the keys that are then committed."""

    def run(
        committed: Mapping[str, Mapping[str, str]], *, right: str = "one two", everything: bool = False, n: int = 0
    ):  # type: ignore[no-untyped-def]
        texts = {"conftest.py": CONFTEST, "test_it.py": TESTS, "right": right, "now.json": json.dumps(NOW)}
        for name, text in {**texts, "committed.json": json.dumps(committed)}.items():
            (tmp_path / name).write_text(text)
        environment = {**os.environ, "PYTHONPATH": str(ROOT), EVERYTHING: "1" if everything else ""}
        command = [sys.executable, "-m", "pytest", "-n", str(n), "--rootdir", "."]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, json.loads((tmp_path / "committed.json").read_text())

    return run


@pytest.mark.parametrize("n", [0, 2])
def test_only_what_has_changed_runs_and_its_key_is_written_when_it_passes(run: Run, n: int) -> None:
    code, report, keys = run(NOW | {"exercise one": {"reference": "0", "questions": "2"}}, n=n)
    assert (code, keys) == (0, NOW)
    assert "exercise one (reference)" in report
    assert "2 passed" in report


def test_a_failure_keeps_the_old_key(run: Run) -> None:
    code, _, keys = run({"exercise two": NOW["exercise two"]}, right="two")
    assert (code, keys) == (1, {"exercise two": NOW["exercise two"]})


def test_a_forged_key_fails_where_everything_runs(run: Run) -> None:
    assert run(NOW, right="two")[0] == 0, "a key that says so is believed"
    assert run(NOW, right="two", everything=True)[0] == 1


def test_an_outdated_key_fails_where_everything_runs_and_says_what_has_changed(run: Run) -> None:
    committed = NOW | {"exercise two": {"reference": "3", "questions": "0"}, "exercise gone": {}}
    code, report, keys = run(committed, everything=True)
    assert (code, keys) == (1, committed)
    assert BOTH in report
    assert "exercise two: changed since its key was written: questions" in report
    assert run(NOW, everything=True)[0] == 0


def test_every_exercise_and_every_lesson_has_a_key() -> None:
    keys = current_keys()
    assert len(keys) == 173 + 13
    assert all(len(parts) >= 4 and all(parts.values()) for parts in keys.values())
