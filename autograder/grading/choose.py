"""Record which of a student's notebooks is graded."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from dataclasses import replace
from pathlib import Path

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading.record.results import read_result, write_result
from autograder.intake.downloads.choices import (
    UncountedNotebook,
    apply_choice,
    other_notebooks,
    store_uncounted,
    uncounted_notebooks,
)
from autograder.intake.downloads.journal import Choice, IntakeJournal, hash_content, read_journal, write_journal
from autograder.intake.downloads.store import submitted_notebook, write_submission


def choose(course: Course, student: str, chapter: str, file: str) -> None:
    """Record the choice of one of several notebooks, which the next run grades.

    A new choice replaces an earlier one.

    An uncounted notebook of the last collection replaces the current one, which is archived in ``replaced/``.

    Until that run, the submission has the status "to decide", and an earlier grade does not apply.

    Args:
        course: the course; the caller holds its lock.
        file: the name of the notebook that counts, in ``submitted/STUDENT/CHAPTER``.

    Raises:
        CourseError: if there is nothing to choose, or the notebook is not among the alternatives.
    """
    folder = course.folder("submitted", student, chapter)
    journal = read_journal(course, chapter)
    if _take_uncounted(course, student, chapter, file, journal):
        return
    notebooks = other_notebooks(folder, chapter)
    taken = os.path.lexists(folder / f"{chapter}.ipynb") and student not in journal.choices
    if len(notebooks) < 2 or taken:
        message = f"there is nothing to choose: {student} has one notebook of {chapter}, or none"
        if taken:
            message = f"there is nothing to choose: {chapter}.ipynb counts, for its name is the chapter's"
        do = "To have another notebook count, put it there in its place."
        raise CourseError(message, where=folder, do=do)
    if file not in notebooks:
        raise CourseError(f"there is no {file} among {', '.join(notebooks)}", where=folder, do="Name one of those.")
    stored = read_result(course, chapter, student)
    if stored is not None:
        write_result(course, replace(stored, status="to decide", submission="", unchanged=False))
    journal.choices[student] = _make_choice(notebooks[file], notebooks.values())
    write_journal(course, chapter, journal)
    apply_choice(course, chapter, student, journal.choices[student])


def _make_choice(data: bytes, among: Iterable[bytes]) -> Choice:
    return Choice(hash_content(data), tuple(sorted({hash_content(one) for one in among})))


def _take_uncounted(course: Course, student: str, chapter: str, file: str, journal: IntakeJournal) -> bool:
    """Replace the current notebook by an uncounted one, and return whether a notebook of that name exists."""
    uncounted = uncounted_notebooks(course, chapter, student, journal)
    path = submitted_notebook(course, chapter, student)
    if file not in uncounted or not path.is_file():
        return False
    current, taken = path.read_bytes(), uncounted[file]
    time = path.with_name("timestamp.txt")
    earlier_stamp = time.read_bytes() if time.is_file() else None
    # The notebooks of one download may have one time, which is written beside the one that counts alone.
    stamp = taken.stamp if taken.stamp is not None else earlier_stamp
    stored = read_result(course, chapter, student)
    if stored is not None:
        write_result(course, replace(stored, status="to decide", submission="", unchanged=False))
    notebooks = [current, *(other.data for other in uncounted.values())]
    journal.preferences[student] = _make_choice(taken.data, notebooks)
    write_journal(course, chapter, journal)
    choice = journal.choices.get(student)
    write_submission(course, chapter, student, {path.name: taken.data}, stamp, _companion_contents(path), choice)
    others = {name: notebook for name, notebook in uncounted.items() if name != file}
    remaining = {**others, _free_name(others): UncountedNotebook(current, earlier_stamp)}
    store_uncounted(course, chapter, student, remaining, journal)
    write_journal(course, chapter, journal)
    return True


def _companion_contents(path: Path) -> dict[str, bytes]:
    """Read a notebook's companion files, which also belong to its replacement."""
    files = (file for file in sorted(path.parent.rglob("*")) if file.is_file() and not file.is_symlink())
    notebook_and_time = (path, path.with_name("timestamp.txt"))
    return {
        file.relative_to(path.parent).as_posix(): file.read_bytes() for file in files if file not in notebook_and_time
    }


def _free_name(names: Container[str]) -> str:
    """Return a free name for the notebook that was graded before."""
    return next(name for name in ("before.ipynb", *(f"before_{n}.ipynb" for n in range(2, 100))) if name not in names)
