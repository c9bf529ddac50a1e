"""Submissions with several notebooks, which stay in ``submitted/STUDENT/CHAPTER/`` until the lecturer chooses one.

The chosen notebook is copied to ``CHAPTER.ipynb``. The choice and the alternatives are recorded in ``choices/CHAPTER/STUDENT.json``. The
record is written before the copy, so the next reader completes a choice that was interrupted.

The other notebooks of a download are kept in ``uncounted/CHAPTER/STUDENT/``, with their submission times if known, so that the lecturer can
choose one without editing the download. Such a choice applies to the notebook's content: collecting the same download again keeps it, until
the student hands in another notebook.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.atomic_files import staged_file, write_atomically
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.notebook.notebook_reader import UnreadableError, read_file

# So many notebooks of one student are looked at.
MAX_NOTEBOOKS = 20
_PREFERENCE = "taken.json"


@dataclass(frozen=True)
class Choice:
    """The lecturer's choice of one notebook."""

    file: str  # the name of the notebook that counts
    notebooks: Mapping[str, str]  # the names of all candidate notebooks, each with its hash


def other_notebooks(folder: Path, chapter: str) -> dict[str, bytes]:
    """Return the first notebooks in a student's folder of a chapter that are not called like it, by name; links are passed over."""
    notebooks: dict[str, bytes] = {}
    if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
        return notebooks
    for path in sorted(folder.iterdir()):
        if path.name.lower().endswith(".ipynb") and path.name != f"{chapter}.ipynb" and not path.name.startswith("._"):
            try:
                notebooks[path.name] = read_file(path)
            except UnreadableError:
                continue
            if len(notebooks) == MAX_NOTEBOOKS:
                break
    return notebooks


def undecided_notebooks(folder: Path, chapter: str) -> dict[str, bytes]:
    """Return the notebooks of which one has to be chosen; none if there is nothing to choose."""
    if os.path.lexists(folder / f"{chapter}.ipynb"):
        return {}
    alternatives = other_notebooks(folder, chapter)
    return alternatives if len(alternatives) > 1 else {}


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
    alternatives = other_notebooks(folder, chapter)
    current = content(path)
    if current is None and os.path.lexists(path):
        return
    if current is not None and _hash(current) not in choice.notebooks.values():
        return
    if {_hash(data) for data in alternatives.values()} - set(choice.notebooks.values()):
        # Somebody has handed in another one: what was chosen among the others is open again.
        if current is not None and current in alternatives.values():
            path.unlink()
        return
    if (
        choice.file in alternatives
        and _hash(alternatives[choice.file]) == choice.notebooks[choice.file]
        and current != alternatives[choice.file]
    ):
        # Not in the folder: all that lies beside a notebook is handed in with it.
        with staged_file(path, alternatives[choice.file], at=folder.with_name(f"{chapter}.{path.name}.part")) as draft:
            draft.replace(path)


@dataclass(frozen=True)
class Uncounted:
    """A notebook that does not count."""

    data: bytes  # the file
    stamp: bytes | None = None  # when it was handed in, or None if that is not known


@dataclass(frozen=True)
class Preference:
    """A notebook that a person has taken."""

    digest: str  # a hash of it
    among: frozenset[str]  # hashes of all notebooks that the student had handed in then

    def applies(self, digests: Collection[str]) -> bool:
        """Return whether the student has handed in nothing but what the person has seen."""
        return self.digest in digests and self.among >= set(digests)


def uncounted_folder(course: Course, chapter: str, student: str) -> Path:
    """Return where the notebooks of a student that do not count are kept."""
    return course.root / "uncounted" / chapter / student


def keep_uncounted(course: Course, chapter: str, student: str, notebooks: Mapping[str, Uncounted]) -> None:
    """Keep the uncounted notebooks of this collection, by name, and delete the ones from earlier collections."""
    folder = uncounted_folder(course, chapter, student)
    preference = read_preference(course, chapter, student)
    shutil.rmtree(folder, ignore_errors=True)
    for name, notebook in notebooks.items():
        write_atomically(folder / name, notebook.data)
        if notebook.stamp is not None:
            write_atomically(folder / f"{name}.time", notebook.stamp)
    if preference is not None:
        _write_preference(folder, preference)


def uncounted_notebooks(course: Course, chapter: str, student: str) -> dict[str, Uncounted]:
    """Return the notebooks of a student that do not count, by name."""
    folder = uncounted_folder(course, chapter, student)
    return {path.name: Uncounted(path.read_bytes(), _stamp(path)) for path in sorted(folder.glob("*.ipynb"))}


def _stamp(path: Path) -> bytes | None:
    time = path.with_name(f"{path.name}.time")
    return time.read_bytes() if time.is_file() else None


def prefer(course: Course, chapter: str, student: str, data: bytes, among: Collection[bytes]) -> None:
    """Remember which of a student's notebooks a person has taken.

    Args:
        data: the notebook.
        among: all notebooks that the student had handed in.
    """
    preference = Preference(_hash(data), frozenset(map(_hash, among)))
    _write_preference(uncounted_folder(course, chapter, student), preference)


def read_preference(course: Course, chapter: str, student: str) -> Preference | None:
    """Return which notebook a person has taken; None if nobody has.

    Raises:
        CourseError: if that cannot be read.
    """
    path = uncounted_folder(course, chapter, student) / _PREFERENCE
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        return Preference(str(stored["digest"]), frozenset(stored["among"]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        do = "Remove the file and choose again: tfcourse choose."
        raise CourseError(f"this choice cannot be read ({error})", where=path, do=do) from error


def _write_preference(folder: Path, preference: Preference) -> None:
    stored = {"digest": preference.digest, "among": sorted(preference.among)}
    write_atomically(folder / _PREFERENCE, (json.dumps(stored, indent=1) + "\n").encode())


def content(path: Path) -> bytes | None:
    """Return the contents of a file in the course; None unless it is a regular file."""
    try:
        return read_file(path)
    except UnreadableError:
        return None


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
