"""Landlock takes away what is not named, for whoever runs and whatever is mounted."""

# Beside system calls, paths are what the kernel takes: text.

from __future__ import annotations

import errno
import os
from typing import Any

import pytest

from autograder.engine.sandbox import landlock, linux


@pytest.mark.parametrize("abi_version", [1, 2, 3, 4, 5, 6, 7, 99])
def test_an_older_interface_is_asked_for_no_more_than_it_knows(
    abi_version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bytes] = []

    def syscall(number: int, *arguments: Any, call: str) -> int:
        if number == linux.SYS_LANDLOCK_CREATE_RULESET:
            asked.append(bytes(arguments[0])[: arguments[1]])
            return os.open("/dev/null", os.O_RDONLY)
        return 0

    monkeypatch.setattr(landlock, "abi_version", lambda: abi_version)
    monkeypatch.setattr(landlock, "syscall", syscall)
    landlock.restrict([], [])
    rights, *rest = (int.from_bytes(asked[0][at : at + 8], "little") for at in range(0, len(asked[0]), 8))
    assert rights.bit_length() == {1: 13, 2: 14, 3: 15, 4: 15}.get(abi_version, 16)
    assert rest == ([] if abi_version < 4 else [3] if abi_version < 6 else [3, 3])


def test_a_kernel_without_it_has_version_nought(monkeypatch: pytest.MonkeyPatch) -> None:
    assert landlock.abi_version() >= 1

    def missing(*arguments: Any, call: str) -> int:
        raise OSError(errno.ENOSYS, call)

    monkeypatch.setattr(landlock, "syscall", missing)
    assert landlock.abi_version() == 0
