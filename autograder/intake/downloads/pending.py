"""Record pending submissions, which a collection has announced but not yet copied, in ``COURSE/journal/CHAPTER.intake.json``.

Only the collection reads the download. If the disk is full or the process is killed, later commands must know which submissions are
missing. So the collection writes the list before it copies any file. A file that still has its old hash has not been copied.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from autograder.atomic_files import write_atomically
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import CourseError
from autograder.intake.notebook.notebook_reader import UnreadableError, read_file
from autograder.intake.notebook.problem import Problem

KIND = "not brought in"


@dataclass(frozen=True)
class PendingSubmission:
    """A submission that a collection is about to copy."""

    student: str
    source: str  # the download that contains it
    upload: str  # the file in the download
    # per file of the submission its hash before and after the collection; empty for a missing file
    files: Mapping[str, tuple[str, str]]

    def to_dict(self) -> dict[str, str]:
        """Return what people ask for as plain data, ready for JSON."""
        return {"student": self.student, "source": self.source, "upload": self.upload}


def record_path(course: Course, chapter: str) -> Path:
    """Return where it is kept what is to come."""
    return course.root / "journal" / f"{chapter}.intake.json"


def planned_changes(folder: Path, new: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return for each file of a submission what it is now and what it is to be, as hashes.

    Args:
        folder: the student's folder of the chapter.
        new: hashes of what the files are to hold, by name.
    """
    return {name: (_hash_of_file(folder / name), digest) for name, digest in new.items()}


def record_pending(course: Course, chapter: str, coming: Sequence[PendingSubmission]) -> None:
    """Record the pending submissions, in addition to those left by an earlier collection.

    Raises:
        CourseError: if the record cannot be written. The caller must then copy nothing, because missing submissions would go unnoticed.
    """
    new = [item for item in coming if _has_not_come(course, chapter, item)]
    if not new:
        return
    students = {item.student for item in new}
    everything = [*(item for item in missing(course, chapter) if item.student not in students), *new]
    path = record_path(course, chapter)
    try:
        write_atomically(path, json.dumps([asdict(item) for item in everything], indent=1).encode())
    except OSError as error:
        message = f"nothing of {chapter} was brought in: this file cannot be written ({error.strerror})"
        raise CourseError(message, where=path, do="Make room on the disk, and give the same command again.") from error


def missing(course: Course, chapter: str) -> list[PendingSubmission]:
    """Return what was to come and has not come yet, ordered by student.

    Raises:
        CourseError: if what was written down cannot be read.
    """
    missing_items = (item for item in _recorded(course, chapter) if _has_not_come(course, chapter, item))
    return sorted(missing_items, key=lambda item: item.student)


def clear_if_done(course: Course, chapter: str) -> list[PendingSubmission]:
    """Return what is missing, as :func:`missing` does; where nothing is, nothing needs to be known of it any more."""
    missing_items = missing(course, chapter)
    if not missing_items:
        record_path(course, chapter).unlink(missing_ok=True)
    return missing_items


def problems(course: Course, chapter: str, missing_items: Iterable[PendingSubmission]) -> list[Problem]:
    """Name everybody who is missing: a problem for each download."""
    by_source = groupby(sorted(missing_items, key=lambda item: (item.source, item.student)), lambda item: item.source)
    return [_problem(course, chapter, source, list(items)) for source, items in by_source]


def _problem(course: Course, chapter: str, source: str, items: Sequence[PendingSubmission]) -> Problem:
    are, they = ("is", "it") if len(items) == 1 else ("are", "them")
    message = f"{_submissions(items)} of {chapter} {are} in this download and not in the course folder: "
    message += f"{', '.join(item.student for item in items)}."
    again = shell_command(course, "autograde", chapter, "--submissions", source)
    return Problem(KIND, message, source, f"Make room on the disk and bring {they} in: {again}")


def _submissions(items: Sequence[PendingSubmission]) -> str:
    return f"{len(items)} submission{'' if len(items) == 1 else 's'}"


def _recorded(course: Course, chapter: str) -> list[PendingSubmission]:
    path = record_path(course, chapter)
    try:
        return [_read(item) for item in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CourseError(
            f"this list of submissions that were to be brought in is damaged ({error})",
            where=path,
            do="Move it away, and collect the last download once more.",
        ) from error


def _read(item: Mapping[str, Any]) -> PendingSubmission:
    files = {name: (before, after) for name, (before, after) in item["files"].items()}
    return PendingSubmission(item["student"], item["source"], item["upload"], files)


def _has_not_come(course: Course, chapter: str, item: PendingSubmission) -> bool:
    # Neither the old file nor the new one: somebody has put another one there by hand.
    folder = course.folder("submitted", item.student, chapter)
    return any(
        before != after and _hash_of_file(folder / name) == before for name, (before, after) in item.files.items()
    )


def _hash_of_file(path: Path) -> str:
    try:
        return hash_of(read_file(path))
    except UnreadableError:
        return ""


def hash_of(data: bytes) -> str:
    """Return a hash of a file's content."""
    return hashlib.sha256(data).hexdigest()
