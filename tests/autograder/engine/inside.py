"""A program that makes the attempts of ``attempts.toml`` at one level of isolation and prints what came of each, as JSON.

It is started on its own, as a zygote is, so that what it gives up is given up for good: ``python inside.py LEVEL USER FOLDER``.
``LEVEL`` is ``outside``, ``sandbox``, ``restricted`` or ``unfiltered`` (a sandbox on a kernel without filters);
``USER`` is ``same`` or ``ordinary``;
``FOLDER`` is an empty folder of the host that everybody may read.
"""

# Beside system calls, paths are what the kernel takes: text.
# ruff: noqa: PTH102, PTH103, PTH120

from __future__ import annotations

import ctypes
import errno
import json
import os
import platform
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[2]
# What the code of an attempt may use beside what `_made` gives it.
IMPORTS = """import mmap, os, resource, signal, socket, subprocess, sys, time
from pathlib import Path
from autograder.engine.sandbox import linux, seccomp
"""
ATTEMPTS: dict[str, dict[str, str]] = tomllib.loads((HERE / "attempts.toml").read_text(encoding="utf-8"))


def main(level: str, user: str, folder: str) -> None:
    """Prepare the ground, let another process try everything, and print what it tells and what is left of it."""
    if user == "ordinary" and os.getuid() == 0:
        _become_ordinary(level, folder)
    sys.path[:0] = [str(PROJECT)]
    listener = socket.create_server(("127.0.0.1", 0))
    abstract = f"\0tfcourse-{os.getpid()}"
    named = socket.socket(socket.AF_UNIX)
    named.bind(abstract)
    named.listen()
    victim = subprocess.Popen(["/bin/sleep", "1000"])
    # What an attacker is assumed to know of the machine.
    facts = {
        "secret": f"{folder}/secret",
        "open_folder": f"{folder}/open",
        "port": listener.getsockname()[1],
        "abstract": abstract,
        "victim": victim.pid,
        "setuid": f"{folder}/scratch/gain_privileges/id",
        "grader": str(Path(os.path.dirname(shutil.__file__), "email")),
        "project": str(PROJECT),
    }
    reading, writing = os.pipe()
    runner = os.fork()
    if not runner:
        os.close(reading)
        _run(level, folder, facts, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as lines:
        found = {key: value for line in lines for key, value in json.loads(line).items()}
    os.waitpid(runner, 0)
    found["left behind"] = _end_daemons(os.getpid())
    found["victim"] = victim.poll()
    victim.kill()
    victim.wait()
    print(json.dumps(found))


def _become_ordinary(level: str, folder: str) -> None:
    """Go on as a user without any rights, who can read this Python wherever it lies; for nobody else does anything change."""
    sys.path[:0] = [str(PROJECT)]
    from autograder.engine.sandbox import linux

    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    needed = sorted({sys.prefix, sys.base_prefix, str(PROJECT / "autograder"), str(HERE)})
    hidden = {path: top for path in needed if (top := _closed(path))}
    for number, path in enumerate(hidden):
        os.mkdir(f"{folder}/{number}")
        linux.mount(path, f"{folder}/{number}", flags=linux.MS_BIND | linux.MS_REC)
    for top in sorted(set(hidden.values())):
        linux.mount("tmpfs", top, "tmpfs", options="mode=0755")
    for number, path in enumerate(hidden):
        os.makedirs(path)
        linux.mount(f"{folder}/{number}", path, flags=linux.MS_BIND | linux.MS_REC)
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    os.execv(sys.executable, [sys.executable, "-P", __file__, level, "same", folder])


def _closed(path: str) -> str:
    """Return the first folder on the way to a path that others may not enter, or nothing."""
    way = [*reversed(Path(path).parents), Path(path)]
    return next((str(part) for part in way if not part.stat().st_mode & stat.S_IXOTH), "")


def _run(level: str, folder: str, facts: dict[str, Any], writing: int) -> None:
    from autograder.engine.sandbox import lockdown, seccomp

    limits = lockdown.Limits(memory_mb=128, cpu_seconds=1, processes=16, scratch_mb=4, files=64)
    fork: Callable[[], int] = os.fork
    if level in ("sandbox", "unfiltered"):
        view = lockdown.python_view([facts["grader"]], packages=f"{folder}/packages")
        _tell(writing, {"moved in": lockdown.enter_private_root(f"{folder}/root", view)})
        fork = lockdown.ProcessNamespaces().fork
        facts = facts | {"setuid": f"{lockdown.PACKAGES}/id"}
    if level == "unfiltered":
        seccomp.is_available = lambda: False
    for name, attempt in ATTEMPTS.items():
        if level not in attempt or "code" not in attempt:
            continue
        child = fork()
        if not child:
            scratch = f"{folder}/scratch/{name}"
            if level in ("restricted", "outside"):
                os.makedirs(scratch, exist_ok=True)
                os.chdir(scratch)
            if level != "outside":
                layers = lockdown.lock_down(limits, namespaces=level != "restricted", scratch=scratch)
                _tell(writing, {f"layers of {name}": layers})
            _tell(writing, {name: _made(attempt["code"], facts)})
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status:
            _tell(writing, {name: os.waitstatus_to_exitcode(status)})
    os._exit(0)


def of(work: Callable[[], Any]) -> Any:
    """Return what something returns, or the name of the error that it ended with."""
    try:
        return work()
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)
    except (MemoryError, ValueError) as error:
        return type(error).__name__


def _made(code: str, facts: dict[str, Any]) -> Any:
    from autograder.engine.sandbox import seccomp

    library, machine = ctypes.CDLL(None, use_errno=True), platform.machine()

    def call(number: int, *arguments: Any) -> str:
        words = [item if isinstance(item, ctypes.Array) else ctypes.c_long(item) for item in arguments]
        if library.syscall(ctypes.c_long(number), *words, *[ctypes.c_long(0)] * (6 - len(words))) >= 0:
            return "done"
        return errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))

    def clone(flag: int) -> str:
        made = library.syscall(ctypes.c_long(seccomp._CLONE[machine]), ctypes.c_long(flag | signal.SIGCHLD), 0, 0, 0, 0)
        if not made:
            os._exit(0)  # the clone
        return "done" if made > 0 else errno.errorcode[ctypes.get_errno()]

    def write(path: str) -> str:
        Path(path).write_text("x", encoding="ascii")
        Path(path).unlink()
        return "written"

    pair = (ctypes.c_int * 2)()
    names = {**locals(), **facts, "of": of}
    failure = of(lambda: exec(IMPORTS + code, names))
    return names.get("it") if failure is None else failure


def _tell(writing: int, what: dict[str, Any]) -> None:
    os.write(writing, json.dumps(what).encode() + b"\n")


def _end_daemons(since: int) -> int:
    """End the processes that an attempt has left behind, and return how many there were."""
    time.sleep(0.1)  # one that has just been started may not have its name yet
    found = 0
    for entry in Path("/proc").iterdir():
        try:
            daemon = entry.name.isdigit() and (entry / "comm").read_bytes() == b"tfcourse-daemon\n"
            if daemon and int(entry.name) > since and (entry / "comm").stat().st_uid == os.getuid():
                os.kill(int(entry.name), signal.SIGKILL)
                found += 1
        except OSError:
            continue
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
