"""When a submission was handed in: its ``timestamp.txt``, read as any file of a student's is."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from nbgrader.utils import parse_utc

from autograder.submission.notebook_reader import UnreadableError, read_file
from autograder.submission.problem import Problem


def read_timestamp(folder: Path) -> datetime | None:
    """Return when a submission was handed in, as its ``timestamp.txt`` says in the words that nbgrader takes; None if it does not say.

    Args:
        folder: the submission's folder.

    Raises:
        UnreadableError: if that file says something else, or is none.
    """
    path = folder / "timestamp.txt"
    if not os.path.lexists(path):
        return None
    text = read_file(path, above=2).decode("utf-8", "replace").strip()
    try:
        return parse_utc(text) if text else None
    except (ValueError, OverflowError):
        raise UnreadableError(Problem("no time", f"{text[:40]!r} is no time.")) from None
