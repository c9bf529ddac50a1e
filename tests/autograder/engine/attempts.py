"""What student code may try, one function a thing. Each returns what came of it as plain data; none of them decides anything.

They run in the sandbox, as root and as an ordinary user, and, to see that they can succeed at all, outside of it.
"""

# Beside system calls, paths are what the kernel takes: text.
# ruff: noqa: PTH102, PTH108, PTH120, PTH123, PTH208

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.engine.sandbox import linux, seccomp


@dataclass(frozen=True)
class Facts:
    """What an attacker is assumed to know of the machine.

    Attributes:
        secret: a file outside that everybody may read.
        open_folder: a folder outside that everybody may write to.
        port: where something listens for TCP, outside.
        abstract: the name of an abstract socket outside.
        victim: a process outside, of the same user.
        setuid: a program that gives root's rights to whoever starts it, or empty.
        grader: a folder of the grader's that lies beside the libraries.
        project: the folder of the course.
    """

    secret: str
    open_folder: str
    port: int
    abstract: str
    victim: int
    setuid: str
    grader: str
    project: str


def refusal(work: Callable[[], Any]) -> Any:
    """Return what something returns, or the name of the error that it ended with."""
    try:
        return work()
    except MemoryError:
        return "MemoryError"
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, type(error).__name__)


def who(facts: Facts) -> Any:
    """Ask who one is."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    return {
        "user": os.getuid(),
        "groups": [os.getgid(), *os.getgroups()],
        "capabilities": [int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")],
        "new privileges": status["NoNewPrivs"],
        "filter": status["Seccomp"],
        "process": os.getpid(),
        "host": socket.gethostname(),
    }


def see_processes(facts: Facts) -> Any:
    """Look for processes of others."""
    return refusal(lambda: sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))


def read_secret(facts: Facts) -> Any:
    """Read somebody else's file by its name, and by the way round through other processes."""
    ways = [
        facts.secret,
        f"/proc/1/root{facts.secret}",
        f"/proc/{facts.victim}/root{facts.secret}",
        f"/.old{facts.secret}",
    ]
    return [refusal(lambda way=way: Path(way).read_text()) for way in ways]


def list_homes(facts: Facts) -> Any:
    """Look into the folders in which people keep things."""
    return {folder: refusal(lambda folder=folder: os.listdir(folder)) for folder in ("/root", "/home", "/etc", "/var")}


def see_project(facts: Facts) -> Any:
    """Look for the course itself."""
    return refusal(lambda: sorted(os.listdir(facts.project)))


def see_grader(facts: Facts) -> Any:
    """Look for the solutions beside the libraries."""
    return refusal(lambda: sorted(os.listdir(facts.grader)))


def write_outside(facts: Facts) -> Any:
    """Write wherever a file may be made."""
    places = [
        facts.open_folder,
        "/",
        "/usr",
        "/etc",
        "/dev",
        "/proc",
        "/var/tmp",
        os.path.dirname(os.__file__),
        sys.prefix,
    ]
    return {place: refusal(lambda place=place: _write(f"{place}/mine-{os.getpid()}")) for place in places}


def write_open_folder(facts: Facts) -> Any:
    """Write where everybody may."""
    return refusal(lambda: _write(f"{facts.open_folder}/mine-{os.getpid()}"))


def write_scratch(facts: Facts) -> Any:
    """Write where one may."""
    return refusal(lambda: _write("note"))


def _write(path: str) -> str:
    Path(path).write_text("x")
    os.unlink(path)
    return "written"


def fill_scratch(facts: Facts) -> Any:
    """Write more in all than there is room for, in files that are each small enough."""

    def fill() -> str:
        for index in range(6):
            Path(f"part{index}").write_bytes(bytes(2**20))
        return "written"

    return refusal(fill)


def make_many_files(facts: Facts) -> Any:
    """Make more files than there may be; each is empty."""

    def make() -> str:
        os.mkdir("many")
        for index in range(2000):
            os.close(os.open(f"many/{index}", os.O_CREAT | os.O_WRONLY))
        return "made"

    return refusal(make)


def write_large_file(facts: Facts) -> Any:
    """Write one file that is larger than any may be."""

    def write() -> str:
        with open("large", "wb") as file:
            for _ in range(5):
                file.write(bytes(2**20))
        return "written"

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    return refusal(write)


def open_sockets(facts: Facts) -> Any:
    """Ask for a socket of every family, plain and in pairs."""

    def family(call: int, number: int) -> str:
        pair = (ctypes.c_int * 2)()
        result = ctypes.CDLL(None, use_errno=True).syscall(call, number, socket.SOCK_DGRAM, 0, pair)
        if result < 0:
            return errno.errorcode[ctypes.get_errno()]
        return "open"

    machine = platform.machine()
    return {
        str(number): [family(seccomp._SOCKET[machine], number), family(seccomp._SOCKETPAIR[machine], number)]
        for number in range(46)
    }


def connect_tcp(facts: Facts) -> Any:
    """Speak to somebody on this machine."""
    return refusal(lambda: socket.create_connection(("127.0.0.1", facts.port), 5).close() or "connected")


def connect_abstract(facts: Facts) -> Any:
    """Speak to somebody through a socket that has no place in the file system."""
    with socket.socket(socket.AF_UNIX) as connection:
        return refusal(lambda: connection.connect(facts.abstract) or "connected")


def signal_outside(facts: Facts) -> Any:
    """Ask a process outside whether it is there, and everybody to continue."""
    return refusal(lambda: os.kill(facts.victim, signal.SIGCONT) or "sent")


