"""Submissions of several notebooks: they lie side by side in ``submitted/STUDENT/CHAPTER/`` until a person has chosen one.

The one that counts is copied to ``CHAPTER.ipynb``. What was chosen, and among what, is kept in ``choices/CHAPTER/STUDENT.json``: it is
written before the copy is made, so a choice that was cut short is carried out by whoever looks next.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.atomic_files import staged_file, write_atomically
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.submission.notebook_reader import UnreadableError, read_file

# So many notebooks of one student are looked at.
MAX_NOTEBOOKS = 20


@dataclass(frozen=True)
class Choice:
    """What a person has decided.

    Attributes:
        file: the name of the notebook that counts.
        notebooks: the names of all the notebooks that there were to choose from, with a hash of each.
    """

    file: str
    notebooks: Mapping[str, str]


def other_notebooks(folder: Path, chapter: str) -> dict[str, bytes]:
    """Return the first notebooks in a student's folder of a chapter that are not called like it, by name; links are passed over."""
    found: dict[str, bytes] = {}
    if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
        return found
    for path in sorted(folder.iterdir()):
        if path.name.lower().endswith(".ipynb") and path.name != f"{chapter}.ipynb" and not path.name.startswith("._"):
            try:
                found[path.name] = read_file(path)
            except UnreadableError:
                continue
            if len(found) == MAX_NOTEBOOKS:
                break
    return found


def undecided_notebooks(folder: Path, chapter: str) -> dict[str, bytes]:
    """Return the notebooks of which one has to be chosen; none if there is nothing to choose."""
    if os.path.lexists(folder / f"{chapter}.ipynb"):
        return {}
    beside = other_notebooks(folder, chapter)
    return beside if len(beside) > 1 else {}


def choice_path(course: Course, chapter: str, student: str) -> Path:
    """Return where a choice is kept."""
    return course.root / "choices" / chapter / f"{student}.json"


def read_choice(course: Course, chapter: str, student: str) -> Choice | None:
    """Return what was chosen, or None if nothing was.

    Raises:
        CourseError: if it cannot be read.
    """
    path = choice_path(course, chapter, student)
    if not path.exists():
        return None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return Choice(str(data["file"]), dict(data["notebooks"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        do = "Move it away and choose again: tfcourse choose."
        raise CourseError(f"this choice cannot be read ({error})", where=path, do=do) from error


def write_choice(course: Course, chapter: str, student: str, file: str, notebooks: Mapping[str, bytes]) -> None:
    """Remember a choice. It counts from the moment at which it is written in full."""
    data = {"file": file, "notebooks": {name: _hash(notebook) for name, notebook in notebooks.items()}}
    write_atomically(choice_path(course, chapter, student), (json.dumps(data, indent=1) + "\n").encode())


def apply_choice(course: Course, chapter: str, student: str) -> None:
    """Make a student's folder what the choice says: the chosen notebook counts, until there is another one to choose from.

    A notebook of the chapter's own name that was none of those to choose from has been put there since, and stays.
    """
    choice = read_choice(course, chapter, student)
    if choice is None:
        return
    folder = course.folder("submitted", student, chapter)
    path = folder / f"{chapter}.ipynb"
    beside = other_notebooks(folder, chapter)
    current = _content(path)
    if current is None and os.path.lexists(path):
        return
    if current is not None and _hash(current) not in choice.notebooks.values():
        return
    if {_hash(data) for data in beside.values()} - set(choice.notebooks.values()):
        # Somebody has handed in another one: what was chosen among the others is open again.
        if current is not None and current in beside.values():
            path.unlink()
        return
    if (
        choice.file in beside
        and _hash(beside[choice.file]) == choice.notebooks[choice.file]
        and current != beside[choice.file]
    ):
        # Not in the folder: all that lies beside a notebook is handed in with it.
        with staged_file(path, beside[choice.file], at=folder.with_name(f"{chapter}.{path.name}.part")) as draft:
            draft.replace(path)


def _content(path: Path) -> bytes | None:
    try:
        return read_file(path)
    except UnreadableError:
        return None


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
