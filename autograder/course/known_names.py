"""List the assignments and the people that a course folder knows, so that a misspelt name in ``course.toml`` is noticed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from autograder.atomic_files import write_atomically
from autograder.errors import CourseError

# The chapters of the project that the course was released from, also those that have not been released yet.
CHAPTERS_NAME = "chapters.json"
# The folders of a course whose own folders are called like assignments.
_BY_ASSIGNMENT = ("source", "release", "results")


@dataclass(frozen=True)
class KnownPeople:
    """The people of a course."""

    names: frozenset[str]  # the ids of students
    complete: bool  # whether a class list says who belongs to the course, so that another name is a mistake


def known_assignments(root: Path) -> frozenset[str]:
    """Return the names of the course's own assignments and of all chapters of the project that it was released from.

    Only the course folder decides, never the current one: a date counts wherever a command is given.

    Args:
        root: the course folder.
    """
    own_assignments = (path.name for step in _BY_ASSIGNMENT for path in (root / step).glob("*") if path.is_dir())
    return _project_chapters(root) | frozenset(own_assignments)


def note_project_chapters(root: Path, chapters: Iterable[str]) -> None:
    """Remember the names of the project's chapters in the course folder."""
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


def known_people(root: Path) -> KnownPeople:
    """Return the students in ``students.json`` and the students with a folder in ``submitted/``.

    Args:
        root: the course folder.
    """
    try:
        listed = json.loads((root / "students.json").read_text(encoding="utf-8"))
        complete = any(entry.get("enrolled") for entry in listed.values())
    except (OSError, ValueError, AttributeError):
        listed, complete = {}, False  # a damaged list is reported by those who need it
    folders = (path.name for path in (root / "submitted").glob("*/"))
    return KnownPeople(frozenset([*listed, *folders]), complete)
