"""Calls in another process end at their limit, whatever they do, and the next call is answered."""

from __future__ import annotations

import json
import operator
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from autograder import limited_process
from autograder.limited_process import FailedCallError, LimitedProcess

ROOT = Path(__file__).parents[2]
# It takes exponential time.
BACKTRACKING = "(a*)*b"


@pytest.fixture(scope="module")
def process() -> Iterator[LimitedProcess]:
    with LimitedProcess() as started:
        yield started


def test_a_call_returns_what_the_function_returns(process: LimitedProcess) -> None:
    assert process.call(operator.mul, [1, 2], 2, seconds=5) == [1, 2, 1, 2]
    assert process.call(json.dumps, {"b": 1, "a": None}, seconds=5, sort_keys=True) == '{"a": null, "b": 1}'
    assert process.call(print, "what it prints is no answer", seconds=5) is None


def test_the_clock_of_a_call_starts_when_the_process_has_imported_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(1)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(limited_process, "_WAITING", 0.5)
    monkeypatch.setattr(limited_process, "_WAITING_PER_SECOND", 0.0)
    with LimitedProcess("slow_to_import") as slow:
        assert slow.call(operator.add, 1, 2, seconds=5) == 3


def test_an_expression_that_never_ends_is_stopped_and_the_next_call_is_answered(process: LimitedProcess) -> None:
    begin = time.monotonic()
    with pytest.raises(FailedCallError, match=r"it took more than 0\.2 s of processor time"):
        process.call(re.split, BACKTRACKING, "a" * 60, seconds=0.2)
    assert process.call(operator.add, 1, 1, seconds=5) == 2
    assert time.monotonic() - begin < 20


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timer of processor time")
def test_a_signal_that_the_caller_ignores_ends_the_call_all_the_same() -> None:
    before = signal.signal(signal.SIGPROF, signal.SIG_IGN)
    held = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
    try:
        with LimitedProcess() as process, pytest.raises(FailedCallError, match="processor time"):
            process.call(re.split, BACKTRACKING, "a" * 60, seconds=0.2)
    finally:
        signal.signal(signal.SIGPROF, before)
        signal.pthread_sigmask(signal.SIG_SETMASK, held)


@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="this system has no signal for a pipe that nobody reads")
def test_a_process_whose_caller_was_killed_ends_without_a_traceback() -> None:
    request = {"module": "operator", "function": "add", "arguments": [1, 1], "options": {}, "seconds": 5}
    started = subprocess.Popen(
        [sys.executable, "-m", "autograder.limited_process"], stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=ROOT
    )
    assert started.stdin is not None
    assert started.stdout is not None
    assert started.stderr is not None
    with started:
        started.stdout.close()
        started.stdin.write(json.dumps(request).encode() + b"\n")
        started.stdin.flush()
        assert started.stderr.read() == b""
    assert started.returncode == -signal.SIGPIPE


def test_limits_are_counted_for_each_call_alone(process: LimitedProcess) -> None:
    assert [process.call(re.split, BACKTRACKING, "a" * 18, seconds=0.5) for _ in range(40)] == [["a" * 18]] * 40


def test_a_call_that_waits_is_stopped_by_the_clock(process: LimitedProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_process, "_WAITING", 0.3)
    monkeypatch.setattr(limited_process, "_WAITING_PER_SECOND", 0.0)
    with pytest.raises(FailedCallError, match="not done"):
        process.call(time.sleep, 60, seconds=1)


def test_an_error_is_reported_and_the_process_goes_on(process: LimitedProcess) -> None:
    with pytest.raises(FailedCallError, match="it raised ValueError: invalid literal"):
        process.call(int, "no number", seconds=5)
    assert process.call(operator.add, 1, 1, seconds=5) == 2


def test_memory_is_limited(process: LimitedProcess) -> None:
    pytest.importorskip("resource")
    with pytest.raises(FailedCallError, match="MemoryError"):
        process.call(operator.mul, "x", limited_process.MEMORY, seconds=5)


def test_the_process_ends_with_its_object() -> None:
    started = LimitedProcess()
    started.call(operator.add, 1, 1, seconds=5)
    child = started._process
    assert child is not None
    del started
    assert child.poll() is not None
