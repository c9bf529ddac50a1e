"""Restrict this process's file access with Landlock, irrevocably and independently of mounts.

Protects against:

- reading, writing or executing files outside the listed paths, by any user and through any mount
- TCP connections (from version 4 of the interface), and abstract sockets of and signals to processes outside (from version 6)

Does not protect against:

- files and sockets that are open already
- UDP and named sockets below a listed path: the network namespace and the private root keep those away
- rights that an older kernel does not know; it restricts the others
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from autograder.engine.sandbox.linux import (
    SYS_LANDLOCK_ADD_RULE,
    SYS_LANDLOCK_CREATE_RULESET,
    SYS_LANDLOCK_RESTRICT_SELF,
    syscall,
)

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
# The file rights of each version of the interface: an unknown right would be an error.
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_ALL_FILE_RIGHTS = (1 << 16) - 1
_TCP = 0b11
_SCOPES = 0b11  # abstract sockets of outside processes, and signals to them
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_ON_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_PATH_BENEATH = 1


def abi_version() -> int:
    """Return the version of Landlock's ABI in this kernel; 0 without Landlock."""
    try:
        return syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, 1, call="landlock")
    except OSError:
        return 0


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Restrict this process and its children to the given paths, irrevocably.

    This also removes TCP and, where the kernel can, signals and abstract sockets to outside processes. Open files stay open.

    Args:
        readable: files and folders to read and execute.
        writable: files and folders with all rights.

    Raises:
        OSError: if the kernel has no Landlock, or ``no_new_privs`` is not set.
    """
    abi = abi_version()
    files = _FILE_RIGHTS.get(abi, _ALL_FILE_RIGHTS)
    attributes = struct.pack("QQQ", files, _TCP if abi >= 4 else 0, _SCOPES if abi >= 6 else 0)
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    ruleset = syscall(SYS_LANDLOCK_CREATE_RULESET, ctypes.create_string_buffer(attributes), size, 0, call="landlock")
    try:
        for paths, rights in ((readable, _READING), (writable, files)):
            for path in paths:
                _allow_path(ruleset, path, rights & files)
        syscall(SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0, call="landlock_restrict_self")
    finally:
        os.close(ruleset)


def _allow_path(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # a missing path needs no permission
    try:
        if not os.path.isdir(path):
            rights &= _ON_A_FILE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, descriptor))
        syscall(SYS_LANDLOCK_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0, call="landlock_add_rule")
    finally:
        os.close(descriptor)
