"""Write files atomically, so that each file has its old or its new content, even after a crash."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from autograder.errors import CourseError

# `tempfile` appends so many letters to a name.
_RANDOM = 8


@contextmanager
def staged_file(
    path: Path, data: bytes, *, at: Path | None = None, durable: bool = True, mode: int | None = None
) -> Iterator[Path]:
    """Write a temporary file for a block that moves it, and delete it afterwards if it is still there.

    Args:
        path: the target.
        data: the contents.
        at: the temporary file; by default the target's name with ``.part``.
        durable: whether to flush to the disk before the block begins, so that the contents survive a power cut.
        mode: the permissions; by default those of the umask.
    """
    draft = at or path.with_name(f"{path.name}.part")
    draft.parent.mkdir(parents=True, exist_ok=True)
    # Delete it first: a link of that name would redirect the contents.
    draft.unlink(missing_ok=True)
    try:
        with draft.open("xb") as file:
            if mode is not None:
                draft.chmod(mode)
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes, *, durable: bool = True, mode: int | None = None) -> None:
    """Write a file atomically, through a temporary file that replaces it.

    Args:
        data: the contents.
        durable: whether to flush to the disk, so that the file survives a power cut.
        mode: the permissions; by default those of the umask.
    """
    with staged_file(path, data, durable=durable, mode=mode) as draft:
        draft.replace(path)


def write_all_or_none(contents: Mapping[Path, bytes]) -> None:
    """Write several files, or none of them if one fails.

    Temporary files are written in full first, then each replaces its target. If a step fails, the previous files are restored.

    Raises:
        CourseError: if a folder or file cannot be written.
    """
    staged: dict[Path, Path] = {}
    before: dict[Path, bytes | None] = {}
    path: Path | None = None
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            staged[path] = _write_temporary(path, content)
        for path, temporary in staged.items():
            before[path] = path.read_bytes() if path.exists() else None
            temporary.replace(path)
    except OSError as error:
        _restore_files(before)
        raise CourseError(
            f"the file cannot be written ({error.strerror or error})",
            where=path,
            do="No file was changed by this. Check the folder's permissions and free space.",
        ) from error
    finally:
        for temporary in staged.values():
            temporary.unlink(missing_ok=True)


def remove_stale_temp_files(paths: Iterable[Path]) -> None:
    """Delete the temporary files that killed processes left beside these files."""
    for path in paths:
        for leftover in path.parent.glob(f".{escape(path.name)}.{'?' * _RANDOM}"):
            leftover.unlink(missing_ok=True)


def _write_temporary(path: Path, content: bytes) -> Path:
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


def _restore_files(before: Mapping[Path, bytes | None]) -> None:
    for path, content in before.items():
        with suppress(OSError):
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)
