"""The filter refuses what it lists, on both architectures, and nothing that an exercise needs."""

from __future__ import annotations

import errno
import fcntl
import socket
import struct

import pytest

from autograder.engine.sandbox import linux, seccomp

from .bpf import run

MACHINES = ("x86_64", "aarch64")
ALLOW, KILL = 0x7FFF0000, 0x80000000


def refused(number: int) -> int:
    return 0x00050000 | number


# What a notebook cannot do without: numbers on x86_64 and aarch64.
NEEDED = {
    "read": (0, 63), "write": (1, 64), "openat": (257, 56), "close": (3, 57), "mmap": (9, 222), "mprotect": (10, 226),
    "munmap": (11, 215), "brk": (12, 214), "futex": (202, 98), "clock_gettime": (228, 113), "getpid": (39, 172),
    "wait4": (61, 260), "exit_group": (231, 94), "pipe2": (293, 59), "getrandom": (318, 278),
    "rt_sigaction": (13, 134), "kill": (62, 129), "prlimit64": (302, 261), "sched_getaffinity": (204, 123), "sendto": (44, 206),
    "recvfrom": (45, 207), "ppoll": (271, 73), "statx": (332, 291), "prctl": (157, 167), "madvise": (28, 233),
}  # fmt: skip


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def column(machine: str) -> int:
    return MACHINES.index(machine)


def test_each_listed_call_is_refused_and_every_other_number_is_not(machine: str) -> None:
    code = seccomp.build_filter(machine)
    listed = {numbers[column(machine)] for numbers in seccomp._REFUSED.values()} - {-1}
    # These are looked at more closely, below.
    special = {seccomp._CLONE[machine], seccomp._CLONE3, seccomp._SOCKET[machine], seccomp._SOCKETPAIR[machine]}
    special |= set(seccomp._FORKS[machine])
    for number in set(range(600)) - special:
        assert run(code, machine, number) == (refused(errno.EPERM) if number in listed else ALLOW), number


def test_what_notebooks_need_passes_and_programs_and_the_pages_of_files_do_not(machine: str) -> None:
    code, at = seccomp.build_filter(machine), column(machine)
    assert {name for name, numbers in NEEDED.items() if run(code, machine, numbers[at]) != ALLOW} == set()
    # execve and execveat; and what tells which pages of a file are in memory
    for numbers in ((59, 221), (322, 281), (327, 286), (27, 232), (451, 451), (221, 223), (187, 213)):
        assert run(code, machine, numbers[at]) == refused(errno.EPERM)


def test_threads_start_and_copies_and_namespaces_do_not(machine: str) -> None:
    code, clone = seccomp.build_filter(machine), seccomp._CLONE[machine]
    thread, copies = 0x3D0F00, (0x01200011, 17, 0x4111)  # of fork, of the plain call, of vfork
    namespaces = (
        linux.CLONE_NEWNS, linux.CLONE_NEWCGROUP, linux.CLONE_NEWUTS, linux.CLONE_NEWIPC, linux.CLONE_NEWUSER, linux.CLONE_NEWPID,
        linux.CLONE_NEWNET, 0x80,
    )  # fmt: skip
    assert run(code, machine, clone, thread) == ALLOW
    for flags in copies:
        assert run(code, machine, clone, flags) == refused(errno.EPERM)
    for number in seccomp._FORKS[machine]:
        assert run(code, machine, number) == refused(errno.EPERM)
    for flag in namespaces:
        for flags in (flag, flag | 17, flag | 0x3D0F00):
            assert run(code, machine, clone, flags) == refused(errno.EPERM)
    assert run(code, machine, seccomp._CLONE3, 1, 88) == refused(errno.ENOSYS)


def test_sockets_are_those_of_this_machine_only(machine: str) -> None:
    code = seccomp.build_filter(machine)
    for call in (seccomp._SOCKET[machine], seccomp._SOCKETPAIR[machine]):
        for family in range(64):
            expected = ALLOW if family == socket.AF_UNIX else refused(errno.EAFNOSUPPORT)
            assert run(code, machine, call, family) == expected
        # The kernel looks at the lower half of the argument, and so does the filter.
        assert run(code, machine, call, (7 << 32) | socket.AF_INET) == refused(errno.EAFNOSUPPORT)


def test_a_terminal_takes_no_typed_characters(machine: str) -> None:
    code, ioctl = seccomp.build_filter(machine), seccomp._IOCTL[machine]
    for request in (0x5412, 0x541C, (1 << 32) | 0x5412):
        assert run(code, machine, ioctl, 0, request) == refused(errno.EPERM)
    assert run(code, machine, ioctl, 0, 0x5401) == ALLOW


def test_no_file_is_locked_and_no_event_sends_a_signal_of_choice(machine: str) -> None:
    code, call = seccomp.build_filter(machine), seccomp._FCNTL[machine]
    refused_commands = {command for command in range(2048) if run(code, machine, call, 3, command) != ALLOW}
    names = ("GETLK", "SETLK", "SETLKW", "OFD_GETLK", "OFD_SETLK", "OFD_SETLKW", "SETSIG", "SETLEASE", "NOTIFY")
    assert refused_commands == {getattr(fcntl, f"F_{name}") for name in names}
    assert run(code, machine, call, 3, fcntl.F_SETFD) == ALLOW


def test_a_call_by_another_architecture_ends_the_process(machine: str) -> None:
    code = seccomp.build_filter(machine)
    assert run(code, "i386", 20) == KILL
    assert run(code, MACHINES[1 - column(machine)], 20) == KILL


def test_the_second_set_of_numbers_of_x86_is_not_there() -> None:
    code = seccomp.build_filter("x86_64")
    for number in (0, 41, 101, 165, 272, 520):
        assert run(code, "x86_64", 0x40000000 | number) == refused(errno.ENOSYS)
    assert run(code, "x86_64", -1) == refused(errno.ENOSYS)


def test_only_the_calls_of_the_driver_come_back_for_cuda(machine: str) -> None:
    plain, cuda = seccomp.build_filter(machine), seccomp.build_filter(machine, cuda=True)
    changed = {number for number in range(600) if run(plain, machine, number) != run(cuda, machine, number)}
    assert changed == {seccomp._REFUSED[name][column(machine)] for name in seccomp._CUDA_NEEDS}


def test_the_program_is_one_that_the_kernel_takes(machine: str) -> None:
    instructions = list(struct.iter_unpack("<HBBI", seccomp.build_filter(machine)))
    assert len(instructions) <= 4096
    for at, (code, if_true, if_false, _) in enumerate(instructions):
        if code & 7 == 5:
            assert at + 1 + max(if_true, if_false) < len(instructions)
    assert instructions[-1][0] == 6
