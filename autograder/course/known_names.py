"""List the assignments and the people that a course folder knows, so that a misspelt name in ``course.toml`` is noticed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from autograder.course.paths import project_chapters

# The folders of a course whose own folders are called like assignments.
_BY_ASSIGNMENT = ("source", "release", "results")


@dataclass(frozen=True)
class KnownPeople:
    """The people of a course.

    Attributes:
        names: the ids of students.
        complete: whether a class list says who belongs to the course, so that another name is a mistake.
    """

    names: frozenset[str]
    complete: bool


def known_assignments(root: Path) -> frozenset[str]:
    """Return the names of the project's chapters and of the course's own assignments.

    Args:
        root: the course folder.
    """
    own_assignments = (path.name for step in _BY_ASSIGNMENT for path in (root / step).glob("*") if path.is_dir())
    return project_chapters() | project_chapters(root) | frozenset(own_assignments)


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
