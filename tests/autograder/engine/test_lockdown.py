"""What student code tries in the sandbox, as root and as an ordinary user, and how each attempt goes where nothing holds it."""

# Beside system calls, paths are what the kernel takes: text.
# ruff: noqa: PTH120, PTH208

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from autograder.engine.sandbox import landlock, linux, lockdown, seccomp
from autograder.engine.sandbox.lockdown import LAYERS, NAMESPACES, RESTRICTIONS, ROOT
from autograder.engine.sandbox.settings import level_of

from .confined import in_child

PROGRAM = Path(__file__).with_name("inside.py")
# Started by root, the same program is tried as an ordinary user too. An ordinary user has only itself to try.
USERS = ("same", "ordinary") if os.getuid() == 0 else ("same",)


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


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest) -> str:
    return str(request.param)


Found = Callable[[str], Any]


@pytest.fixture
def outside(user: str) -> Found:
    """What an attempt comes to where nothing holds it."""
    return lambda name: tried("outside", user)[name]["found"]


@pytest.fixture
def inside(user: str) -> Found:
    """What an attempt comes to in the sandbox."""
    return lambda name: tried("sandbox", user)[name]["found"]


@pytest.fixture
def restricted(user: str) -> Found:
    """What an attempt comes to without namespaces."""
    return lambda name: tried("restricted", user)[name]["found"]


def test_an_ordinary_user_was_tried_and_every_layer_was_on() -> None:
    users = {tried("outside", user)["who"]["found"]["user"] for user in USERS}
    assert users - {0}, "nobody but root was tried"
    for user in USERS:
        attempts = [item for item in tried("sandbox", user).values() if isinstance(item, dict)]
        assert len(attempts) > 20
        assert all(item["layers"] == list(LAYERS) for item in attempts)
        assert level_of(tuple(attempts[0]["layers"])) == "sandbox"
        assert tried("sandbox", user)["moved in"] == [*NAMESPACES, "private root"]


def test_student_code_is_nobody_with_no_rights_at_all(inside: Found, outside: Found) -> None:
    assert outside("who")["new privileges"] == outside("who")["filter"] == "0"
    assert outside("who")["capabilities"][3]
    assert inside("who") == {
        "user": lockdown.INSIDE,
        "groups": [lockdown.INSIDE],
        "capabilities": [0] * 5,
        "new privileges": "1",
        "filter": "2",
        "process": 1,
        "host": "sandbox",
    }


def test_other_processes_are_not_to_be_seen(inside: Found, outside: Found) -> None:
    assert len(outside("see_processes")) > 3
    assert inside("see_processes") == [1]


def test_files_of_others_cannot_be_read_by_any_way(inside: Found, outside: Found) -> None:
    assert outside("read_secret")[0] == outside("read_secret")[2] == "treasure"
    assert inside("read_secret") == ["ENOENT"] * 4


def test_homes_and_the_systems_accounts_are_not_there(inside: Found, outside: Found) -> None:
    assert isinstance(outside("list_homes")["/home"], list)
    assert len(outside("list_homes")["/etc"]) > 20
    found = inside("list_homes")
    assert {"shadow", "hosts", "resolv.conf", "ssh", "hostname"}.isdisjoint(found["/etc"])
    for folder in ("/home", "/root", "/var"):
        python = [path for path in (sys.prefix, sys.base_prefix) if path.startswith(f"{folder}/")]
        assert found[folder] in ("ENOENT", sorted({Path(path).relative_to(folder).parts[0] for path in python}))


def test_of_the_course_and_the_grader_nothing_is_there_but_python(inside: Found, outside: Found) -> None:
    assert "tfcourse" in outside("see_project")
    assert "tfcourse" not in inside("see_project")
    assert "autograder" not in inside("see_project")
    assert len(outside("see_grader")) > 3
    assert inside("see_grader") == []


def test_nothing_can_be_written_outside_of_the_scratch_folder(inside: Found, outside: Found) -> None:
    assert outside("write_open_folder") == "written"
    assert "written" in outside("write_outside").values()
    assert set(inside("write_outside").values()) <= {"ENOENT", "EROFS", "EACCES"}
    assert inside("write_open_folder") == "ENOENT"
    assert inside("write_scratch") == "written"


