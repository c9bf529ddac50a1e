"""Name the folders in ``submitted/`` after the ids of the class list, as a download's submissions are.

Somebody who copies submissions into the course by hand may write ``ada01`` for ``ADA01``. Both ways of bringing submissions in find the
student by the same rules (:mod:`autograder.intake.downloads.student_ids`), so a student never has two grades.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from autograder.course.folder import Course
from autograder.intake.downloads.archive import Entry, RefusedError, printable_path
from autograder.intake.downloads.student_ids import by_student
from autograder.intake.downloads.uploads import Upload
from autograder.intake.notebook.problem import Problem
from autograder.intake.roster import Student, read_roster

KIND = "other id"


def name_folders(course: Course, chapter: str) -> list[Problem]:
    """Move a chapter's folders that are named otherwise than their students on the class list; return what was done, or could not be."""
    roster = read_roster(course)
    if not any(student.enrolled for student in roster.values()):
        return []
    submitted = course.folder("submitted")
    folders = {path.parent.name: path for path in sorted(submitted.glob(f"*/{chapter}")) if _is_plain_folder(path)}
    # A folder that is named after an id is that student's, whatever another folder is called.
    folders = {name: path for name, path in folders.items() if name not in roster or not roster[name].enrolled}
    owners = _owners(folders, roster, chapter)
    return [
        _move(course, chapter, path, owner)
        for name, path in folders.items()
        if (owner := owners.get(name, name)) != name and roster[owner].enrolled
    ]


def _is_plain_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and not path.parent.is_symlink()


def _owners(folders: Mapping[str, Path], roster: Mapping[str, Student], chapter: str) -> dict[str, str]:
    """Return the roster ids that match the folder names; empty without a roster."""
    uploads = [
        Upload(Entry(PurePosixPath(name, chapter), None, _nothing), name, platform="nbgrader") for name in folders
    ]
    owned, _ = by_student(uploads, roster, chapter)
    return {
        upload.owner: student
        for student, student_uploads in owned.items()
        if student in roster
        for upload in student_uploads
    }


def _nothing() -> bytes:
    raise RefusedError("This is a folder.")


def _move(course: Course, chapter: str, path: Path, owner: str) -> Problem:
    name, target = path.parent.name, path.parent.with_name(owner)
    where = printable_path(f"submitted/{name}/{chapter}")
    message = f"{printable_path(name)} is {owner} on the class list"
    if (course.root / "results" / chapter / f"{name}.json").exists():
        message += f", and {chapter} is already graded under {printable_path(name)}."
        return Problem(
            KIND, message, where, f"Keep one of the two ids: write {printable_path(name)} into the class list."
        )
    try:
        if target.exists() and path.parent.samefile(target):
            path.parent.rename(target)  # a file system that does not tell capital letters from small ones
        elif os.path.lexists(target / chapter):
            message += f", who has a folder of {chapter} already."
            return Problem(KIND, message, where, "Keep the folder that counts, and move the other one away.")
        else:
            target.mkdir(exist_ok=True)
            path.rename(target / chapter)
            with suppress(OSError):
                path.parent.rmdir()  # unless it holds another chapter
    except OSError as error:
        return Problem(KIND, f"{message}; its folder cannot be renamed ({error.strerror}).", where, f"Call it {owner}.")
    return Problem("renamed", f"{message}: the folder is now submitted/{owner}/{chapter}.", where)
