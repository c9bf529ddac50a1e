"""Keep a chapter's intake journal, ``COURSE/journal/CHAPTER.intake.json``: facts from downloads, lists and people.

Before a collection copies a file, it writes down which submissions are pending. If the disk is full or the process is killed, later
commands name the missing ones: a file that still has its old hash has not been copied. Everything else is written after the copies, and
belongs to a notebook by its hash, so an entry of a collection that was killed never describes another notebook.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from autograder.atomic_files import write_atomically
from autograder.course.course_file import CourseFile
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.errors import CourseError
from autograder.intake.notebook.notebook_reader import UnreadableError, read_file
from autograder.intake.notebook.problem import Problem
from autograder.intake.notebook.timestamp import DOUBTFUL, read_timestamp, timestamp_problem
from autograder.intake.notebook.timestamp import KIND as NO_TIME

NOT_BROUGHT_IN = "not brought in"
LATE = "late"
# The kinds of problems that leave open how late a submission is.
OPEN_TIMES = frozenset({LATE, NO_TIME, DOUBTFUL})


class PendingSubmission(Struct, frozen=True):
    """A submission that a collection is about to copy."""

    student: str
    source: str  # the download that contains it
    upload: str  # the file in the download
    # per file of the submission its hash before and after the collection; empty for a missing file
    files: dict[str, tuple[str, str]]

    def to_dict(self) -> dict[str, str]:
        """Return the fields for reports as plain data, ready for JSON."""
        return {"student": self.student, "source": self.source, "upload": self.upload}


class Choice(Struct, frozen=True):
    """A person's choice among a student's notebooks."""

    digest: str  # its hash
    among: tuple[str, ...]  # the hashes of all notebooks that the student had handed in then

    def still_applies(self, digests: Iterable[str]) -> bool:
        """Return whether the choice still applies: the student has handed in no notebook besides the known ones."""
        return self.digest in digests and set(self.among) >= set(digests)


class UncountedNote(Struct, frozen=True):
    """An uncounted notebook in ``uncounted/CHAPTER/STUDENT``."""

    digest: str  # its hash
    stamp: str | None = None  # when it was handed in; None if that is not known


class IntakeJournal(Struct, omit_defaults=True):
    """The journal of one chapter's intake. Settled entries may be removed from the file by hand."""

    pending: list[PendingSubmission] = []
    unowned: dict[str, list[str]] = {}  # by download, the files that no student got
    late: dict[str, list[str]] = {}  # by student, hashes of notebooks that a platform calls late without a time
    choices: dict[str, Choice] = {}  # by student, the choice among several notebooks in ``submitted/``
    preferences: dict[str, Choice] = {}  # by student, the notebook of a download that counts in the place of another
    uncounted: dict[str, dict[str, UncountedNote]] = {}  # by student and name
    times: dict[str, str] = {}  # by student, the time of a submission that is still to come


def journal_path(course: Course, chapter: str) -> Path:
    """Return the path of a chapter's intake journal."""
    return course.root / "journal" / f"{chapter}.intake.json"


def read_journal(course: Course, chapter: str) -> IntakeJournal:
    """Read a chapter's intake journal.

    Raises:
        CourseError: if that cannot be read.
    """
    path = journal_path(course, chapter)
    try:
        return msgspec.json.decode(path.read_bytes(), type=IntakeJournal)
    except FileNotFoundError:
        return IntakeJournal()
    except (OSError, ValueError) as error:
        message = f"this journal of submissions that were brought in is damaged ({error})"
        do = "Move it away, collect the last download once more, and repeat choices among several notebooks."
        raise CourseError(message, where=path, do=do) from error


def write_journal(course: Course, chapter: str, journal: IntakeJournal) -> None:
    """Write the journal if it has changed, atomically."""
    path = journal_path(course, chapter)
    data = msgspec.json.format(msgspec.json.encode(journal, order="sorted"), indent=1) + b"\n"
    if journal == IntakeJournal():
        path.unlink(missing_ok=True)
    elif not path.exists() or path.read_bytes() != data:
        write_atomically(path, data)


