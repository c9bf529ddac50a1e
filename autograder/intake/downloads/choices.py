"""Keep the notebooks of submissions with several notebooks, and apply the lecturer's choice among them.

The notebooks stay in ``submitted/STUDENT/CHAPTER/`` until the lecturer chooses one.

The chosen notebook is copied to ``CHAPTER.ipynb``. The journal of the intake records the choice before the copy, so the next reader
completes a choice that was interrupted.

The other notebooks of a download are kept in ``uncounted/CHAPTER/STUDENT/``, so that the lecturer can choose one without editing the
download. Such a choice applies to the notebook's content: collecting the same download again keeps it, until the student hands in another
notebook.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.atomic_files import staged_file, write_atomically
from autograder.course.folder import Course
from autograder.intake.downloads.journal import Choice, IntakeJournal, UncountedNote, hash_content, read_content

# So many notebooks of one student are looked at.
MAX_NOTEBOOKS = 20


def other_notebooks(folder: Path, chapter: str) -> dict[str, bytes]:
    """Return the first notebooks in a student's chapter folder without the chapter's name; links are skipped."""
    notebooks: dict[str, bytes] = {}
    if folder.is_symlink() or folder.parent.is_symlink() or not folder.is_dir():
        return notebooks
    for path in sorted(folder.iterdir()):
        if path.name.lower().endswith(".ipynb") and path.name != f"{chapter}.ipynb" and not path.name.startswith("._"):
            data = read_content(path)
            if data is not None:
                notebooks[path.name] = data
            if len(notebooks) == MAX_NOTEBOOKS:
                break
    return notebooks


def undecided_notebooks(folder: Path, chapter: str) -> dict[str, bytes]:
    """Return the notebooks among which a choice is pending; empty if there is nothing to choose."""
    if os.path.lexists(folder / f"{chapter}.ipynb"):
        return {}
    alternatives = other_notebooks(folder, chapter)
    return alternatives if len(alternatives) > 1 else {}


def apply_choice(course: Course, chapter: str, student: str, choice: Choice | None) -> None:
    """Update a student's folder to the recorded choice: the chosen notebook counts until another alternative is added.

    A notebook of the chapter's own name that was none of those to choose from has been put there since, and stays.
    """
    if choice is None:
        return
    folder = course.folder("submitted", student, chapter)
    path = folder / f"{chapter}.ipynb"
    current = read_content(path)
    if (hash_content(current) not in choice.among) if current is not None else os.path.lexists(path):
        return
    alternatives = {hash_content(data): data for data in other_notebooks(folder, chapter).values()}
    if not set(choice.among) >= alternatives.keys():
        # Somebody has handed in another one: what was chosen among the others is open again.
        if current is not None and hash_content(current) in alternatives:
            path.unlink()
    elif (chosen := alternatives.get(choice.digest)) is not None and chosen != current:
        # Not in the folder: all that lies beside a notebook is handed in with it.
        with staged_file(path, chosen, at=folder.with_name(f"{chapter}.{path.name}.part")) as draft:
            draft.replace(path)


@dataclass(frozen=True)
class UncountedNotebook:
    """A notebook that is not graded, because another notebook of the student counts."""

    data: bytes  # the file
    stamp: bytes | None = None  # when it was handed in, or None if that is not known


def store_uncounted(
    course: Course, chapter: str, student: str, notebooks: Mapping[str, UncountedNotebook], journal: IntakeJournal
) -> None:
    """Store this collection's uncounted notebooks by name, replacing the notebooks of earlier collections.

    The caller writes the journal.
    """
    folder = course.root / "uncounted" / chapter / student
    shutil.rmtree(folder, ignore_errors=True)
    journal.uncounted.pop(student, None)
    notes = {}
    for name, notebook in notebooks.items():
        write_atomically(folder / name, notebook.data)
        stamp = None if notebook.stamp is None else notebook.stamp.decode("utf-8", "replace")
        notes[name] = UncountedNote(hash_content(notebook.data), stamp)
    if notes:
        journal.uncounted[student] = notes


def uncounted_notebooks(
    course: Course, chapter: str, student: str, journal: IntakeJournal
) -> dict[str, UncountedNotebook]:
    """Return a student's uncounted notebooks by name."""
    folder, notebooks = course.root / "uncounted" / chapter / student, dict[str, UncountedNotebook]()
    for name, note in sorted(journal.uncounted.get(student, {}).items()):
        data = read_content(folder / name)
        if data is not None and hash_content(data) == note.digest:
            notebooks[name] = UncountedNotebook(data, None if note.stamp is None else note.stamp.encode())
    return notebooks
