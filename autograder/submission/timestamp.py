"""Read the time of a submission from its ``timestamp.txt``, as safely as any file of a student's."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from autograder.submission.notebook_reader import UnreadableError, read_file
from autograder.submission.problem import Problem


def read_timestamp(folder: Path) -> datetime | None:
    """Return the time in ``timestamp.txt`` in nbgrader's format; None if there is no such file or it is empty.

    Args:
        folder: the submission's folder.

    Raises:
        UnreadableError: if the file holds something else, or is no regular file.
    """
    path = folder / "timestamp.txt"
    if not os.path.lexists(path):
        return None
    text = read_file(path, above=2).decode("utf-8", "replace").strip()
    try:
        return parse_utc(text) if text else None
    except (ValueError, OverflowError):
        raise UnreadableError(Problem("no time", f"{text[:40]!r} is no time.")) from None