@pytest.mark.parametrize(
    ("attempt", "succeeds", "error"),
    [
        ("fill_scratch", "written", "ENOSPC"),
        ("make_many_files", "made", "ENOSPC"),
        ("write_large_file", "written", "EFBIG"),
        ("allocate", 200 * 2**20, "MemoryError"),
        ("map_shared", 200 * 2**20, "ENOMEM"),
        ("fork_often", "started", "EPERM"),
        ("open_often", "opened", "EMFILE"),
    ],
)
def test_more_than_the_limit_is_refused(attempt: str, succeeds: Any, error: str, inside: Found, outside: Found) -> None:
    assert outside(attempt) == succeeds
    assert inside(attempt) == error


def test_processor_time_past_the_limit_ends_the_process(user: str, outside: Found) -> None:
    assert outside("burn") == "done"
    assert "found" not in tried("sandbox", user)["burn"]
    assert tried("sandbox", user)["end of burn"] == -signal.SIGKILL
    assert tried("restricted", user)["end of burn"] == -signal.SIGXCPU


def test_limits_cannot_be_raised_and_no_memory_image_is_written(inside: Found, outside: Found) -> None:
    """Linux gives a memory image to a program that core_pattern names, as root and outside, unless the limit is exactly 1."""
    assert outside("raise_limits")["RLIMIT_AS"][1] == "raised"
    found = inside("raise_limits")
    assert {answer for _, answer in found.values()} == {"ValueError"}
    assert found["RLIMIT_CORE"][0] == [1, 1]
    assert resource.RLIM_INFINITY not in {bound for bounds, _ in found.values() for bound in bounds}


def test_there_is_no_network_of_any_family(inside: Found, outside: Found) -> None:
    unix, ip = "1", "2"
    assert outside("open_sockets")[ip][0] == "open"
    assert outside("connect_tcp") == "connected"
    found = inside("open_sockets")
    assert found.pop(unix) == ["open", "open"]
    assert {answer for answers in found.values() for answer in answers} == {"EAFNOSUPPORT"}
    assert inside("connect_tcp") == "EAFNOSUPPORT"


def test_nobody_outside_can_be_spoken_to_or_signalled(user: str, inside: Found, outside: Found) -> None:
    assert outside("connect_abstract") == "connected"
    assert outside("signal_outside") == "sent"
    assert inside("connect_abstract") == "ECONNREFUSED"
    assert inside("signal_outside") == "ESRCH"
    assert tried("sandbox", user)["victim"] is None


def test_a_program_that_makes_people_root_makes_nobody_root(inside: Found, restricted: Found, outside: Found) -> None:
    assert inside("gain_privileges") == restricted("gain_privileges") == "EPERM"  # no program can be started at all
    assert inside("change_user") == "EINVAL"
    if os.getuid() == 0:
        # Only root can make such a program.
        assert outside("gain_privileges") == "0"


@pytest.mark.parametrize(
    "call", [*(name for name, numbers in seccomp._REFUSED.items() if numbers[0] >= 0), "clone new users"]
)
def test_each_call_on_the_list_is_refused(call: str, inside: Found) -> None:
    assert inside("make_calls")[call] == "EPERM"


def test_clone_in_its_new_form_is_not_there_and_namespaces_cannot_be_had_by_the_old_one(inside: Found) -> None:
    found = inside("make_calls")
    assert found.pop("clone3") == "ENOSYS"
    assert {answer for name, answer in found.items() if name.startswith("clone new")} == {"EPERM"}


def test_without_the_filter_the_kernel_would_say_something_else_to_most_of_these_calls(user: str) -> None:
    answers = tried("unfiltered", user)["make_calls"]["found"]
    assert sum(answer != "EPERM" for answer in answers.values()) > 40
    done = {"unshare", "memfd_secret", "personality", "msgget", "process_vm_readv", "clone new users"}
    assert {answers[name] for name in done} == {"done"}


def test_mounts_and_namespaces_cannot_be_changed(inside: Found) -> None:
    assert inside("mount_something") == ["EPERM"] * 4


def test_no_process_is_left_behind(user: str, inside: Found, outside: Found) -> None:
    assert outside("leave_daemons") == "left"
    assert inside("leave_daemons") == "EPERM"
    assert tried("outside", user)["left behind"] == 2
    assert tried("sandbox", user)["left behind"] == 0


def test_a_kernel_without_filters_gives_a_sandbox_that_says_so(user: str) -> None:
    layers = tried("unfiltered", user)["make_calls"]["layers"]
    assert layers == [layer for layer in LAYERS if layer != "system call filter"]
    assert level_of(tuple(layers)) == "none"


