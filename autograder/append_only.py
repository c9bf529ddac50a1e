"""Append JSON objects to a file, one per line.

A crash can cut short only the last line, which readers skip.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autograder.errors import CourseError


def read_lines(path: Path, *, do: str) -> list[dict[str, Any]]:
    """Return a file's objects in order, or an empty list if the file does not exist.

    A last line without its end is skipped: the machine stopped while writing it, and nothing was done that follows from it.

    Args:
        do: what to do about a damaged line, for the error.

    Raises:
        CourseError: if another line is not a JSON object.
    """
    lines = path.read_bytes().split(b"\n")[:-1] if path.is_file() else []
    complete = []
    for number, line in enumerate(lines, start=1):
        try:
            content = json.loads(line)
            if not isinstance(content, dict):
                raise ValueError("not an object")
        except ValueError as error:
            raise CourseError(f"line {number} is damaged ({error})", where=path, do=do) from error
        complete.append(content)
    return complete


class AppendOnlyFile:
    """A file to which only whole lines are appended.

    Args:
        path: the file; it is created with its folder.
        mode: its permissions if it is created, limited by the umask.
    """

    def __init__(self, path: Path, *, mode: int = 0o666) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode)
        self._remove_unfinished_line()
        if is_new and os.name == "posix":
            _flush_folder(path.parent)

    def append(self, content: Mapping[str, Any], *, durable: bool) -> None:
        """Append an object as a line.

        Args:
            content: the object, ready for JSON.
            durable: return only when the line would survive a power cut.
        """
        data = memoryview(json.dumps(content).encode() + b"\n")
        while data:
            data = data[os.write(self._file, data) :]
        if durable:
            os.fsync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _remove_unfinished_line(self) -> None:
        size = os.lseek(self._file, 0, os.SEEK_END)
        os.lseek(self._file, max(0, size - 1), os.SEEK_SET)
        if not size or os.read(self._file, 1) == b"\n":
            return
        os.lseek(self._file, 0, os.SEEK_SET)
        with os.fdopen(os.dup(self._file), "rb") as file:
            os.ftruncate(self._file, file.read().rfind(b"\n") + 1)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
