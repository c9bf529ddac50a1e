"""What student code tries in the sandbox, as root and as an ordinary user, and how each attempt goes where nothing holds it."""

# Beside system calls, paths are what the kernel takes: text.
# ruff: noqa: PTH120, PTH208

from __future__ import annotations

import copy
import json
import os
import resource
import shutil
import signal  # noqa: F401 - for conditions of the table
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from autograder.engine.sandbox import landlock, linux, lockdown, seccomp
from autograder.engine.sandbox.lockdown import LAYERS, RESTRICTIONS

from .confined import in_child
from .inside import ATTEMPTS

PROGRAM = Path(__file__).with_name("inside.py")
# Started by root, the same program is tried as an ordinary user too. An ordinary user has only itself to try.
USERS = ("same", "ordinary") if os.getuid() == 0 else ("same",)
# Each with its layers.
LEVELS: dict[str, tuple[str, ...]] = {
    "outside": (),
    "sandbox": LAYERS,
    "restricted": RESTRICTIONS,
    "unfiltered": tuple(layer for layer in LAYERS if layer != "system call filter"),
}
python = (sys.prefix, sys.base_prefix)


@contextmanager
def ground() -> Iterator[Path]:
    """Yield a folder that everybody may read, with what the attempts look for."""
    folder = Path(tempfile.mkdtemp(prefix="tfcourse-ground-"))
    try:
        folder.chmod(0o755)
        for name, mode in (("open", 0o1777), ("scratch", 0o1777), ("root", 0o1777), ("packages", 0o755)):
            (folder / name).mkdir()
            (folder / name).chmod(mode)
        (folder / "secret").write_text("treasure")
        (folder / "scratch/gain_privileges").mkdir(mode=0o1777)
        (folder / "scratch/gain_privileges").chmod(0o1777)
        for place in ("packages", "scratch/gain_privileges"):
            shutil.copy(shutil.which("id") or "/usr/bin/id", folder / place / "id")
            (folder / place / "id").chmod(0o4755)
        yield folder
    finally:
        shutil.rmtree(folder)


@cache
def tried(level: str, user: str) -> dict[str, Any]:
    """Return what came of all attempts at a level of isolation."""
    with ground() as folder:
        ran = subprocess.run(
            [sys.executable, "-P", str(PROGRAM), level, user, str(folder)], capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        assert not os.listdir(folder / "open")
    return dict(json.loads(ran.stdout))


ROWS = [(name, level) for name, attempt in ATTEMPTS.items() for level in LEVELS if level in attempt]


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(("name", "level"), ROWS, ids=[f"{name} {level}" for name, level in ROWS])
def test_an_attempt_comes_to_what_the_level_of_isolation_lets_it_come_to(name: str, level: str, user: str) -> None:
    found = copy.deepcopy(tried(level, user)[name])
    assert eval(ATTEMPTS[name][level], {**globals(), "it": found}), found


def test_an_ordinary_user_was_tried_and_each_level_has_its_layers() -> None:
    assert {tried("outside", user)["who"]["user"] for user in USERS} - {0}, "nobody but root was tried"
    for level, expected in LEVELS.items():
        for user in USERS:
            layers = {tuple(value) for name, value in tried(level, user).items() if name.startswith("layers of ")}
            assert layers == ({expected} if level != "outside" else set()), (level, user)


def layers_of_a_restricted_process() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return in_child(lambda: lockdown.lock_down(lockdown.Limits(), namespaces=False, scratch=folder))


def test_a_layer_that_the_system_does_not_offer_is_left_out_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    assert layers_of_a_restricted_process() == list(RESTRICTIONS)
    with monkeypatch.context() as patch:
        patch.setattr(landlock, "abi_version", lambda: 0)
        assert layers_of_a_restricted_process() == [layer for layer in RESTRICTIONS if layer != "landlock"]
    with monkeypatch.context() as patch:
        patch.setattr(seccomp, "is_available", lambda: False)
        assert layers_of_a_restricted_process() == [layer for layer in RESTRICTIONS if layer != "system call filter"]


def test_a_layer_that_is_offered_and_fails_stops_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **named: Any) -> None:
        raise OSError("broken")

    for module, name in (
        (landlock, "restrict"),
        (seccomp, "install"),
        (linux, "drop_capabilities"),
        (resource, "setrlimit"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(RuntimeError, match="broken"):
                layers_of_a_restricted_process()


def test_the_probe_finds_every_layer_and_without_namespaces_those_that_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert in_child(lockdown.probe_layers) == list(LAYERS)

    def refuse(flags: int) -> None:
        raise PermissionError("unshare: Operation not permitted")

    monkeypatch.setattr(linux, "unshare", refuse)
    assert in_child(lockdown.probe_layers) == list(RESTRICTIONS)


def test_the_view_shows_python_and_the_system_and_masks_only_what_is_there(tmp_path: Path) -> None:
    view = lockdown.python_view([str(tmp_path), str(tmp_path / "missing")])
    assert view.masked == (str(tmp_path),)
    for path in (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)):
        assert any(path == shown or path.startswith(f"{shown}/") for shown in view.readable)
    assert not {"/", "/etc", "/home", "/root", "/tmp", "/var", "/proc"} & set(view.readable)
