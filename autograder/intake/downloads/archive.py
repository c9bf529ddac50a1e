"""Read the files of an untrusted folder or zip archive, with limits on names and sizes.

Protects against:

- path traversal: absolute names, drives and ``..`` are refused
- links, pipes, sockets and devices: they are never opened
- zip bombs: limits on files, depth, bytes per file, total bytes and compression ratio
- encrypted and damaged members: each becomes a problem of its student, and the others are read

Does not protect against:

- the content of files: ``submission`` and the sandbox treat it as hostile
- a folder that somebody changes while it is read
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, Any, cast

from autograder.errors import CourseError
from autograder.intake.name_spellings import decode_member_name
from autograder.intake.notebook.notebook_reader import MAX_BYTES, SIGNATURES, UnreadableError, read_file
from autograder.intake.notebook.problem import Problem

MAX_FILES = 50_000
MAX_INNER_FILES = 2_000
# What one student's archive may unpack to. A whole class has no such limit: every file of it has its own, and is read by itself.
MAX_TOTAL_BYTES = 1024**3
# An archive's table of contents is read at once; so many bytes name more files than are allowed.
MAX_CONTENTS = 8 * 1024**2
# No platform hands out folders as deep as this.
MAX_DEPTH = 40
# Text shrinks to a tenth, a notebook full of figures hardly at all; a file that shrinks to a two-hundredth is a zip bomb.
MAX_RATIO = 200
_ALONE = "Ask for the notebook alone, as .ipynb."
_TOO_DEEP = f"What is in it lies in more than {MAX_DEPTH} folders within each other."
_NEVER_MEANT = frozenset({"__MACOSX", ".ipynb_checkpoints", "__pycache__", ".git"})


class RefusedError(Exception):
    """A file was refused; the message gives the reason."""


@dataclass(frozen=True)
class Entry:
    """A file of a download."""

    path: PurePosixPath  # its path relative to the download, without ``..``
    # its modification time, if known. Times in a zip archive have no time zone and count as UTC.
    date: datetime | None = field(compare=False)
    # returns its content; raises :class:`RefusedError` if it is refused or cannot be read
    open: Callable[[], bytes] = field(compare=False, repr=False)
    # the submission time from the download's list of submissions; empty without such a list
    submitted: str = field(default="", compare=False)


def list_entries(source: Path) -> tuple[list[Entry], list[Problem]]:
    """Return the files of a folder or zip archive, including nested archives, sorted by name, and what was refused.

    Raises:
        CourseError: if it is neither, or nothing in it can be used.
    """
    if source.is_dir():
        entries, problems = _list_folder(source)
    elif source.is_file():
        try:
            do = "Unpack the archive yourself and look at it."
            entries, problems = _list_zip(_Archive(lambda: source.open("rb")), PurePosixPath(), MAX_FILES, do)
        except RefusedError as error:
            do = "Download it again, or unpack it yourself and name the folder."
            raise CourseError(str(error), where=source, do=do) from error
    else:
        do = "Name the folder or zip of the submissions."
        raise CourseError("there is no such file or folder", where=source, do=do)
    unpacked: list[Entry] = []
    opened_last: list[_Archive] = []
    for entry in entries:
        if entry.path.suffix.lower() != ".zip":
            unpacked.append(entry)
            continue
        try:
            # A limit for each: one student's archive must not use up another's.
            archive = _Archive(partial(_open_entry, entry), MAX_TOTAL_BYTES, opened_last)
            inner, refused = _list_zip(archive, entry.path, MAX_INNER_FILES, _ALONE)
            if not inner and not refused:
                refused = [_refusal_problem(str(entry.path), "There is no file in the archive.")]
        except RefusedError as error:
            inner, refused = [], [_refusal_problem(str(entry.path), str(error))]
        unpacked += inner
        problems += refused
    if problems and not unpacked:
        message = (
            f"nothing in it can be used, and {len(problems)} refused, such as {problems[0].where}: {problems[0].what}"
        )
        do = "Put the notebooks themselves, unpacked, into a folder, and name that."
        raise CourseError(message, where=source, do=do)
    return sorted(unpacked, key=lambda entry: str(entry.path)), problems


def _open_entry(entry: Entry) -> IO[bytes]:
    return BytesIO(entry.open())


def _refusal_problem(where: str, why: str, do: str = _ALONE) -> Problem:
    return Problem("file refused", why, where=where, do=do)


def _list_folder(root: Path) -> tuple[list[Entry], list[Problem]]:
    entries: list[Entry] = []
    problems: list[Problem] = []
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            paths = sorted(folder.iterdir())
        except OSError as error:
            where = escape_unprintable(folder.relative_to(root) if folder != root else root)
            problems.append(_refusal_problem(where, f"The folder cannot be looked into ({error.strerror})."))
            continue
        below = []
        for path in paths:
            location = _escape_path(PurePosixPath(*path.relative_to(root).parts))
            try:
                status = path.lstat()
                why = _reason_to_skip(path, status.st_mode)
            except OSError as error:
                why = f"It cannot be looked at ({error.strerror})."
            if path.name in _NEVER_MEANT:
                continue
            if why:
                problems.append(_refusal_problem(str(location), why))
            elif stat.S_ISREG(status.st_mode):
                date = datetime.fromtimestamp(status.st_mtime, tz=UTC)
                entries.append(Entry(location, date, partial(_read_file, path)))
            elif len(location.parts) < MAX_DEPTH:
                below.append(path)
            else:
                problems.append(_refusal_problem(f"{location.parts[0]} …", _TOO_DEEP))
        waiting += reversed(below)
        if len(entries) > MAX_FILES:
            do = "Name the folder of one chapter."
            raise CourseError(f"there are more than {MAX_FILES} files", where=root, do=do)
    return entries, problems


def _reason_to_skip(path: Path, mode: int) -> str:
    """Return the reason why a path in a folder is not opened; empty for a file, or a folder to search."""
    if stat.S_ISLNK(mode):
        return "It is a link, and links are not followed."
    if stat.S_ISDIR(mode):
        empty = path.name.lower().endswith(".ipynb") and not any(os.scandir(path))
        return "It is an empty folder with the name of a notebook." if empty else ""
    return "" if stat.S_ISREG(mode) else "It is no file but a pipe, a socket or a device; it was not opened."


def escape_unprintable(text: object) -> str:
    """Escape unprintable characters of an untrusted text, which could move a terminal's cursor."""
    shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in str(text))
    return "".join(shown)


