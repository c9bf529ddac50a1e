"""Write files so that nobody ever sees half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from glob import escape
from pathlib import Path

from autograder.errors import CourseError

# So many letters puts `tempfile` behind a name.
_RANDOM = 8


def write_all_or_none(contents: Mapping[Path, bytes]) -> None:
    """Write several files, all or none.

    Each is first written in full beside its place, then all take their places. If that fails on the way, what was there before is put
    back.

    Raises:
        CourseError: if a folder or file cannot be written.
    """
    staged: dict[Path, Path] = {}
    before: dict[Path, bytes | None] = {}
    path: Path | None = None
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            staged[path] = _stage(path, content)
        for path, temporary in staged.items():
            before[path] = path.read_bytes() if path.exists() else None
            temporary.replace(path)
    except OSError as error:
        _restore(before)
        raise CourseError(
            f"the file cannot be written ({error.strerror or error})",
            where=path,
            do="No file was changed by this. Check the folder's permissions and free space.",
        ) from error
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)


def remove_stale_temp_files(paths: Iterable[Path]) -> None:
    """Take away what was left beside files whose writing was killed: it has all that they have, under names that nobody looks for."""
    for path in paths:
        for leftover in path.parent.glob(f".{escape(path.name)}.{'?' * _RANDOM}"):
            leftover.unlink(missing_ok=True)


def _stage(path: Path, content: bytes) -> Path:
    mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        temporary.chmod(mode)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _restore(before: Mapping[Path, bytes | None]) -> None:
    for path, content in before.items():
        with suppress(OSError):
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)