def gain_privileges(facts: Facts) -> Any:
    """Become root through a program that makes people root."""
    return refusal(
        lambda: subprocess.run([facts.setuid, "-u"], capture_output=True, text=True, check=False).stdout.strip()
    )


def change_user(facts: Facts) -> Any:
    """Become root by asking for it."""
    return refusal(lambda: os.setuid(0) or "root")


def allocate(facts: Facts) -> Any:
    """Take 200 MiB."""
    return refusal(lambda: len(bytearray(200 * 2**20)))


def map_shared(facts: Facts) -> Any:
    """Take 200 MiB that are shared."""
    import mmap

    return refusal(lambda: len(mmap.mmap(-1, 200 * 2**20)))


def burn(facts: Facts) -> Any:
    """Compute for longer than one may; where nothing stops it, for a while."""
    while time.process_time() < 2.6:
        pass
    return "done"


def fork_often(facts: Facts) -> Any:
    """Start forty processes at once."""

    def fork() -> str:
        started = []
        try:
            for _ in range(40):
                child = os.fork()
                if not child:
                    signal.pause()
                started.append(child)
        finally:
            for child in started:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
        return "started"

    return refusal(fork)


def open_often(facts: Facts) -> Any:
    """Have a hundred files open."""

    def have() -> str:
        files = [os.open("/dev/null", os.O_RDONLY) for _ in range(100)]
        for file in files:
            os.close(file)
        return "opened"

    return refusal(have)


def raise_limits(facts: Facts) -> Any:
    """Take back what limits there are."""
    kinds = ("RLIMIT_AS", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_NOFILE", "RLIMIT_NPROC", "RLIMIT_CORE")
    return {
        kind: [
            resource.getrlimit(getattr(resource, kind)),
            _raised(getattr(resource, kind)),
        ]
        for kind in kinds
    }


def _raised(kind: int) -> str:
    try:
        resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    except (OSError, ValueError) as error:
        return type(error).__name__
    return "raised"


def make_calls(facts: Facts) -> Any:
    """Make each call that the filter lists, with arguments that ask for nothing, and new threads of each kind of namespace."""
    machine, libc = platform.machine(), ctypes.CDLL(None, use_errno=True)
    column = 0 if machine == "x86_64" else 1

    def call(number: int, *arguments: int) -> str:
        wide = [ctypes.c_long(item) for item in (*arguments, *[0] * (6 - len(arguments)))]
        if libc.syscall(ctypes.c_long(number), *wide) >= 0:
            return "done"
        return errno.errorcode.get(ctypes.get_errno(), str(ctypes.get_errno()))

    nothing = {"personality": (0xFFFFFFFF,), "ptrace": (16, 2**22 + 1), "kcmp": (1, 1), "reboot": (0, 0), "vhangup": ()}
    answers = {
        name: call(numbers[column], *nothing.get(name, ()))
        for name, numbers in seccomp._REFUSED.items()
        if numbers[column] >= 0
    }
    flags = {
        "clone new mounts": linux.CLONE_NEWNS, "clone new users": linux.CLONE_NEWUSER, "clone new network": linux.CLONE_NEWNET,
        "clone new processes": linux.CLONE_NEWPID,
    }  # fmt: skip
    for name, flag in flags.items():
        answers[name] = _clone(seccomp._CLONE[machine], flag)
    return {**answers, "clone3": call(seccomp._CLONE3)}


def _clone(number: int, flag: int) -> str:
    result = ctypes.CDLL(None, use_errno=True).syscall(
        ctypes.c_long(number), ctypes.c_long(flag | signal.SIGCHLD), 0, 0, 0, 0
    )
    if not result:
        os._exit(0)  # the clone
    return "done" if result > 0 else errno.errorcode[ctypes.get_errno()]


def mount_something(facts: Facts) -> Any:
    """Change what can be seen."""
    return [
        refusal(lambda: linux.mount("tmpfs", "/tmp", "tmpfs") or "mounted"),
        refusal(lambda: linux.unmount("/proc") or "unmounted"),
        refusal(lambda: linux.unshare(linux.CLONE_NEWUSER) or "new"),
        refusal(lambda: linux.pivot_root(".", ".") or "turned"),
    ]


def leave_daemons(facts: Facts) -> Any:
    """Leave processes behind: one in a session of its own, and one whose parents have gone. Each would show that it lives."""

    def leave() -> str:
        for _ in range(2):
            if not os.fork():
                os.setsid()
                if not os.fork():
                    signal.signal(signal.SIGHUP, signal.SIG_IGN)
                    null = os.open("/dev/null", os.O_RDWR)
                    for descriptor in range(64):
                        if descriptor != null:
                            os.dup2(null, descriptor)
                    ctypes.CDLL(None).prctl(15, b"tfcourse-daemon")  # the name that it goes by
                    time.sleep(1000)
                os._exit(0)
            os.wait()
        return "left"

    return refusal(leave)


ALL: dict[str, Callable[[Facts], Any]] = {
    function.__name__: function
    for function in (
        who, see_processes, read_secret, list_homes, see_grader, see_project, write_outside, write_open_folder, write_scratch, fill_scratch,
        make_many_files, write_large_file, open_sockets, connect_tcp, connect_abstract, signal_outside, gain_privileges, change_user,
        allocate, map_shared, burn, fork_often, open_often, raise_limits, make_calls, mount_something, leave_daemons,
    )
}  # fmt: skip
# What would harm the machine where nothing holds it, or says nothing there.
NOT_OUTSIDE = {"mount_something", "make_calls"}
