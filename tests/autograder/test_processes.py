"""Work spread over processes: what one process would make of it, and nothing left behind."""

from __future__ import annotations

import importlib
import math
import os
from pathlib import Path

import pytest

from autograder import parallel
from autograder.parallel import parallel_map


@pytest.fixture(params=[1, 3])
def jobs(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many cores there seem to be: with one the work stays here."""
    monkeypatch.setattr(parallel, "available_cores", lambda: request.param)
    return int(request.param)


def test_results_come_in_order(jobs: int) -> None:
    assert parallel_map(math.factorial, list(range(8))) == [math.factorial(n) for n in range(8)]
    assert parallel_map(math.factorial, []) == []


def test_what_the_work_raises_is_raised_here(jobs: int) -> None:
    with pytest.raises(ValueError, match="not defined for negative"):
        parallel_map(math.factorial, [3, -1, 4])


def test_what_the_work_prints_does_not_get_into_the_results(jobs: int, capfd: pytest.CaptureFixture[str]) -> None:
    assert parallel_map(print, ["one", "two"]) == [None, None]
    said = capfd.readouterr()
    # Two processes print at once: a word of the one may come before the other's end of line.
    assert all(word in said.out + said.err for word in ("one", "two"))


def test_no_process_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "available_cores", lambda: 2)
    mine = Path(f"/proc/self/task/{os.getpid()}/children")
    before = mine.read_text()
    parallel_map(math.factorial, [3, 4])
    assert mine.read_text() == before


def test_processes_that_die_are_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "available_cores", lambda: 2)
    monkeypatch.setattr(parallel.sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="factorial was spread over ended with status 1"):
        parallel_map(math.factorial, [3, 4])


def test_work_of_a_module_beside_the_program_is_found(tmp_path, monkeypatch):
    (tmp_path / "beside.py").write_text("def double(n):\n    return 2 * n\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert parallel_map(importlib.import_module("beside").double, [1, 2]) == [2, 4]
