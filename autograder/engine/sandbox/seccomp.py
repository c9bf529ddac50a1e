"""Filter system calls with seccomp: refuse calls that exercises do not need and sandbox escapes use.

The calls refused by name are listed in ``_REFUSED``; :func:`build_filter` adds copies of the process, and calls by their
arguments: namespaces, sockets, terminals and files.

Protects against:

- starting programs, such as a new interpreter without refusals and counters;
- copies of the process (``fork``; threads are allowed), so that one process answers for one submission;
- sockets other than AF_UNIX;
- new namespaces;
- the 32-bit call table;
- queries about which pages of a file are in memory;
- locks on files, through which two submissions could talk without a clock, and signals that would wake a stopped process.

Does not protect against:

- bugs in the allowed calls;
- timing of reads, which reveals whether a page was in memory.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from socket import AF_UNIX

from autograder.engine.sandbox.linux import PR_SET_SECCOMP, prctl

# Refused calls by name, in alphabetical order: numbers on x86_64 and aarch64 (``asm/unistd.h``); -1 if the architecture has no such
# call. A test makes each of them: one that needs harmless arguments gets them in ``tests/autograder/engine/attempts.toml``.
_REFUSED = {
    "acct": (163, 89), "add_key": (248, 217), "bpf": (321, 280), "chroot": (161, 51), "clock_adjtime": (305, 266),
    "clock_settime": (227, 112), "delete_module": (176, 106), "execve": (59, 221), "execveat": (322, 281),
    "fanotify_init": (300, 262), "finit_module": (313, 273), "flock": (73, 32), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fsopen": (430, 430), "fspick": (433, 433), "init_module": (175, 105), "inotify_init": (253, -1),
    "inotify_init1": (294, 26), "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "io_uring_setup": (425, 425),
    "ioperm": (173, -1), "iopl": (172, -1), "kcmp": (312, 272), "kexec_file_load": (320, 294), "kexec_load": (246, 104),
    "keyctl": (250, 219), "landlock_create_ruleset": (444, 444), "listmount": (458, 458), "lookup_dcookie": (212, 18),
    "mbind": (237, 235), "memfd_create": (319, 279), "memfd_secret": (447, 447), "migrate_pages": (256, 238),
    "modify_ldt": (154, -1), "mount": (165, 40), "mount_setattr": (442, 442), "move_mount": (429, 429),
    "move_pages": (279, 239), "mq_open": (240, 180), "msgget": (68, 186), "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42), "open_by_handle_at": (304, 265), "open_tree": (428, 428), "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241), "personality": (135, 92), "pidfd_getfd": (438, 438), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pivot_root": (155, 41), "process_madvise": (440, 440), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "ptrace": (101, 117), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "reboot": (169, 142), "request_key": (249, 218), "semget": (64, 190), "set_mempolicy": (238, 237),
    "setdomainname": (171, 162), "sethostname": (170, 161), "setns": (308, 268), "settimeofday": (164, 170),
    "shmget": (29, 194), "statmount": (457, 457), "swapoff": (168, 225), "swapon": (167, 224), "syslog": (103, 116),
    "timer_create": (222, 107), "umount2": (166, 39), "unshare": (272, 97), "userfaultfd": (323, 282), "vhangup": (153, 58),
    "vmsplice": (278, 75),
    # These tell or choose which pages of a file are in memory, which one submission could use to leave a message for another.
    "cachestat": (451, 451), "fadvise64": (221, 223), "mincore": (27, 232), "preadv2": (327, 286), "readahead": (187, 213),
}  # fmt: skip
# NVIDIA's driver creates anonymous files for its memory.
_CUDA_NEEDS = frozenset({"memfd_create", "mbind", "set_mempolicy", "personality"})
_CLONE = {"x86_64": 56, "aarch64": 220}
_CLONE3 = 435
# Copies of a process. On aarch64 clone alone makes them.
_FORKS = {"x86_64": (57, 58), "aarch64": ()}
_CLONE_THREAD = 0x10000
_SOCKET = {"x86_64": 41, "aarch64": 198}
_SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
_IOCTL = {"x86_64": 16, "aarch64": 29}
_FCNTL = {"x86_64": 72, "aarch64": 25}
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NAMESPACE_FLAGS = 0x7E020080  # every CLONE_NEW*, the time namespace's among them
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
# Commands of fcntl: locks of a process (5 to 7) and of an open file (36 to 38), the number of an event's signal, leases, a folder's events.
_REFUSED_COMMANDS = (5, 6, 7, 36, 37, 38, 10, 1024, 1026)
_X32 = 0x40000000

_LOAD, _JEQ, _JGE, _JSET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24  # offsets in struct seccomp_data, little-endian
_FILTER_MODE = 2


def install(*, cuda: bool = False) -> None:
    """Install the filter in this process and its children, irrevocably.

    Args:
        cuda: allow the few calls that NVIDIA's driver needs.

    Raises:
        OSError: if the kernel has no seccomp, or ``no_new_privs`` is not set.
    """
    code = build_filter(platform.machine(), cuda=cuda)
    instructions = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(instructions))
    prctl(PR_SET_SECCOMP, _FILTER_MODE, ctypes.create_string_buffer(header, len(header)))


def build_filter(machine: str, *, cuda: bool = False) -> bytes:
    """Return the filter as BPF instructions for an architecture, ``"x86_64"`` or ``"aarch64"``."""
    column = 0 if machine == "x86_64" else 1
    refused = sorted(
        numbers[column]
        for name, numbers in _REFUSED.items()
        if numbers[column] >= 0 and not (cuda and name in _CUDA_NEEDS)
    )
    lines = [
        _encode_instruction(_LOAD, _ARCHITECTURE),
        _encode_instruction(_JEQ, _AUDIT_ARCH[machine], 1, 0),
        _encode_instruction(_RETURN, _KILL),
        _encode_instruction(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        # The 32-bit call table has other numbers than those below.
        lines += [_encode_instruction(_JGE, _X32, 0, 1), _refuse_call(errno.ENOSYS)]
    for number in refused:
        lines += [_encode_instruction(_JEQ, number, 0, 1), _refuse_call(errno.EPERM)]
    # glibc falls back to clone, whose flags the filter can read.
    lines += [_encode_instruction(_JEQ, _CLONE3, 0, 1), _refuse_call(errno.ENOSYS)]
    namespaces = [_encode_instruction(_JSET, _NAMESPACE_FLAGS, 0, 1), _refuse_call(errno.EPERM)]
    lines += _match_call(
        _CLONE[machine],
        [
            _encode_instruction(_LOAD, _FIRST),
            *namespaces,
            _encode_instruction(_JSET, _CLONE_THREAD, 1, 0),
            _refuse_call(errno.EPERM),
        ],
    )
    for number in _FORKS[machine]:
        lines += [_encode_instruction(_JEQ, number, 0, 1), _refuse_call(errno.EPERM)]
    for call in (_SOCKET[machine], _SOCKETPAIR[machine]):
        lines += _match_call(
            call,
            [
                _encode_instruction(_LOAD, _FIRST),
                _encode_instruction(_JEQ, AF_UNIX, 1, 0),
                _refuse_call(errno.EAFNOSUPPORT),
            ],
        )
    for request in (_TIOCSTI, _TIOCLINUX):
        lines += _match_call(
            _IOCTL[machine],
            [_encode_instruction(_LOAD, _SECOND), _encode_instruction(_JEQ, request, 0, 1), _refuse_call(errno.EPERM)],
        )
    commands = [_encode_instruction(_LOAD, _SECOND)]
    for command in _REFUSED_COMMANDS:
        commands += [_encode_instruction(_JEQ, command, 0, 1), _refuse_call(errno.EPERM)]
    lines += _match_call(_FCNTL[machine], commands)
    return b"".join([*lines, _encode_instruction(_RETURN, _ALLOW)])


def _match_call(number: int, body: list[bytes]) -> list[bytes]:
    """Return instructions that run ``body`` for one call, and reload the call's number afterwards."""
    return [_encode_instruction(_JEQ, number, 0, len(body) + 1), *body, _encode_instruction(_LOAD, _NUMBER)]


def _refuse_call(number: int) -> bytes:
    return _encode_instruction(_RETURN, _ERRNO | number)


def _encode_instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def is_available() -> bool:
    """Return whether the kernel supports seccomp filters."""
    try:
        # A kernel with filters refuses the null address of the filter; a kernel without them refuses the request as invalid.
        prctl(PR_SET_SECCOMP, _FILTER_MODE, 0)
    except OSError as error:
        return error.errno == errno.EFAULT
    return True
