"""Read the time of a submission from its ``timestamp.txt``, as safely as any file of a student's."""

from __future__ import annotations

import os
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from autograder.course.times import HOW_TO_WRITE, read_time
from autograder.intake.notebook.notebook_reader import UnreadableError, read_file
from autograder.intake.notebook.problem import Problem

KIND = "no time"


def read_timestamp(folder: Path, zone: tzinfo) -> datetime | None:
    """Return the time in ``timestamp.txt`` in UTC and without a zone, as nbgrader keeps it; None without such a file, or if it is empty.

    Args:
        folder: the submission's folder.
        zone: the course's zone, for a time that names none.

    Raises:
        UnreadableError: if the file holds something else, or is no regular file.
    """
    path = folder / "timestamp.txt"
    if not os.path.lexists(path):
        return None
    text = read_file(path, above=2).decode("utf-8", "replace").strip()
    try:
        return read_time(text, zone).astimezone(UTC).replace(tzinfo=None) if text else None
    except (ValueError, OverflowError) as error:
        raise UnreadableError(Problem(KIND, str(error))) from None


def timestamp_problem(folder: Path, zone: tzinfo) -> Problem | None:
    """Return the problem of an unreadable submission time, with which no late penalty applies; None if the time is readable or missing."""
    try:
        read_timestamp(folder, zone)
    except UnreadableError as error:
        message = f"The time cannot be read, so nothing is taken off for being late. {error.problem.what}"
        where = f"{folder.parent.name}/{folder.name}/timestamp.txt"
        return Problem(KIND, message, f"submitted/{where}", HOW_TO_WRITE)
    return None
