"""The files that a notebook finds beside it when it runs: those of the assignment, and what else the student has handed in."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

MAX_BYTES = 64 * 1024 * 1024
MAX_FILES = 1_000
# What is no business of the notebook's.
_SKIPPED_SUFFIXES = frozenset({".ipynb"})
_SKIPPED_NAMES = frozenset({"timestamp.txt", ".ipynb_checkpoints", "__pycache__"})


def files_beside(folders: Sequence[Path]) -> dict[str, str]:
    """Return the files in some folders as text (base64), by their path within the folder.

    Links are not followed, and devices, sockets and pipes never opened: a submission may hold any of them. What goes beyond the size
    or the number that is allowed is left out.

    Args:
        folders: where to look; of two files with one name that of the later folder counts, so the course's own comes last.
    """
    found: dict[str, str] = {}
    left = MAX_BYTES
    for folder in folders:
        if folder.is_symlink() or folder.parent.is_symlink():
            continue
        for path in _regular_files(folder):
            name = path.relative_to(folder).as_posix()
            data = _read(path, left) if len(found) < MAX_FILES else None
            if data is not None:
                left -= len(data)
                found[name] = base64.b64encode(data).decode("ascii")
    return found


def _regular_files(folder: Path) -> Iterator[Path]:
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_NAMES)
        for name in sorted(names):
            path = Path(place) / name
            if path.suffix not in _SKIPPED_SUFFIXES and name not in _SKIPPED_NAMES:
                yield path


def _read(path: Path, limit: int) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode) or about.st_size > limit:
            return None
        return file.read(limit)
