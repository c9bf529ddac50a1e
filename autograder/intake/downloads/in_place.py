"""Look through the course's own folder of submissions, where only a missing name is added."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.intake.downloads.archive import printable_path
from autograder.intake.downloads.candidates import examine, pick_candidate
from autograder.intake.downloads.choices import MAX_NOTEBOOKS, apply_choice
from autograder.intake.downloads.collection import Collection
from autograder.intake.downloads.course_folder.folder_names import name_folders
from autograder.intake.downloads.pending import clear_if_done
from autograder.intake.downloads.pending import problems as problems_of_missing
from autograder.intake.downloads.store import what_to_do, write
from autograder.intake.downloads.teams import keep_roster
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.notebook_reader import UnreadableError, read_file
from autograder.intake.notebook.problem import Problem
from autograder.intake.notebook.timestamp import timestamp_problem
from autograder.intake.roster import is_safe, read_roster

_NAMED = 5


def collect_in_place(course: Course, manifest: Manifest, others: frozenset[str]) -> Collection:
    """Return the submissions in the course's own folder; rename misnamed notebooks and list the problems."""
    chapter, zone = manifest.chapter, read_course_file(course.root).zone
    collection = Collection(chapter, problems=_misplaced(course.folder("submitted"), chapter, others))
    collection.problems += name_folders(course, chapter)
    collection.missing = clear_if_done(course, chapter)
    collection.problems += problems_of_missing(course, chapter, collection.missing)
    for folder in sorted(course.folder("submitted").glob(f"*/{chapter}")):
        student = folder.parent.name
        where = f"submitted/{student}/{chapter}"
        if not is_safe(student) and folder.is_dir():
            continue  # grading names it
        if folder.is_dir():
            apply_choice(course, chapter, student)
        if problem := named(folder, manifest, where):
            collection.problems.append(problem)
            if not problem.fatal:
                collection.unchanged.append(student)
        else:
            collection.unchanged.append(student)
        if problem := timestamp_problem(folder, zone):
            collection.problems.append(problem)
    collection.problems += keep_roster(course, chapter, read_roster(course))
    return collection


def _misplaced(submitted: Path, chapter: str, others: frozenset[str]) -> list[Problem]:
    """Name the notebooks that nobody would find where they lie, and the folders that are the wrong way round."""
    do = (
        f"Each belongs to submitted/STUDENT/{chapter}/{chapter}.ipynb. "
        "Or move them out of submitted/ into another folder, and name that with --submissions."
    )
    students = [
        folder
        for folder in sorted(submitted.glob("*/"))
        if not (folder.name in others or folder.name.startswith(".") or folder.is_symlink())
        and not os.path.lexists(folder / chapter)
    ]
    problems = []
    for folder in (submitted, *students):
        where = printable_path(folder.relative_to(submitted.parent))
        inside = sorted(folder.glob("*"))
        if stray := [path.name for path in inside if path.name.lower().endswith(".ipynb") and path.is_file()]:
            message = f"{_counted(stray, 'notebook')} here, not in a student's folder of {chapter}: passed over."
            problems.append(Problem("wrong place", message, where, do))
        if folder.name == chapter and (names := [path.name for path in inside if path.is_dir()]):
            message = f"The folders are the wrong way round: {_counted(names, 'folder')} in the chapter's: passed over."
            problems.append(Problem("wrong place", message, where, do))
    return problems


def _counted(names: Sequence[str], noun: str) -> str:
    shown = printable_path(", ".join(names[:_NAMED])) + (" …" if len(names) > _NAMED else "")
    return f"{len(names)} {noun}{'s' if len(names) > 1 else ''} ({shown})"


def named(folder: Path, manifest: Manifest, where: str) -> Problem | None:
    """See to it that a student's folder holds a notebook of the chapter's name; say what is wrong if that cannot be."""
    chapter = manifest.chapter
    path = folder / f"{chapter}.ipynb"
    try:
        if folder.is_symlink() or folder.parent.is_symlink():
            read_file(path, above=2)
        if os.path.lexists(path):
            read_file(path, above=2)
            return None
        candidates = sorted(other for other in folder.iterdir() if other.name.lower().endswith(".ipynb"))
        if not candidates:
            return Problem("no notebook", "No notebook is here.", where, "Ask for the .ipynb file.", fatal=True)
        if len(candidates) > MAX_NOTEBOOKS:
            message = f"{len(candidates)} notebooks are here; only the first {MAX_NOTEBOOKS} are looked at."
            return Problem("too many notebooks", message, where, f"Leave one, and call it {chapter}.ipynb.")
        data = [read_file(other, above=2) for other in candidates]
        number, why = pick_candidate([examine(one, manifest) for one in data]) if len(data) > 1 else (0, "")
        if number is None:
            return None  # grading tells it, with the points of each
        write(path, data[number])
    except UnreadableError as error:
        do = "Ask for the notebook once more, and put it there as a file."
        return replace(error.problem, where=where, do=do)
    except OSError as error:
        do = what_to_do(error, "See to it that it can be read and written, then collect again.")
        return Problem("file refused", f"The folder cannot be used ({error.strerror}).", where, do, fatal=True)
    reason = f": of {len(candidates)} notebooks here it counts, for {why}" if why else ""
    return Problem("renamed", f"{candidates[number].name} was copied to {chapter}.ipynb{reason}.", where)
