"""The files of a folder or of a zip archive, read with care: names and sizes in a download are whatever somebody made them."""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from autograder.errors import CourseError
from autograder.grading.problem import Problem
from autograder.grading.reading import MAX_BYTES

MAX_FILES = 50_000
MAX_TOTAL_BYTES = 4 * 1024**3
# Text shrinks to a tenth, a notebook full of figures hardly at all; what shrinks to a two-hundredth is made to burst.
MAX_RATIO = 200
_NEVER_MEANT = frozenset({"__MACOSX", ".ipynb_checkpoints", "__pycache__", ".git"})


class RefusedError(Exception):
    """A file that is not read; the text says why."""


@dataclass
class Budget:
    """How much may be unpacked in all.

    Attributes:
        left: bytes that are left.
    """

    left: int = MAX_TOTAL_BYTES

    def spend(self, size: int) -> None:
        """Take note of bytes that were read.

        Raises:
            RefusedError: if there were too many.
        """
        self.left -= size
        if self.left < 0:
            raise RefusedError(f"The archive unpacks to more than {MAX_TOTAL_BYTES // 1024**3} GB.")


@dataclass(frozen=True)
class Entry:
    """A file of a download.

    Attributes:
        path: where it is, relative to the download; without any step upwards.
        date: when it was last changed, as far as that is known; of a zip archive without a time zone, taken for UTC.
        open: returns its content; raises :class:`RefusedError` if it must not or cannot be read.
    """

    path: PurePosixPath
    date: datetime | None = field(compare=False)
    open: Callable[[], bytes] = field(compare=False, repr=False)


def entries_of(source: Path) -> tuple[list[Entry], list[Problem]]:
    """Return the files of a folder or a zip archive, in the order of their names, and what was refused.

    Args:
        source: the folder or archive. Archives in it are looked into once.

    Raises:
        CourseError: if it is neither.
    """
    if source.is_dir():
        found, problems = _of_folder(source)
    elif source.is_file():
        try:
            found, problems = _of_zip(source.open("rb"), PurePosixPath(), Budget())
        except RefusedError as error:
            raise CourseError(str(error), where=source, do="Unpack it yourself, and name the folder.") from error
    else:
        raise CourseError(
            "there is no such file or folder", where=source, do="Name the folder or zip of the submissions."
        )
    unpacked: list[Entry] = []
    budget = Budget()
    for entry in found:
        if entry.path.suffix.lower() != ".zip":
            unpacked.append(entry)
            continue
        try:
            inner, refused = _of_zip(BytesIO(entry.open()), entry.path, budget)
        except RefusedError as error:
            inner, refused = [], [_refused(str(entry.path), str(error))]
        unpacked += inner
        problems += refused
    return sorted(unpacked, key=lambda entry: str(entry.path)), problems


def _refused(where: str, why: str) -> Problem:
    return Problem("file refused", why, where=where, do="Ask for the notebook alone, as .ipynb.")


def _of_folder(root: Path) -> tuple[list[Entry], list[Problem]]:
    found: list[Entry] = []
    problems: list[Problem] = []
    for folder, names, files in os.walk(root):
        names[:] = sorted(name for name in names if name not in _NEVER_MEANT)
        for name in sorted((*names, *files)):
            path = Path(folder) / name
            place = PurePosixPath(*path.relative_to(root).parts)
            if path.is_symlink():
                problems.append(_refused(str(place), "It is a link, and links are not followed."))
            elif path.is_file():
                date = datetime.fromtimestamp(path.stat().st_mtime, tz=UTC)
                found.append(Entry(place, date, partial(_read_file, path)))
        if len(found) > MAX_FILES:
            raise CourseError(
                f"there are more than {MAX_FILES} files", where=root, do="Name the folder of one chapter."
            )
    return found, problems


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _bounded(file)
    except OSError as error:
        raise RefusedError(f"It cannot be read ({error.strerror or error}).") from error


def _bounded(file: IO[bytes]) -> bytes:
    data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise RefusedError(f"It has more than {MAX_BYTES // 1024**2} MB.")
    return data


def _of_zip(file: BinaryIO, inside: PurePosixPath, budget: Budget) -> tuple[list[Entry], list[Problem]]:
    try:
        archive = zipfile.ZipFile(file)
        members = archive.infolist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise RefusedError(f"It is not a zip archive that can be read ({error}).") from error
    if len(members) > MAX_FILES:
        raise RefusedError(f"The archive has more than {MAX_FILES} files.")
    found: list[Entry] = []
    problems: list[Problem] = []
    for member in members:
        if member.is_dir():
            continue
        place = _place(member.filename)
        if place is None or (why := _suspicious(member)):
            why = "Its name leads out of the archive." if place is None else why
            problems.append(_refused(str(inside / member.filename.lstrip("/")), why))
        elif not _NEVER_MEANT & set(place.parts):
            found.append(Entry(inside / place, _date(member), partial(_read_member, archive, member, budget)))
    return found, problems


def _place(name: str) -> PurePosixPath | None:
    """Return a member's path, or None if it is absolute, has a drive, or climbs."""
    path = PurePosixPath(name.replace("\\", "/"))
    climbs = path.is_absolute() or ".." in path.parts or (path.parts and ":" in path.parts[0])
    return None if climbs or not path.parts or "\0" in name else path


def _suspicious(member: zipfile.ZipInfo) -> str:
    if stat.S_ISLNK(member.external_attr >> 16):
        return "It is a link, and links are not followed."
    if member.flag_bits & 0x1:
        return "It is encrypted."
    if member.file_size > MAX_BYTES:
        return f"It has {member.file_size / 1024**2:.0f} MB; {MAX_BYTES // 1024**2} MB are allowed."
    if member.file_size > 1024**2 and member.file_size > MAX_RATIO * max(member.compress_size, 1):
        return f"It unpacks to {member.file_size // max(member.compress_size, 1)} times its size."
    return ""


def _date(member: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*member.date_time, tzinfo=UTC)
    except ValueError:
        return None


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, budget: Budget) -> bytes:
    """Read a member as far as it is allowed to go, whatever the archive says of its size."""
    try:
        with archive.open(member) as file:
            data = _bounded(file)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, NotImplementedError, RuntimeError) as error:
        raise RefusedError(f"It cannot be unpacked ({error}).") from error
    budget.spend(len(data))
    return data


def notebooks(entries: list[Entry]) -> Iterator[Entry]:
    """Yield the entries that are meant to be notebooks; browsers add ``.json`` and ``.txt`` to the name."""
    for entry in entries:
        if entry.path.name.lower().endswith((".ipynb", ".ipynb.json", ".ipynb.txt")):
            yield entry
