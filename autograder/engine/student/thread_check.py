"""Check whether this process has ever had a second thread or a child process."""

from __future__ import annotations

import os

# Imported by name, so that student code cannot replace these functions in their module.
from os import close, getpid, open, read

# Its last field is the last id given to a thread or process in the reader's namespace.
_NUMBERS = "/proc/loadavg"


def is_single_threaded() -> bool:
    """Return whether this process, the first of its namespace, certainly never had another thread or child.

    Outside such a namespace other processes use up ids, too, and the answer is False. After the last id the kernel does not start again
    from the first ones, so no thread is ever forgotten.
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
