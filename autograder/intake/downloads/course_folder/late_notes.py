"""Record in ``COURSE/journal/CHAPTER.late.json`` that a platform marks a submission as late without a submission time.

Only the download contains this mark. The note belongs to the notebook of that download and applies until a time is known.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from autograder.atomic_files import write_atomically
from autograder.course.course_file import CourseFile
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.downloads.pending import hash_of
from autograder.intake.notebook.notebook_reader import UnreadableError, read_file
from autograder.intake.notebook.problem import Problem
from autograder.intake.notebook.timestamp import KIND, read_timestamp, timestamp_problem

LATE, NO_TIME = "late", KIND
# The kinds of problems that leave open how late a submission is.
KINDS = frozenset({LATE, NO_TIME})


def note_late(course: Course, chapter: str, late: Mapping[str, Collection[str]], others: Collection[str]) -> None:
    """Remember who is late by the word of a platform alone.

    Args:
        late: for each of these students the hashes of the notebooks that are late.
        others: students whose earlier notes no longer hold, because they handed in again.
    """
    before = _notes(course, chapter)
    notes = {student: hashes for student, hashes in before.items() if student not in others}
    notes |= {student: sorted(hashes) for student, hashes in late.items()}
    if notes != before:
        write_atomically(_path(course, chapter), (json.dumps(notes, indent=1, sort_keys=True) + "\n").encode())


def time_problems(course: Course, chapter: str, student: str, plan: CourseFile) -> list[Problem]:
    """Return the problems that leave open how late a student's submission is.

    Args:
        plan: the course's ``course.toml``.
    """
    problem = open_times(course, chapter, [student], plan).get(student)
    return [problem] if problem else []


def open_times(course: Course, chapter: str, students: Iterable[str], plan: CourseFile) -> dict[str, Problem]:
    """Return the students of whom it is open how late they are, each with the problem.

    Args:
        students: ids of students; one without a folder in ``submitted/`` is passed over.
        plan: the course's ``course.toml``.
    """
    notes, problems = _notes(course, chapter), dict[str, Problem]()
    for student in students:
        folder = course.folder("submitted", student, chapter)
        if problem := timestamp_problem(folder, plan.zone):
            problems[student] = problem
        elif student in notes and read_timestamp(folder, plan.zone) is None and _hashes(folder) & set(notes[student]):
            problems[student] = late_problem(folder)
    return problems


def late_problem(folder: Path) -> Problem:
    """Return the problem that Canvas calls a submission late, without a time.

    Args:
        folder: the student's folder of the chapter.
    """
    message = "Canvas calls it late, but does not say by how much; nothing is taken off without a time."
    return Problem(LATE, message, do=f"Write the time into {folder / 'timestamp.txt'}.")


def _path(course: Course, chapter: str) -> Path:
    return course.root / "journal" / f"{chapter}.late.json"


def _notes(course: Course, chapter: str) -> dict[str, list[str]]:
    path = _path(course, chapter)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        return {str(student): [str(one) for one in hashes] for student, hashes in data.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        message = f"this list of late submissions is damaged ({error})"
        raise CourseError(message, where=path, do="Move it away, and collect the last download once more.") from error


def _hashes(folder: Path) -> set[str]:
    hashes = set()
    for path in folder.glob("*.ipynb"):
        try:
            hashes.add(hash_of(read_file(path, above=2)))
        except UnreadableError:
            continue
    return hashes