def _escape_path(path: PurePosixPath) -> PurePosixPath:
    return PurePosixPath(*map(escape_unprintable, path.parts))


def _read_file(path: Path) -> bytes:
    try:
        data = read_file(path)
    except UnreadableError as error:
        raise RefusedError(error.problem.what) from error
    return _check_size(data)


def _check_size(data: bytes) -> bytes:
    if len(data) > MAX_BYTES:
        raise RefusedError(f"It has more than {MAX_BYTES // 1024**2} MB.")
    return data


class _LimitedFile:
    """An archive's file in which no read may return more bytes than a table of contents may have."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes; raise :class:`RefusedError` if there are too many."""
        data = self._file.read(size if 0 <= size <= MAX_CONTENTS else MAX_CONTENTS + 1)
        if len(data) > MAX_CONTENTS:
            raise RefusedError("The archive has more files than anybody hands in.")
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class _Archive:
    """A zip archive that is opened on the first read, with a limit on the unpacked bytes of a student's archive.

    Only the last one stays open, because all archives of a class would fill the memory.

    Of a student's archive a limited number of bytes is unpacked. Only the last one stays open, because all archives of a class
    would fill the memory.
    """

    def __init__(
        self, opened: Callable[[], IO[bytes]], limit: int | None = None, opened_last: list[_Archive] | None = None
    ) -> None:
        self._open = opened
        self._remaining = limit
        self._opened_last = opened_last
        self._zip: zipfile.ZipFile | None = None
        self._counted: set[int] = set()

    def _open_archive(self) -> zipfile.ZipFile:
        if self._zip is None:
            if self._opened_last is not None:
                for other in self._opened_last:
                    other._zip = None
                self._opened_last[:] = [self]
            self._zip = zipfile.ZipFile(cast("IO[bytes]", _LimitedFile(self._open())))
        return self._zip

    def members(self, limit: int) -> list[zipfile.ZipInfo]:
        """Return the archive's listed members; raise :class:`RefusedError` if it looks like a zip bomb."""
        try:
            members = self._open_archive().infolist()
        except RefusedError:
            raise
        except Exception as error:  # whatever the module trips over, it was the archive's doing
            raise RefusedError(f"It is not a zip archive that can be read: {self._reason_to_refuse(error)}.") from error
        if len(members) > limit:
            raise RefusedError(f"The archive has more than {limit} files.")
        end = 0
        for member in sorted(members, key=lambda member: member.header_offset):
            if member.header_offset < end:
                raise RefusedError("Entries in the archive overlap; it looks like a zip bomb.")
            end = member.header_offset + member.compress_size
        return members

    def _reason_to_refuse(self, error: Exception) -> str:
        with self._open() as file:
            begin = file.read(8)
            if zipfile.is_zipfile(file):
                return str(error)
        if begin.startswith(b"PK"):
            return "it breaks off before the list of its files, which is at the end"
        kind = next((name for signature, name in SIGNATURES.items() if begin.startswith(signature)), "something else")
        return f"it is {kind if begin else 'empty'}"

    def read(self, number: int) -> bytes:
        """Read a member, whatever its declared size; raise :class:`RefusedError` if it is too large or damaged."""
        try:
            archive = self._open_archive()
            with archive.open(archive.infolist()[number]) as file:
                data = _read_bounded(file)
        except RefusedError:
            raise
        except Exception as error:  # whatever a decompressor trips over, it was the archive's doing
            raise RefusedError(f"It cannot be unpacked ({error}).") from error
        # What is read a second time unpacks to no more than it did.
        if self._remaining is not None and number not in self._counted:
            self._remaining -= len(data)
            self._counted.add(number)
            if self._remaining < 0:
                raise RefusedError(f"The archive unpacks to more than {MAX_TOTAL_BYTES / 1024**3:.0f} GB.")
        return data


