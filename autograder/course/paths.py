"""Find a command's folders: the project around the current folder, and its course."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from autograder.course.folder import CONFIG_NAME, Course
from autograder.course.lock import InUseError, course_lock
from autograder.errors import CourseError

DEFAULT_COURSE = "course"

# What a course has before anything is in it; nbgrader makes an empty gradebook before it finds out that it has nothing to put in.
_BEGINNINGS = {CONFIG_NAME, "gradebook.db", "gradebook.db-journal", "gradebook.db.new", "journal"}


def is_project(folder: Path) -> bool:
    """Return whether a folder is the root of the course's project."""
    return (folder / "_config.yml").is_file() and (folder / "chapters").is_dir()


def project_root(start: Path | None = None) -> Path:
    """Return the project root: the nearest parent folder with ``_config.yml`` and ``chapters/``.

    Args:
        start: where to begin, the current folder by default.

    Raises:
        CourseError: if no such folder exists.
    """
    first = (start or Path.cwd()).resolve()
    for folder in (first, *first.parents):
        if is_project(folder):
            return folder
    raise CourseError(
        "this is not inside the course's project (no folder above has _config.yml and chapters/)",
        where=first,
        do="Change into your clone of the course and run the command again.",
    )


def course_folder(named_folder: Path | None = None, start: Path | None = None) -> Path:
    """Return the course folder: the one named, the nearest course above, or ``course/`` in the project.

    Args:
        named_folder: the folder from the command line, if any.
        start: the folder to search from; the current folder by default.

    Returns:
        The folder that was named; else the nearest upwards that is a course; else ``course/`` in the project. It need not exist.

    Raises:
        CourseError: if none was named, and the current folder is in no course and no project.
    """
    if named_folder is not None:
        return named_folder.resolve()
    first = (start or Path.cwd()).resolve()
    for folder in (first, *first.parents):
        if (folder / CONFIG_NAME).is_file():
            return folder
        if is_project(folder):
            return folder / DEFAULT_COURSE
    raise CourseError(
        "this is neither inside the course's project nor inside a course folder",
        where=first,
        do="Name the course folder with --course, or change into your clone of the course.",
    )


def shell_command(course: Course, *arguments: str) -> str:
    """Return a command line for a course, as it must be typed in the current folder.

    Args:
        arguments: the command and what follows it, such as ``"autograde", "03_scaled_dot_product"``.
    """
    meant = None
    with suppress(CourseError):
        meant = course_folder().resolve()
    named = [] if meant == course.root.resolve() else ["--course", str(course.root)]
    return shlex.join(["tfcourse", *arguments, *named])


@contextmanager
def create_or_open_course(folder: Path) -> Iterator[Course]:
    """Open the course in a folder under its lock; create it if it is missing, and remove it if the block fails.

    It is made if it is missing, and unmade again if the block fails: then nothing has happened.

    Raises:
        CourseError: if the folder cannot be written, or somebody else is at work there.
    """
    missing = [ancestor for ancestor in (folder, *folder.parents) if not ancestor.exists()]
    before = _entry_names(folder)
    with ExitStack() as held:
        try:
            course = Course.open(folder, create=True)
            held.enter_context(course_lock(course))
            yield course
        except InUseError:
            raise
        except BaseException:
            created = _entry_names(folder) - before
            # What else is new was finished before something later failed, and is kept.
            if created <= _BEGINNINGS:
                with suppress(OSError):
                    for name in created:
                        _remove_path(folder / name)
                    for ancestor in missing:
                        ancestor.rmdir()
            raise


def _remove_path(path: Path) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()


def _entry_names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def require_writable(folder: Path, do: str) -> None:
    """Check that a folder is writable before the work begins.

    Args:
        do: what to do if it cannot.

    Raises:
        CourseError: if it is a file, or it or the nearest folder above it cannot be written.
    """
    for ancestor in (folder, *folder.parents):
        if ancestor.is_dir():
            if not os.access(ancestor, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
                raise CourseError("the folder cannot be written", where=ancestor, do=do)
            return
        if ancestor.exists() or ancestor.is_symlink():
            raise CourseError("this is not a folder", where=ancestor, do=do)
