"""A mutant that never ends, takes all memory or ends its process costs nobody anything but itself."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

import pytest
import torch

from autograder.quizzes.mutation.limits import CRASHED, TOO_LONG, run_in_fork

MIB = 1 << 20


def loop() -> str:
    """Never end."""
    while True:
        pass


def sleep() -> str:
    """Wait for ever."""
    while True:
        time.sleep(1)


def eat() -> str:
    """Take a gibibyte, and say what came of it."""
    try:
        return str(torch.zeros(1024 * MIB, dtype=torch.uint8).sum())
    except RuntimeError:
        return "refused"


def leave() -> str:
    """End the process without a word."""
    os._exit(3)


def die() -> str:
    """Be killed, as by a kernel that has no memory left."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


@pytest.mark.parametrize(
    ("work", "answer"),
    [
        (lambda: "fine", "fine"),
        (loop, TOO_LONG),
        (sleep, TOO_LONG),
        (eat, "refused"),
        (leave, CRASHED),
        (die, CRASHED),
        (lambda: str(1 // 0), CRASHED),
    ],
)
def test_whatever_a_fork_does_is_answered(work: Callable[[], str], answer: str) -> None:
    assert run_in_fork(work, seconds=0.2, memory=512 * MIB)[0] == answer


def test_what_a_fork_changes_stays_there() -> None:
    changed: list[int] = []
    assert run_in_fork(lambda: changed.append(1) or "done", seconds=5, memory=512 * MIB)[0] == "done"
    assert changed == []
