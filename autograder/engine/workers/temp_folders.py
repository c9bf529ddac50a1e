"""Temporary folders that do not outlive their processes: what a run that was killed has left behind, the next one removes."""

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
# The processes that use a folder hold a lock on this file in it; the system takes it back when the last of them ends, in whatever way.
LOCK = "in-use"
# A folder that has just been made may not have been locked yet.
_YOUNG_SECONDS = 60.0


def locked_temp_folder() -> tuple[str, int]:
    """Make a temporary folder; return it, and the descriptor that says that it is in use, for those who share it to inherit."""
    folder = tempfile.mkdtemp(prefix=PREFIX)
    handle = os.open(f"{folder}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)
    return folder, handle


def remove_abandoned() -> None:
    """Remove the folders of this user's that :func:`locked_temp_folder` has made and that no process uses any more."""
    with suppress(OSError):
        for place in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
            with suppress(OSError):
                _remove_if_left(place)


def _remove_if_left(place: Path) -> None:
    about = place.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        return
    handle = os.open(place / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        if time() - os.fstat(handle).st_mtime > _YOUNG_SECONDS:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(place, ignore_errors=True)
    finally:
        os.close(handle)
