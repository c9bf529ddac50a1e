"""Landlock takes away what is not named, for whoever runs and whatever is mounted."""

# Beside system calls, paths are what the kernel takes: text.
# ruff: noqa: PTH104, PTH208

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.engine.sandbox import landlock, linux

from .confined import in_child


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a file to read, and one to write to."""
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown/note").write_text("note")
    (tmp_path / "own").mkdir()
    (tmp_path / "secret").write_text("secret")
    return tmp_path


def attempt(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except OSError as error:
        return errno.errorcode[error.errno or 0]


def all_attempts(place: Path, address: tuple[str, int]) -> dict[str, Any]:
    return {
        "reads what is shown": attempt((place / "shown/note").read_text),
        "reads what is not": attempt((place / "secret").read_text),
        "lists what is not": attempt(lambda: len(os.listdir(place))),
        "writes to what is shown": attempt(lambda: (place / "shown/note").write_text("note")),
        "cuts what is shown": attempt(lambda: os.truncate(place / "shown/note", 4)),
        "writes to its own": attempt(lambda: (place / "own/file").write_text("x")),
        "moves out of its own": attempt(lambda: os.rename(place / "own/file", place / "shown/file")),
        "listens": attempt(lambda: socket.create_server(("127.0.0.1", 0)).close()),
        "connects": attempt(lambda: socket.create_connection(address, 5).close()),
    }


def test_what_is_not_named_is_taken_away_and_without_it_is_not(place: Path) -> None:
    def confined() -> dict[str, Any]:
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        landlock.restrict([str(place / "shown"), str(place / "missing")], [str(place / "own")])
        return all_attempts(place, address)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        free = in_child(lambda: all_attempts(place, address))
        held = in_child(confined)
    assert not {answer for answer in free.values() if isinstance(answer, str)} & set(errno.errorcode.values())
    assert held == {
        "reads what is shown": "note",
        "reads what is not": "EACCES",
        "lists what is not": "EACCES",
        "writes to what is shown": "EACCES",
        "cuts what is shown": "EACCES",
        "writes to its own": 1,
        "moves out of its own": "EACCES",
        "listens": "EACCES",
        "connects": "EACCES",
    }


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 6, 7, 99])
def test_an_older_interface_is_asked_for_no_more_than_it_knows(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bytes] = []

    def syscall(number: int, *arguments: Any, call: str) -> int:
        if number == linux.SYS_LANDLOCK_CREATE_RULESET:
            asked.append(bytes(arguments[0])[: arguments[1]])
            return os.open("/dev/null", os.O_RDONLY)
        return 0

    monkeypatch.setattr(landlock, "version", lambda: version)
    monkeypatch.setattr(landlock, "syscall", syscall)
    landlock.restrict([], [])
    rights, *rest = (int.from_bytes(asked[0][at : at + 8], "little") for at in range(0, len(asked[0]), 8))
    assert rights.bit_length() == {1: 13, 2: 14, 3: 15, 4: 15}.get(version, 16)
    assert rest == ([] if version < 4 else [3] if version < 6 else [3, 3])


def test_a_kernel_without_it_has_version_nought(monkeypatch: pytest.MonkeyPatch) -> None:
    assert landlock.version() >= 1

    def missing(*arguments: Any, call: str) -> int:
        raise OSError(errno.ENOSYS, call)

    monkeypatch.setattr(landlock, "syscall", missing)
    assert landlock.version() == 0