def _read_bounded(file: IO[bytes]) -> bytes:
    parts, remaining = [], MAX_BYTES + 1
    while remaining and (part := file.read(min(remaining, 1024**2))):
        parts.append(part)
        remaining -= len(part)
    return _check_size(b"".join(parts))


def _list_zip(archive: _Archive, inside: PurePosixPath, limit: int, do: str) -> tuple[list[Entry], list[Problem]]:
    entries: list[Entry] = []
    problems: list[Problem] = []
    for number, member in enumerate(archive.members(limit)):
        if member.is_dir():
            continue
        location = _safe_path(decode_member_name(member))
        if location is None or (why := _explain_suspicion(member)):
            why = "Its name leads out of the archive." if location is None else why
            problems.append(_refusal_problem(escape_unprintable(inside / member.filename.lstrip("/")), why, do))
        elif len(location.parts) > MAX_DEPTH:
            problems.append(_refusal_problem(escape_unprintable(inside / location.parts[0] / "…"), _TOO_DEEP, do))
        elif not _NEVER_MEANT & set(location.parts):
            entries.append(Entry(inside / _escape_path(location), _member_date(member), partial(archive.read, number)))
    return entries, problems


def _safe_path(name: str) -> PurePosixPath | None:
    """Return a member's path; None if it is absolute, has a drive, or contains ``..``."""
    path = PurePosixPath(name.replace("\\", "/"))
    climbs = path.is_absolute() or ".." in path.parts or (path.parts and ":" in path.parts[0])
    return None if climbs or not path.parts or "\0" in name else path


def _explain_suspicion(member: zipfile.ZipInfo) -> str:
    if stat.S_ISLNK(member.external_attr >> 16):
        return "It is a link, and links are not followed."
    if member.flag_bits & 0x1:
        return "It is encrypted: it asks for a password."
    if member.file_size > MAX_BYTES:
        return f"It has {member.file_size / 1024**2:.0f} MB; {MAX_BYTES // 1024**2} MB are allowed."
    if member.file_size > 1024**2 and member.file_size > MAX_RATIO * max(member.compress_size, 1):
        return f"It unpacks to {member.file_size // max(member.compress_size, 1)} times its size."
    return ""


def _member_date(member: zipfile.ZipInfo) -> datetime | None:
    try:
        return datetime(*member.date_time, tzinfo=UTC)
    except ValueError:
        return None


def is_notebook(entry: Entry) -> bool:
    """Return whether a file's name is a notebook's; browsers may add ``.json`` or ``.txt``."""
    # A Mac puts a shadow file beside each; it holds what the Finder knows.
    name = entry.path.name.lower()
    return name.endswith((".ipynb", ".ipynb.json", ".ipynb.txt")) and not name.startswith("._")