def rename_student(course: Course, chapter: str, before: str, after: str) -> None:
    """Move the entries about one id's notebooks to another id."""
    journal = read_journal(course, chapter)
    by_student: tuple[dict[str, Any], ...] = (journal.late, journal.choices, journal.preferences)
    for notes in by_student:
        if before in notes:
            notes[after] = notes.pop(before)
    write_journal(course, chapter, journal)


def record_pending(course: Course, chapter: str, journal: IntakeJournal, coming: Sequence[PendingSubmission]) -> None:
    """Record pending submissions, in addition to submissions that an earlier collection left pending.

    Raises:
        CourseError: if the journal cannot be written. The caller must then copy nothing, because missing submissions would go unnoticed.
    """
    new = {item.student: item for item in coming if _is_missing(course, chapter, item)}
    if not new:
        return
    earlier = [item for item in missing_submissions(course, chapter, journal) if item.student not in new]
    journal.pending = [*earlier, *new.values()]
    try:
        write_journal(course, chapter, journal)
    except OSError as error:
        message = f"nothing of {chapter} was brought in: this file cannot be written ({error.strerror})"
        do = "Make room on the disk, and give the same command again."
        raise CourseError(message, where=journal_path(course, chapter), do=do) from error


def missing_submissions(course: Course, chapter: str, journal: IntakeJournal | None = None) -> list[PendingSubmission]:
    """Return the pending submissions that have not been copied, ordered by student.

    Raises:
        CourseError: if the journal cannot be read.
    """
    pending = (journal or read_journal(course, chapter)).pending
    absent = (item for item in pending if _is_missing(course, chapter, item))
    return sorted(absent, key=lambda item: item.student)


def missing_problems(course: Course, chapter: str, missing_items: Iterable[PendingSubmission]) -> list[Problem]:
    """Return a problem for each download with missing submissions."""
    by_source = groupby(sorted(missing_items, key=lambda item: (item.source, item.student)), lambda item: item.source)
    problems = []
    for source, items in by_source:
        students = [item.student for item in items]
        message = f"Of this download, submissions of {chapter} are not in the course folder: {', '.join(students)}."
        again = shell_command(course, "autograde", chapter, "--submissions", source)
        problems.append(Problem(NOT_BROUGHT_IN, message, source, f"Make room on the disk and bring them in: {again}"))
    return problems


def _is_missing(course: Course, chapter: str, item: PendingSubmission) -> bool:
    # Neither the old file nor the new one: somebody has put another one there by hand.
    folder = course.folder("submitted", item.student, chapter)
    return any(before != after and hash_file(folder / name) == before for name, (before, after) in item.files.items())


def find_time_problems(course: Course, chapter: str, students: Iterable[str], plan: CourseFile) -> dict[str, Problem]:
    """Return, by student, the problems that make a submission's lateness unknown; missing folders are skipped."""
    late, problems = read_journal(course, chapter).late, dict[str, Problem]()
    for student in students:
        folder = course.folder("submitted", student, chapter)
        if problem := timestamp_problem(folder, plan):
            problems[student] = problem
        elif student in late and read_timestamp(folder, plan.zone) is None:
            present = {hash_file(path) for path in folder.glob("*.ipynb")}
            problems |= {student: late_problem(folder)} if present & set(late[student]) else {}
    return problems


def late_problem(folder: Path) -> Problem:
    """Return the problem that Canvas marks the submission in a folder as late without a time."""
    message = "Canvas calls it late, but does not say by how much; nothing is taken off without a time."
    return Problem(LATE, message, do=f"Write the time into {folder / 'timestamp.txt'}.")


def hash_file(path: Path) -> str:
    """Return the hash of a file in the course; empty unless it is a regular file."""
    data = read_content(path)
    return "" if data is None else hash_content(data)


def read_content(path: Path) -> bytes | None:
    """Read a file in the course; return None unless it is a regular file."""
    try:
        return read_file(path)
    except UnreadableError:
        return None


def hash_content(data: bytes) -> str:
    """Return the hash of a file's content."""
    return hashlib.sha256(data).hexdigest()
