"""Feedback: one self-contained page per submission, written by nbgrader's own converter to ``feedback/STUDENT/CHAPTER/CHAPTER.html``."""

from __future__ import annotations

import glob
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory

from autograder.course import Course
from autograder.errors import CourseError
from autograder.grading.manifest import released_manifest
from autograder.grading.plugin import configure
from autograder.grading.problem import Problem
from autograder.grading.quiet import quiet_log


def feedback(
    course: Course,
    chapter: str,
    *,
    students: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda student: None,
) -> tuple[list[Path], list[Problem]]:
    """Write the feedback pages of a chapter, anew: grades and comments may have changed since the last time.

    Args:
        course: the course.
        chapter: the chapter's name.
        students: whose pages; by default everybody's whose submission has been graded.
        progress: is told each student whose page is done.

    Returns:
        The pages, ordered by student, and a problem for each page that could not be written.

    Raises:
        CourseError: if the chapter is not released, or nothing of it has been graded.
    """
    released_manifest(course, chapter)
    graded = sorted(
        path.parent.parent.name for path in course.folder("autograded").glob(f"*/{chapter}/{chapter}.ipynb")
    )
    wanted = graded if students is None else sorted(set(students))
    if not wanted:
        raise CourseError(
            f"nothing of {chapter} has been graded yet",
            where=course.root,
            do=f"Grade it first: tfcourse autograde {chapter}",
        )
    pages, problems = [], []
    config = course.config()
    for student in wanted:
        page = course.folder("feedback", student, chapter) / f"{chapter}.html"
        try:
            _convert(config, chapter, student)
            pages.append(page)
        except _FailedError as error:
            do = "Grade it again: tfcourse autograde --force."
            problems.append(Problem("no feedback", f"There is no feedback for {student}: {error}", str(page), do))
        progress(student)
    return pages, problems


class _FailedError(Exception):
    """nbgrader could not make a page."""


def _convert(config: Any, chapter: str, student: str) -> None:
    configure(config)
    log, heard = quiet_log()
    coursedir = CourseDirectory(config=config, assignment_id=chapter, student_id=glob.escape(student))
    converter = GenerateFeedback(coursedir=coursedir, config=config, force=True, log=log)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            converter.start()
    except Exception as error:
        raise _FailedError(heard.cause(error)) from error
