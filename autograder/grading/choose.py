"""Deciding which of a student's notebooks counts."""

from __future__ import annotations

import os
from dataclasses import replace

from autograder.collecting.choices import apply_choice, other_notebooks, read_choice, write_choice
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.record.results import read_result, write_result


def choose(course: Course, student: str, chapter: str, file: str) -> None:
    """Have one of several notebooks count; it is graded by the next run. A new choice undoes an earlier one.

    Until it is graded, the submission is to be decided: what was graded before is no grade of it.

    Args:
        course: the course; the caller holds its lock.
        student: whose notebooks.
        chapter: the chapter.
        file: the name of the notebook that counts, in ``submitted/STUDENT/CHAPTER``.

    Raises:
        CourseError: if there is nothing to choose, or no such notebook among those to choose from.
    """
    folder = course.folder("submitted", student, chapter)
    notebooks = other_notebooks(folder, chapter)
    taken = os.path.lexists(folder / f"{chapter}.ipynb") and read_choice(course, chapter, student) is None
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
    write_choice(course, chapter, student, file, notebooks)
    apply_choice(course, chapter, student)
