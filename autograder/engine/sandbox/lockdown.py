"""Put the process that runs a student's code into a sandbox.

The sandbox has two steps. The zygote enters namespaces and a private root directory once; this directory contains Python, the system's
libraries and none of the instructor's files. Each forked child then locks itself down: its own process tree, network, scratch folder and
user, resource limits, Landlock and a system call filter. Every step is a named layer. The child reports its active layers; the checker
stops if there are fewer than the settings require.

Protects against:

- reading or changing files of the grader, of the lecturer or of other submissions
- seeing, signalling or tracing other processes, and processes that outlive the submission
- every network connection, and shared memory
- filling memory, disk or process table; endless CPU time
- regaining privileges: capabilities are dropped, and set-user-ID programs give none

Does not protect against:

- kernel vulnerabilities, and side channels through shared caches
- CUDA: the driver of a passed-in device is reachable, and address space is not limited
- changes of the student's process to itself: the checker trusts none of its answers
- missing layers on systems that offer fewer (isolation ``restricted`` or ``none``)
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import sysconfig
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autograder.engine.sandbox import landlock, linux, seccomp

NAMESPACES = (
    "user namespace", "process namespace", "mount namespace", "network namespace", "ipc namespace", "host name namespace",
)  # fmt: skip
ROOT = ("private root", "scratch limit")
RESTRICTIONS = ("resource limits", "no capabilities", "no new privileges", "landlock", "system call filter")
LAYERS = (*NAMESPACES, *ROOT, *RESTRICTIONS)

# The user of student code inside the sandbox. Outside it is nobody, or the user who started the grader.
INSIDE, NOBODY = 1000, 65534
# The host counts processes and the buffers of pipes by user: each zygote has its own, so that no submission uses up another's.
_OWN_USERS = 2_000_000_000
SCRATCH = "/tmp"
WORK, HOME, SHARED_MEMORY = f"{SCRATCH}/work", f"{SCRATCH}/home", "/dev/shm"
# This mount hides a folder of the host, so it is below one that holds neither a course nor a Python.
PACKAGES = "/run/tfcourse/packages"

# System files that programs need beside their own.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_CONFIGURATION = (
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/fonts", "/etc/alternatives",
)  # fmt: skip
_DEVICES = ("null", "zero", "full", "random", "urandom")
_CUDA_DEVICES = ("nvidia0", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps", "nvidia-modeset", "dri")


@dataclass(frozen=True)
class Limits:
    """Resource limits of a sandboxed process tree."""

    memory_mb: int | None = 4096  # MiB of address space that one process may add after its start; None for no limit
    cpu_seconds: int = 900  # seconds of CPU time of one process
    processes: int = 64  # processes and threads at once
    scratch_mb: int = 256  # MiB in the scratch folder, which lies in memory
    files: int = 512  # open files of one process


@dataclass(frozen=True)
class FilesystemView:
    """The part of the file system that a sandboxed process sees."""

    readable: tuple[str, ...]  # files and folders of the host, mounted read-only at the same path
    masked: tuple[str, ...] = ()  # subfolders of ``readable`` that appear empty
    packages: str = ""  # a folder of the host that appears as ``PACKAGES``, or empty
    cuda: bool = False  # whether the NVIDIA devices are passed in


def python_view(masked: Sequence[str] = (), *, packages: str = "", cuda: bool = False) -> FilesystemView:
    """Return the view with the files that Python needs: the system's programs and libraries, and Python's own."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, *sysconfig.get_paths().values()}
    candidates = [*_SYSTEM, *_CONFIGURATION, *sorted(prefixes)]
    existing = list(dict.fromkeys(os.path.abspath(path) for path in candidates if os.path.lexists(path)))
    # A folder includes all paths below it.
    topmost = [path for path in existing if not any(_is_below(path, other) for other in existing)]
    return FilesystemView(tuple(topmost), tuple(path for path in masked if os.path.isdir(path)), packages, cuda)


def _is_below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/") and not os.path.islink(folder)


