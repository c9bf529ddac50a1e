"""Lock a course, so that only one command at a time releases or grades."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autograder.course.folder import Course
from autograder.errors import CourseError


class InUseError(CourseError):
    """Another command is working in the course."""


@contextmanager
def course_lock(course: Course) -> Iterator[None]:
    """Lock a course against other commands that release or grade.

    The operating system holds the lock for this process and takes it back when the process ends, in whatever way: it cannot be left over.

    Raises:
        InUseError: if another command is running there.
        CourseError: if the file system keeps no locks.
    """
    folder = course.root / "journal"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        handle = lock_folder(folder)
    except OSError as error:
        raise CourseError(
            f"this folder cannot be locked against other commands ({error.strerror})",
            where=folder,
            do="Its file system keeps no locks, as NFS without its lock daemon: move the course to another one.",
        ) from error
    if handle is None:
        raise InUseError(
            "another tfcourse command is running in this course",
            where=course.root,
            do="Wait until it has finished, or stop it with Ctrl-C; submissions that it has graded are kept.",
        )
    try:
        yield
    finally:
        os.close(handle)


if sys.platform == "win32":
    import msvcrt

    def lock_folder(folder: Path, *, wait: bool = False) -> int | None:
        """Lock a folder and return the handle that keeps it locked until it is closed; None if another process has locked it."""
        handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
        try:
            msvcrt.locking(handle, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except OSError:
            os.close(handle)
            return None
        return handle
else:
    import fcntl

    def lock_folder(folder: Path, *, wait: bool = False) -> int | None:
        """Lock a folder and return the handle that keeps it locked until it is closed; None if another process has locked it."""
        # Not inherited by programs that this one starts, so that none of them can outlive it with the lock.
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(handle)
            if isinstance(error, BlockingIOError):
                return None
            raise
        return handle
