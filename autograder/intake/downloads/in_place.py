"""Collect from the course's own folder of submissions, where only misnamed folders and notebooks are renamed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.errors import list_first
from autograder.intake.downloads.archive import Entry, escape_unprintable
from autograder.intake.downloads.choices import MAX_NOTEBOOKS, apply_choice
from autograder.intake.downloads.download import other_chapters
from autograder.intake.downloads.journal import missing_problems, missing_submissions, read_journal, write_journal
from autograder.intake.downloads.selection import examine_file, pick_candidate
from autograder.intake.downloads.store import Collection, disk_error_advice, update_roster, write_file
from autograder.intake.downloads.student_ids import assign_students
from autograder.intake.downloads.uploads import Upload
from autograder.intake.notebook.manifest import Manifest, released_manifest
from autograder.intake.notebook.notebook_reader import UnreadableError, read_file
from autograder.intake.notebook.problem import Problem
from autograder.intake.notebook.timestamp import timestamp_problem
from autograder.intake.roster import is_safe, read_roster

CONFLICT = "conflict copy"
_OTHER_ID = "other id"
# What Dropbox and Nextcloud, and Syncthing, write into the name of the second version of a file or a folder.
_CONFLICT_COPY = re.compile(r"conflicted copy|\.sync-conflict-", re.IGNORECASE)


def collect_in_place(course: Course, chapter: str) -> Collection:
    """Collect from the course's own folder: rename misnamed folders and notebooks, and list the problems."""
    manifest, plan = released_manifest(course, chapter), read_course_file(course.root)
    others = other_chapters(course, manifest)
    collection = Collection(chapter, problems=_misplaced_problems(course.folder("submitted"), chapter, others))
    collection.problems += [*conflict_problems(course, chapter), *rename_folders(course, chapter)]
    journal = read_journal(course, chapter)
    collection.missing = journal.pending = missing_submissions(course, chapter, journal)
    with suppress(OSError):  # what has come is found again the next time
        write_journal(course, chapter, journal)
    collection.problems += missing_problems(course, chapter, collection.missing)
    for folder in sorted(course.folder("submitted").glob(f"*/{chapter}")):
        student = folder.parent.name
        if not is_safe(student) and folder.is_dir():
            continue  # grading names it
        if folder.is_dir():
            apply_choice(course, chapter, student, journal.choices.get(student))
        problem = _name_notebook(folder, manifest, f"submitted/{student}/{chapter}")
        if problem is None or not problem.fatal:
            collection.unchanged.append(student)
        collection.problems += filter(None, (problem, timestamp_problem(folder, plan)))
    collection.problems += update_roster(course, chapter, read_roster(course))
    return collection


def conflict_problems(course: Course, chapter: str) -> list[Problem]:
    """Return a problem for each conflict copy that a synced folder keeps in ``submitted/``: none is graded."""
    root = course.folder("submitted")
    paths = [path for pattern in ("*", "*/*", f"*/{chapter}/*") for path in sorted(root.glob(pattern))]
    return [
        Problem(
            CONFLICT,
            "A synced folder was changed in two places, and keeps both versions; this one does not count.",
            escape_unprintable(path.relative_to(root.parent)),
            "Keep the version that counts under the proper name, and remove the other one.",
        )
        for path in paths
        if _CONFLICT_COPY.search(path.name)
    ]


def _misplaced_problems(submitted: Path, chapter: str, others: frozenset[str]) -> list[Problem]:
    """Return problems for misplaced notebooks, and for folders that are nested the wrong way round."""
    do = f"Each belongs to submitted/STUDENT/{chapter}/{chapter}.ipynb. Or move them elsewhere, and name that with --submissions."
    students = [
        folder
        for folder in sorted(submitted.glob("*/"))
        if not (folder.name in others or folder.name.startswith(".") or folder.is_symlink())
        and not os.path.lexists(folder / chapter)
    ]
    problems = []
    for folder in (submitted, *students):
        where = escape_unprintable(folder.relative_to(submitted.parent))
        inside = sorted(folder.glob("*"))
        if stray := [path.name for path in inside if path.name.lower().endswith(".ipynb") and path.is_file()]:
            message = f"{_count_text(stray, 'notebook')} here, not in a student's folder of {chapter}: passed over."
            problems.append(Problem("wrong place", message, where, do))
        if folder.name == chapter and (names := [path.name for path in inside if path.is_dir()]):
            message = (
                f"The folders are the wrong way round: {_count_text(names, 'folder')} in the chapter's: passed over."
            )
            problems.append(Problem("wrong place", message, where, do))
    return problems