def enter_private_root(new_root: str, view: FilesystemView, wait_for: Callable[[], None] | None = None) -> list[str]:
    """Move this single-threaded process into its own namespaces and root.

    The function returns in another process, the first of a new process namespace. The caller's process stays outside and ends with it.

    Args:
        new_root: an empty folder of the host, for the new root.
        view: the visible files.
        wait_for: called inside the namespaces while all files are still visible, for instance to import modules that will be hidden.

    Returns:
        The names of the layers that are active.

    Raises:
        OSError: if the system does not allow it; the text names the call.
    """
    _enter_namespaces()
    if wait_for is not None:
        wait_for()
    linux.mount("", "/", flags=linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("tmpfs", new_root, "tmpfs", linux.MS_NOSUID, "size=4m,mode=0755")
    _populate_root(new_root, view)
    os.mkdir(f"{new_root}/.old")
    linux.pivot_root(new_root, f"{new_root}/.old")
    os.chdir("/")
    linux.unmount("/.old")
    os.rmdir("/.old")
    linux.mount("", "/", flags=linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | linux.MS_NOSUID)
    return [*NAMESPACES, "private root"]


def _enter_namespaces() -> None:
    """Fork twice into new namespaces and return in the grandchild, while this process and the child wait for it."""
    ready, go = os.pipe(), os.pipe()
    user, group = os.getuid(), os.getgid()
    child = os.fork()
    if child:
        _write_id_maps(child, ready, go, user, group)
        _wait_and_exit(child)
    die_with_parent()
    for descriptor in (ready[0], go[1]):
        os.close(descriptor)
    linux.unshare(
        linux.CLONE_NEWUSER
        | linux.CLONE_NEWPID
        | linux.CLONE_NEWNS
        | linux.CLONE_NEWNET
        | linux.CLONE_NEWIPC
        | linux.CLONE_NEWUTS
    )
    os.write(ready[1], b"1")
    if os.read(go[0], 1) != b"1":
        os._exit(1)
    for descriptor in (ready[1], go[0]):
        os.close(descriptor)
    linux.set_host_name("sandbox")
    if inner := os.fork():
        _wait_and_exit(inner)
    die_with_parent()


def _write_id_maps(child: int, ready: tuple[int, int], go: tuple[int, int], user: int, group: int) -> None:
    """Write the user and group maps of a child's namespace: only an outside process may map more than one id."""
    os.close(ready[1])
    os.close(go[0])
    if os.read(ready[0], 1) == b"1":
        with suppress(OSError):
            if user == 0:
                _write_map(f"/proc/{child}/uid_map", user, [_OWN_USERS + child, NOBODY])
                _write_map(f"/proc/{child}/gid_map", group, [NOBODY])
            else:
                _write_map(f"/proc/{child}/uid_map", user, [])
                Path(f"/proc/{child}/setgroups").write_text("deny", encoding="ascii")
                _write_map(f"/proc/{child}/gid_map", group, [])
            os.write(go[1], b"1")
    os.close(ready[0])
    os.close(go[1])


def _write_map(path: str, root: int, students: Sequence[int]) -> None:
    """Write an id map: the namespace's root is ``root`` outside, a student's process the first of ``students`` that can be mapped."""
    for student in students:
        with suppress(OSError):  # a container may have few ids
            Path(path).write_text(f"0 {root} 1\n{INSIDE} {student} 1\n", encoding="ascii")
            return
    Path(path).write_text(f"0 {root} 1\n", encoding="ascii")


def _wait_and_exit(child: int) -> None:
    """Close all files, wait for a child, and exit with its exit status."""
    os.closerange(3, 4096)
    _, status = os.waitpid(child, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0x7F)


def die_with_parent() -> None:
    """Make the kernel kill this process when the thread that started it ends."""
    linux.prctl(linux.PR_SET_PDEATHSIG, int(signal.SIGKILL))


def _populate_root(root: str, view: FilesystemView) -> None:
    for path in view.readable:
        _bind_read_only(root, path)
    if view.packages:
        _bind_mount(view.packages, root + PACKAGES, linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV)
    for path in view.masked:
        if not os.path.isdir(root + path):
            continue  # the folder is outside the view
        linux.mount(
            "tmpfs", root + path, "tmpfs", linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV, "size=4k,mode=0755"
        )
    for folder in ("/proc", SHARED_MEMORY, SCRATCH):
        os.makedirs(root + folder, exist_ok=True)
    for name in (*_DEVICES, *(_CUDA_DEVICES if view.cuda else ())):
        if os.path.exists(f"/dev/{name}"):
            _bind_mount(f"/dev/{name}", f"{root}/dev/{name}", linux.MS_NOSUID | linux.MS_NOEXEC)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1")):
        os.symlink(target, f"{root}/dev/{name}")
    linux.mount("proc", f"{root}/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    # Programs look up their user; the accounts of the host stay hidden.
    os.makedirs(f"{root}/etc", exist_ok=True)
    Path(f"{root}/etc/passwd").write_text(f"student:x:{INSIDE}:{INSIDE}::{HOME}:/bin/sh\n", encoding="ascii")
    Path(f"{root}/etc/group").write_text(f"student:x:{INSIDE}:\n", encoding="ascii")


def _bind_read_only(root: str, path: str) -> None:
    if os.path.islink(path):
        target = os.readlink(path)
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        os.symlink(target, root + path)
        real = os.path.realpath(path)
        if not os.path.lexists(root + real):
            _bind_read_only(root, real)
        return
    _bind_mount(path, root + path, linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV)


def _bind_mount(source: str, target: str, flags: int) -> None:
    _create_mount_point(source, target)
    linux.mount(source, target, flags=linux.MS_BIND | linux.MS_REC)
    linux.set_mount_attributes(target, flags)


def _create_mount_point(source: str, target: str) -> None:
    """Create the folder or file on which another one is mounted."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o644))


class ProcessNamespaces:
    """Forks each child as the first process of a new process namespace."""

    def __init__(self) -> None:
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)

    def fork(self) -> int:
        """Fork. When the child ends, all other processes in its namespace are killed."""
        linux.unshare(linux.CLONE_NEWPID)
        try:
            child = os.fork()
        finally:
            if "child" not in locals() or child:
                linux.setns(self._own, linux.CLONE_NEWPID)
        if not child:
            os.close(self._own)
        return child


def raise_file_limit() -> None:
    """Raise this process's limit on open files to the maximum.

    The same limit applies to descriptors in transit through sockets, counted over all processes of a user: a student's descriptors must
    not use up the grader's.
    """
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def lock_down(limits: Limits, *, namespaces: bool, cuda: bool = False, scratch: str = "") -> list[str]:
    """Lock down this just-forked process for student code, irrevocably.

    Args:
        limits: its resource limits.
        namespaces: whether the zygote runs in namespaces and a private root.
        cuda: whether it may use NVIDIA devices.
        scratch: the only writable folder if there is no private root.

    Returns:
        The names of the layers that are active.

    Raises:
        OSError: if a step fails that the system offers. Then no student code may run.
    """
    active: list[str] = []
    if namespaces:
        _enter_own_namespaces(limits)
        active += [*NAMESPACES, *ROOT]
    elif scratch:
        os.chdir(scratch)
    _set_resource_limits(limits, cuda=cuda)
    active.append("resource limits")
    if namespaces:
        _become_unprivileged()
    linux.drop_capabilities()
    active.append("no capabilities")
    os.setsid()
    die_with_parent()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    active.append("no new privileges")
    if landlock.abi_version():
        writable = [SCRATCH, "/dev"] if namespaces else [scratch, "/dev/null"]
        landlock.restrict(["/"] if namespaces else _paths_without_root(), [path for path in writable if path])
        active.append("landlock")
    if seccomp.is_available():
        seccomp.install(cuda=cuda)
        active.append("system call filter")
    return active


def _enter_own_namespaces(limits: Limits) -> None:
    linux.unshare(linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS)
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    hidden = {folder: os.open(folder, os.O_PATH | os.O_CLOEXEC) for folder in (SCRATCH, SHARED_MEMORY)}
    inodes = max(1024, limits.scratch_mb * 64)
    linux.mount(
        "tmpfs",
        SCRATCH,
        "tmpfs",
        linux.MS_NOSUID | linux.MS_NODEV,
        f"size={limits.scratch_mb}m,nr_inodes={inodes},mode=1777",
    )
    os.umask(0o022)
    for folder in (WORK, HOME, f"{SCRATCH}/shm"):
        os.mkdir(folder)
        os.chmod(folder, 0o1777)
    linux.mount(f"{SCRATCH}/shm", SHARED_MEMORY, flags=linux.MS_BIND)
    for folder, descriptor in hidden.items():
        _mount_hidden_python(f"/proc/self/fd/{descriptor}", folder)
        os.close(descriptor)
    os.chdir(WORK)


def _mount_hidden_python(hidden: str, folder: str) -> None:
    """Mount this Python again if its folder for temporary files was hidden by a mount.

    As elsewhere, Python is read-only and the folder around it belongs to the student.
    """
    device = os.stat(hidden).st_dev
    for entry in os.scandir(hidden):
        path = f"{folder}/{entry.name}"
        if entry.is_symlink():
            os.symlink(os.readlink(entry.path), path)
        elif entry.stat(follow_symlinks=False).st_dev != device:
            _create_mount_point(entry.path, path)
            linux.mount(entry.path, path, flags=linux.MS_BIND | linux.MS_REC)
        else:
            os.makedirs(path, exist_ok=True)
            _mount_hidden_python(entry.path, path)


def _set_resource_limits(limits: Limits, *, cuda: bool) -> None:
    import resource  # not available on Windows, where only the names of layers are used

    bounds = {
        # With 0, a core_pattern that begins with a pipe still starts its program, as root and outside; with 1 the kernel writes nothing.
        resource.RLIMIT_CORE: 1,
        resource.RLIMIT_CPU: limits.cpu_seconds,
        resource.RLIMIT_FSIZE: limits.scratch_mb * 2**20,
        resource.RLIMIT_MEMLOCK: 2**16,
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_NICE: 0,
        resource.RLIMIT_NOFILE: limits.files,
        resource.RLIMIT_NPROC: limits.processes,
        resource.RLIMIT_RTPRIO: 0,
        resource.RLIMIT_SIGPENDING: 1024,
    }
    # CUDA reserves more addresses than there is memory; only the watch on resident memory limits it.
    if limits.memory_mb is not None and not cuda:
        limit_memory(limits.memory_mb)
    for kind, bound in bounds.items():
        _, hard = resource.getrlimit(kind)
        lowest = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        # The last second of CPU time lets Python report the limit. The first process of a namespace does not receive the signal that
        # begins this second; it is killed at its end.
        resource.setrlimit(
            kind, (lowest, lowest + 1 if kind == resource.RLIMIT_CPU and hard == resource.RLIM_INFINITY else lowest)
        )


def limit_memory(memory_mb: int) -> None:
    """Limit, irrevocably, the MiB of address space that this process may add to its current size."""
    import resource

    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    # Rounded, so that the limit does not depend on single pages.
    mapped = -(-pages * os.sysconf("SC_PAGE_SIZE") // 2**26) * 2**26
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = mapped + memory_mb * 2**20
    lowest = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
    resource.setrlimit(resource.RLIMIT_AS, (lowest, lowest))


def _become_unprivileged() -> None:
    """Become an unprivileged user in an unprivileged user namespace."""
    mapped = len(Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()) > 1
    if mapped:
        os.setgroups([])
        os.setresgid(INSIDE, INSIDE, INSIDE)
        os.setresuid(INSIDE, INSIDE, INSIDE)
        # Changing the user makes /proc/self unwritable for its owner, and the map below is written there.
        linux.prctl(linux.PR_SET_DUMPABLE, 1)
    user, group = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{INSIDE} {group} 1\n", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{INSIDE} {user} 1\n", encoding="ascii")


def _paths_without_root() -> list[str]:
    """Return the readable paths without a private root: programs, libraries and Python's part of home folders."""
    return [
        path
        for path in (*python_view().readable, "/proc/self", "/dev/null", "/dev/urandom", "/dev/random")
        if _is_public(path)
    ]


def _is_public(path: str) -> bool:
    try:
        return bool(os.stat(path).st_mode & (stat.S_IROTH | stat.S_IRUSR))
    except OSError:
        return False


def probe_layers() -> list[str]:
    """Try all isolation layers in a separate process, and return the available ones."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        _try_layers(writing)
    os.close(writing)
    with os.fdopen(reading, "r", encoding="ascii") as answers:
        active = answers.read().split("\n")
    os.waitpid(child, 0)
    return [layer for layer in LAYERS if layer in active]


def _try_layers(writing: int) -> None:
    """Try all layers or, if that fails, those without namespaces; report the active layers and exit."""
    import tempfile

    folder = tempfile.mkdtemp(prefix="tfcourse-")
    attempt = os.fork()
    if not attempt:
        try:
            enter_private_root(folder, python_view())
            namespaces = ProcessNamespaces()
            inner = namespaces.fork()
            if inner:
                os.waitpid(inner, 0)
            else:
                os.write(writing, "\n".join(lock_down(Limits(), namespaces=True)).encode() + b"\n")
        except OSError:
            pass
        os._exit(0)
    os.waitpid(attempt, 0)
    with suppress(OSError):
        os.rmdir(folder)
    with suppress(OSError):
        os.write(writing, "\n".join(lock_down(Limits(), namespaces=False)).encode() + b"\n")
    os._exit(0)


if __name__ == "__main__":
    import json

    sys.stdout.write(json.dumps(probe_layers()))
