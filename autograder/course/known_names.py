"""List the assignments and people that a course folder knows, and expand dates of sections and groups to members.

``[extensions.WHO]`` and ``[deadlines.WHO]`` of ``course.toml`` name a student, a section or a group. ``students.json`` says who is in
which. A misspelt name is noticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from autograder.atomic_files import write_atomically
from autograder.errors import CourseError

# The chapters of the project that the course was released from, also those that have not been released yet.
CHAPTERS_NAME = "chapters.json"
# The folders of a course whose own folders are called like assignments.
_BY_ASSIGNMENT = ("source", "release", "results")

Dates = Mapping[str, Mapping[str, datetime]]


def known_assignments(root: Path) -> frozenset[str]:
    """Return the names of the course's own assignments and of the chapters of its project.

    Only the course folder decides, never the current one: a date counts wherever a command is given.
    """
    own_assignments = (path.name for step in _BY_ASSIGNMENT for path in (root / step).glob("*") if path.is_dir())
    return _project_chapters(root) | frozenset(own_assignments)


def store_project_chapters(root: Path, chapters: Iterable[str]) -> None:
    """Store the names of the project's chapters in the course folder."""
    names = sorted(chapters)
    if _project_chapters(root) != frozenset(names):
        write_atomically(root / CHAPTERS_NAME, (json.dumps(names, indent=1) + "\n").encode())


def _project_chapters(root: Path) -> frozenset[str]:
    path = root / CHAPTERS_NAME
    try:
        return frozenset(map(str, json.loads(path.read_text(encoding="utf-8"))))
    except FileNotFoundError:
        return frozenset()
    except (OSError, ValueError, TypeError) as error:
        raise CourseError(
            f"this list of chapters cannot be read ({error})",
            where=path,
            do="Remove the file, and release any chapter again: tfcourse assign.",
        ) from error


def read_student_entries(root: Path) -> dict[str, Mapping[str, str]]:
    """Return the entries of ``students.json`` by id; empty if there is no such file.

    A damaged file counts as none here: the commands that need it say what is wrong.
    """
    try:
        entries = json.loads((root / "students.json").read_text(encoding="utf-8"))
        return {student: dict(entry) for student, entry in entries.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def expand_dates(dates: Dates, students: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, datetime]]:
    """Expand dates of sections and groups to their members; a student's own dates take precedence.

    If a student is in several sections or groups, the latest date counts. A name that is not a section or group is a student's and is kept.

    Args:
        dates: by student, section or group, the date of each chapter.
        students: the entries of the students in the course; a student's name is never read as a section.
    """
    members: dict[str, list[str]] = {}
    for student, entry in students.items():
        for group in _list_memberships(entry):
            members.setdefault(group, []).append(student)
    by_student: dict[str, dict[str, datetime]] = {}
    for name, chapters in dates.items():
        for student in members.get(_normalise_name(name), []) if name not in students else []:
            latest = by_student.setdefault(student, {})
            for chapter, date in chapters.items():
                latest[chapter] = max(latest.get(chapter, date), date, key=_drop_time_zone)
    for name, chapters in dates.items():
        if name in students or _normalise_name(name) not in members:
            by_student[name] = {**by_student.get(name, {}), **chapters}
    return by_student


def _normalise_name(name: str) -> str:
    """Normalise a section's or group's name for comparison: case and redundant blanks."""
    return " ".join(name.replace("_", " ").split()).casefold()


def _drop_time_zone(date: datetime) -> datetime:
    return date.replace(tzinfo=None)


def _list_memberships(entry: Mapping[str, str]) -> Iterator[str]:
    """Yield a student's sections and groups: each cell as a whole and its parts, because platforms list several."""
    names = set()
    for cell in (entry.get("section", ""), entry.get("group", "")):
        names |= {_normalise_name(part) for part in (cell, *re.split(r",| and ", cell)) if part.strip()}
    yield from sorted(names)