def _count_text(names: Sequence[str], noun: str) -> str:
    shown = escape_unprintable(list_first(names))
    return f"{len(names)} {noun}{'s' if len(names) > 1 else ''} ({shown})"


def _name_notebook(folder: Path, manifest: Manifest, where: str) -> Problem | None:
    """Ensure that a student's folder has a notebook with the chapter's name; return the problem if that fails."""
    chapter = manifest.chapter
    path = folder / f"{chapter}.ipynb"
    try:
        if folder.is_symlink() or folder.parent.is_symlink():
            read_file(path, above=2)
        if os.path.lexists(path):
            read_file(path, above=2)
            return None
        notebooks = (other for other in folder.iterdir() if other.name.lower().endswith(".ipynb"))
        candidates = sorted(other for other in notebooks if not _CONFLICT_COPY.search(other.name))
        if not candidates:
            return Problem("no notebook", "No notebook is here.", where, "Ask for the .ipynb file.", fatal=True)
        if len(candidates) > MAX_NOTEBOOKS:
            message = f"{len(candidates)} notebooks are here; only the first {MAX_NOTEBOOKS} are looked at."
            return Problem("too many notebooks", message, where, f"Leave one, and call it {chapter}.ipynb.")
        data = [read_file(other, above=2) for other in candidates]
        number, why = pick_candidate([examine_file(one, manifest) for one in data]) if len(data) > 1 else (0, "")
        if number is None:
            return None  # grading tells it, with the points of each
        write_file(path, data[number])
    except UnreadableError as error:
        do = "Ask for the notebook once more, and put it there as a file."
        return replace(error.problem, where=where, do=do)
    except OSError as error:
        do = disk_error_advice(error, "Make sure that it is readable and writable, then collect again.")
        return Problem("file refused", f"The folder cannot be used ({error.strerror}).", where, do, fatal=True)
    reason = f": of {len(candidates)} notebooks here it counts, for {why}" if why else ""
    return Problem("renamed", f"{candidates[number].name} was copied to {chapter}.ipynb{reason}.", where)


def rename_folders(course: Course, chapter: str) -> list[Problem]:
    """Rename a chapter's folders to their students' ids on the class list; return problems with what was done.

    A folder that a person has made may be called ``ada01`` for ``ADA01``. It finds its student by the rules for downloads,
    so a student never has two grades.
    """
    roster = read_roster(course)
    if not any(student.enrolled for student in roster.values()):
        return []
    submitted = course.folder("submitted")
    paths = sorted(path for path in submitted.glob(f"*/{chapter}") if path.is_dir())
    folders = {path.parent.name: path for path in paths if not (path.is_symlink() or path.parent.is_symlink())}
    # A folder that is named after an id is that student's, whatever another folder is called.
    folders = {name: path for name, path in folders.items() if name not in roster or not roster[name].enrolled}
    uploads = [Upload(Entry(PurePosixPath(name, chapter), None, bytes), name, platform="nbgrader") for name in folders]
    owned, _ = assign_students(uploads, roster, chapter)
    owners = {upload.owner: student for student in owned.keys() & roster.keys() for upload in owned[student]}
    return [
        _move_folder(course, chapter, path, owner)
        for name, path in folders.items()
        if (owner := owners.get(name, name)) != name and roster[owner].enrolled
    ]


def _move_folder(course: Course, chapter: str, path: Path, owner: str) -> Problem:
    name, target = path.parent.name, path.parent.with_name(owner)
    where = escape_unprintable(f"submitted/{name}/{chapter}")
    message = f"{escape_unprintable(name)} is {owner} on the class list"
    if (course.root / "results" / chapter / f"{name}.json").exists():
        message += f", and {chapter} is already graded under {escape_unprintable(name)}."
        return Problem(
            _OTHER_ID, message, where, f"Keep one of the two ids: write {escape_unprintable(name)} into the class list."
        )
    try:
        if target.exists() and path.parent.samefile(target):
            path.parent.rename(target)  # a file system that does not tell capital letters from small ones
        elif os.path.lexists(target / chapter):
            message += f", who has a folder of {chapter} already."
            return Problem(_OTHER_ID, message, where, "Keep the folder that counts, and move the other one away.")
        else:
            target.mkdir(exist_ok=True)
            path.rename(target / chapter)
            with suppress(OSError):
                path.parent.rmdir()  # unless it holds another chapter
    except OSError as error:
        return Problem(
            _OTHER_ID, f"{message}; its folder cannot be renamed ({error.strerror}).", where, f"Call it {owner}."
        )
    return Problem("renamed", f"{message}: the folder is now submitted/{owner}/{chapter}.", where)
