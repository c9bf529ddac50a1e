"""Give the deadlines and extensions of sections and groups to their members.

``[extensions.WHO]`` and ``[deadlines.WHO]`` of ``course.toml`` name a student, a section or a group. ``students.json`` says who is in
which.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path

Dates = Mapping[str, Mapping[str, datetime]]


def students_of(root: Path) -> dict[str, Mapping[str, str]]:
    """Return the entries of ``students.json``, by id; none if the course knows no students.

    A damaged file counts as none here: the commands that need it say what is wrong.
    """
    try:
        entries = json.loads((root / "students.json").read_text(encoding="utf-8"))
        return {student: dict(entry) for student, entry in entries.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def members_of(root: Path) -> dict[str, list[str]]:
    """Return the students of each section and group of a course, by its name as it is compared."""
    members: dict[str, list[str]] = {}
    for student, entry in students_of(root).items():
        for name in _memberships(entry):
            members.setdefault(name, []).append(student)
    return members


def expanded(
    dates: Dates, members: Mapping[str, list[str]], students: Mapping[str, object] = {}
) -> dict[str, dict[str, datetime]]:
    """Expand dates of sections and groups to their members; a student's own dates take precedence.

    If a student is in several sections or groups, the latest date counts. A name that is not a section or group is a student's and is kept.

    Args:
        dates: by student, section or group, the date of each chapter.
        members: the result of :func:`members_of`.
        students: the students in the course; a student's name is never read as a section.
    """
    by_student: dict[str, dict[str, datetime]] = {}
    for name, chapters in dates.items():
        for student in members.get(compared(name), []) if name not in students else []:
            latest = by_student.setdefault(student, {})
            for chapter, date in chapters.items():
                latest[chapter] = max(latest.get(chapter, date), date, key=_naive)
    for name, chapters in dates.items():
        if name in students or compared(name) not in members:
            by_student[name] = {**by_student.get(name, {}), **chapters}
    return by_student


def compared(name: str) -> str:
    """Return the name of a section or group as it is compared: without case and needless blanks."""
    return " ".join(name.replace("_", " ").split()).casefold()


def _naive(date: datetime) -> datetime:
    return date.replace(tzinfo=None)


def _memberships(entry: Mapping[str, str]) -> Iterator[str]:
    """Yield the sections and groups of a student: each cell as a whole, and its parts, for platforms list several in one."""
    names = set()
    for cell in (entry.get("section", ""), entry.get("group", "")):
        names |= {compared(part) for part in (cell, *re.split(r",| and ", cell)) if part.strip()}
    yield from sorted(names)
