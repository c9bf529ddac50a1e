"""Create temporary folders that are removed even if their process is killed: the next run removes them."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from time import time

PREFIX = "tfcourse-"
# The processes that use a folder lock this file in it; the system releases the lock when the last of them ends, even if it is killed.
LOCK = "in-use"
# A new folder may not be locked yet.
_YOUNG_SECONDS = 60.0


def locked_temp_folder() -> tuple[str, int]:
    """Create a temporary folder, and return it with its lock's descriptor, which child processes inherit."""
    folder = tempfile.mkdtemp(prefix=PREFIX)
    handle = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return folder, handle


def remove_abandoned_folders() -> None:
    """Remove this user's folders of :func:`locked_temp_folder` that no process uses any more."""
    with suppress(OSError):
        for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with suppress(OSError):
                _remove_if_unlocked(folder)


def _remove_if_unlocked(folder: Path) -> None:
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
        return
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if time() - os.fstat(handle).st_mtime > _YOUNG_SECONDS:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(handle)
