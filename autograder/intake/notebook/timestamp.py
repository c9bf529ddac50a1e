"""Read a submission's time from its ``timestamp.txt``, as safely as any other student file."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path

from autograder.course.course_file import CourseFile
from autograder.course.times import HOW_TO_WRITE, read_time
from autograder.intake.notebook.notebook_reader import UnreadableError, read_file
from autograder.intake.notebook.problem import Problem

KIND = "no time"
DOUBTFUL = "doubtful time"
# No submission is this far from its deadline.
_FAR_OFF = timedelta(days=730)
_CLOCKS_DIFFER = timedelta(days=1)


def read_timestamp(folder: Path, zone: tzinfo) -> datetime | None:
    """Return the time in ``timestamp.txt`` as naive UTC, as nbgrader keeps it; None if it is missing or empty.

    Args:
        folder: the submission's folder.
        zone: the course's zone, for a time that names none.

    Raises:
        UnreadableError: if the file holds something else, or is not a regular file.
    """
    path = folder / "timestamp.txt"
    if not os.path.lexists(path):
        return None
    text = read_file(path, above=2).decode("utf-8", "replace").strip()
    try:
        return read_time(text, zone).astimezone(UTC).replace(tzinfo=None) if text else None
    except (ValueError, OverflowError) as error:
        raise UnreadableError(Problem(KIND, str(error))) from None


def plausible_timestamp(folder: Path, plan: CourseFile) -> datetime | None:
    """Return a submission's time as :func:`read_timestamp` does, and reject implausible times.

    Args:
        folder: ``submitted/STUDENT/CHAPTER``.
        plan: the course's ``course.toml``.

    Raises:
        UnreadableError: if the time is years from the deadline, or in the future although the deadline is past; or as in
            :func:`read_timestamp`.
    """
    time, deadline = read_timestamp(folder, plan.zone), plan.due(folder.name, folder.parent.name)
    if time is None:
        return None
    now = datetime.now(UTC).replace(tzinfo=None)
    due = deadline.astimezone(UTC).replace(tzinfo=None) if deadline else None
    if due is not None and abs(time - due) > _FAR_OFF:
        raise UnreadableError(Problem(DOUBTFUL, f"{time} UTC is years from the deadline"))
    if time > now + _CLOCKS_DIFFER and (due is None or due < now):
        raise UnreadableError(Problem(DOUBTFUL, f"{time} UTC is in the future"))
    return time


def timestamp_problem(folder: Path, plan: CourseFile) -> Problem | None:
    """Return the problem of an unreadable or implausible time, which prevents a late penalty; else None."""
    where = f"submitted/{folder.parent.name}/{folder.name}/timestamp.txt"
    try:
        plausible_timestamp(folder, plan)
    except UnreadableError as error:
        if error.problem.kind == DOUBTFUL:
            message = f"{error.problem.what}, so nothing is taken off for being late until somebody decides."
            return Problem(DOUBTFUL, message, where, "Write the true time there, or empty the file if it is not known.")
        message = f"The time cannot be read, so nothing is taken off for being late. {error.problem.what}"
        return Problem(KIND, message, where, HOW_TO_WRITE)
    return None
