"""Whether a process has ever had anybody beside its first thread: another thread, or a process that it has made."""

from __future__ import annotations

import os

# Taken by name, so that nothing that student code does to a module changes what is asked here.
from os import close, getpid, open, read

# Its last word is the last number that was given to a thread or process, in the namespace of whoever reads.
_NUMBERS = "/proc/loadavg"


def is_single_threaded() -> bool:
    """Return whether it is certain that this process, the first of its namespace, has never had company.

    Elsewhere the numbers are those of strangers, too, and nothing is certain. After the last number the kernel does not begin again with
    the first ones, so company that was there once is never forgotten.
    """
    if getpid() != 1:
        return False
    try:
        descriptor = open(_NUMBERS, os.O_RDONLY | os.O_CLOEXEC)
        try:
            return read(descriptor, 128).split()[-1] == b"1"
        finally:
            close(descriptor)
    except (OSError, IndexError):
        return False