class TestWithoutNamespaces:
    """The level between: no private root, and still no way to files, network and processes of others."""

    def test_it_says_which_layers_it_has(self, user: str) -> None:
        assert tried("restricted", user)["who"]["layers"] == list(RESTRICTIONS)
        assert level_of(RESTRICTIONS) == "restricted"

    def test_files_of_others_can_neither_be_read_nor_written(self, restricted: Found) -> None:
        assert set(restricted("read_secret")) <= {"EACCES", "ENOENT"}
        assert set(restricted("list_homes").values()) == {"EACCES"}
        assert restricted("see_project") == restricted("see_processes") == restricted("write_open_folder") == "EACCES"
        assert set(restricted("write_outside").values()) <= {"EACCES", "ENOENT"}
        assert restricted("write_scratch") == "written"

    def test_there_is_no_network_and_nobody_to_speak_to(self, restricted: Found) -> None:
        assert restricted("connect_tcp") == "EAFNOSUPPORT"
        assert restricted("connect_abstract") == "EPERM"
        assert restricted("signal_outside") == "EPERM"

    def test_its_limits_hold(self, restricted: Found) -> None:
        assert restricted("allocate") == "MemoryError"
        assert restricted("map_shared") == "ENOMEM"
        assert restricted("open_often") == "EMFILE"
        assert restricted("write_large_file") == "EFBIG"

    def test_it_has_no_rights_and_cannot_get_any(self, restricted: Found) -> None:
        inherited, permitted, effective, _, ambient = restricted("who")["capabilities"]
        # What could be had from a program with capabilities is cut off by no_new_privs; only root may take it off the list.
        assert inherited == permitted == effective == ambient == 0
        assert restricted("who")["new privileges"] == "1"
        assert restricted("mount_something") == ["EPERM"] * 4
        refused = {name: answer for name, answer in restricted("make_calls").items() if name != "clone3"}
        assert set(refused.values()) == {"EPERM"}


def layers_of_a_restricted_process() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return in_child(lambda: lockdown.lock_down(lockdown.Limits(), namespaces=False, scratch=folder))


def test_a_layer_that_the_system_does_not_offer_is_left_out_of_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    assert layers_of_a_restricted_process() == list(RESTRICTIONS)
    with monkeypatch.context() as patch:
        patch.setattr(landlock, "version", lambda: 0)
        assert layers_of_a_restricted_process() == [layer for layer in RESTRICTIONS if layer != "landlock"]
    with monkeypatch.context() as patch:
        patch.setattr(seccomp, "available", lambda: False)
        assert layers_of_a_restricted_process() == [layer for layer in RESTRICTIONS if layer != "system call filter"]


def test_a_layer_that_is_offered_and_fails_stops_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **named: Any) -> None:
        raise OSError("it does not work")

    for module, name in (
        (landlock, "restrict"),
        (seccomp, "install"),
        (linux, "drop_capabilities"),
        (resource, "setrlimit"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, fail)
            with pytest.raises(RuntimeError, match="it does not work"):
                layers_of_a_restricted_process()


def test_the_probe_finds_every_layer_and_without_namespaces_those_that_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert in_child(lockdown.probe) == list(LAYERS)

    def refuse(flags: int) -> None:
        raise PermissionError("unshare: Operation not permitted")

    monkeypatch.setattr(linux, "unshare", refuse)
    assert in_child(lockdown.probe) == list(RESTRICTIONS)


def test_the_levels_are_made_of_layers() -> None:
    assert level_of(LAYERS) == "sandbox"
    for missing in (*NAMESPACES, *ROOT):
        assert level_of(tuple(layer for layer in LAYERS if layer != missing)) == "restricted"
    for missing in RESTRICTIONS:
        assert level_of(tuple(layer for layer in LAYERS if layer != missing)) == "none"


def test_the_view_shows_python_and_the_system_and_masks_only_what_is_there(tmp_path: Path) -> None:
    view = lockdown.python_view([str(tmp_path), str(tmp_path / "missing")])
    assert view.masked == (str(tmp_path),)
    for path in (sys.prefix, sys.base_prefix, os.path.dirname(os.__file__)):
        assert any(path == shown or path.startswith(f"{shown}/") for shown in view.readable)
    assert not {"/", "/etc", "/home", "/root", "/tmp", "/var", "/proc"} & set(view.readable)
