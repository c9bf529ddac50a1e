"""Write each submission's feedback page with nbgrader's converter, ``feedback/STUDENT/CHAPTER/CHAPTER.html``."""

from __future__ import annotations

import errno
import glob
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from traitlets.config import Config

from autograder.course.folder import Course
from autograder.course.gradebook.nbgrader_log import capture_log, silence_warnings
from autograder.course.gradebook.reader import open_gradebook
from autograder.grading.feedback.exporter import FeedbackExporter, LoadGrades, bind_gradebook, bind_process
from autograder.grading.feedback.page_html import page_process
from autograder.grading.feedback.page_stamps import PageStamps
from autograder.grading.record.results import read_result, write_result
from autograder.intake.notebook.manifest import released_manifest
from autograder.intake.notebook.problem import Problem

KIND, PLAIN = "no feedback", "plain feedback page"
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def graded_students(course: Course, chapter: str) -> list[str]:
    """Return the students with a graded notebook of a chapter, sorted: each of them gets a page."""
    return sorted(path.parent.parent.name for path in course.folder("autograded").glob(f"*/{chapter}/{chapter}.ipynb"))


def stale_pages(course: Course, chapter: str, config: Config) -> list[str]:
    """Return the students whose page is missing or outdated by a later mark, comment or other change.

    Args:
        chapter: the chapter's name.
        config: nbgrader's configuration, with the course's own steps in it.
    """
    students = graded_students(course, chapter)
    if not students:
        return []
    with open_gradebook(course) as gradebook:
        stamps = PageStamps(course, chapter, config, gradebook)
        return [student for student in students if not stamps.is_current(student)]


def write_feedback(
    course: Course,
    chapter: str,
    config: Config,
    *,
    students: Sequence[str] | None = None,
    progress: Callable[[str], None] = lambda student: None,
) -> list[Path]:
    """Write a chapter's feedback pages, and rewrite pages whose inputs, such as grades or comments, have changed.

    A page that cannot be written, or whose texts took too long to render, is listed among the problems of the student's result. The other
    pages are still written.

    Args:
        chapter: the chapter's name.
        config: nbgrader's configuration, with the course's own steps in it.
        students: the students whose pages to write; by default all students with a graded submission.
        progress: called with each finished student.

    Returns:
        The pages, ordered by student.

    Raises:
        CourseError: if the chapter is not released.
    """
    released_manifest(course, chapter)
    pages = []
    with open_gradebook(course) as gradebook, page_process() as process:
        stamps = PageStamps(course, chapter, config, gradebook)
        shared = {LoadGrades: bind_gradebook(gradebook), FeedbackExporter: bind_process(process)}
        settings = config.GenerateFeedback
        settings.preprocessors = [shared.get(kind, kind) for kind in settings.preprocessors]
        settings.exporter_class = shared.get(settings.exporter_class, settings.exporter_class)
        for student in graded_students(course, chapter) if students is None else sorted(set(students)):
            page = course.folder("feedback", student, chapter) / f"{chapter}.html"
            problem = None if stamps.is_current(student) else _write_page(config, chapter, student)
            _update_page_problem(course, chapter, student, problem)
            if problem is None or problem.kind == PLAIN:
                pages.append(page)
            if problem is None:
                stamps.record_page(student)
            else:
                # The next run tries again, also where a busy machine made a page plain.
                stamps.forget_page(student)
            progress(student)
        stamps.write()
    return pages


def _write_page(config: Any, chapter: str, student: str) -> Problem | None:
    """Let nbgrader write a page; return the problem if the page is missing or plain."""
    log, errors = capture_log()
    coursedir = CourseDirectory(config=config, assignment_id=chapter, student_id=glob.escape(student))
    converter = GenerateFeedback(coursedir=coursedir, config=config, force=True, log=log)
    try:
        with silence_warnings():
            converter.start()
    except Exception as error:
        problem = f"The feedback page could not be made: {errors.cause(error).rstrip('.')}."
        return Problem(KIND, problem, do=_choose_remedy(errors.error or error))
    if why := getattr(converter.exporter, "plain_because", ""):
        shown = (
            f"The feedback page shows the student's texts as they were written: to render them failed because {why}."
        )
        return Problem(PLAIN, shown, remark=True)
    return None


def _choose_remedy(cause: BaseException) -> str:
    """Return the advice for a page that could not be written, depending on the exception."""
    if not isinstance(cause, OSError):
        return "Grade the chapter again with --force."
    first = "Put that right"
    if cause.errno in _NO_SPACE:
        first = "Free some space"
    elif cause.errno in _FORBIDDEN:
        first = "Check who may write there"
    return f"{first}, and grade the chapter again: that writes the pages."


def _update_page_problem(course: Course, chapter: str, student: str, problem: Problem | None) -> None:
    """Update the feedback problem in the student's stored result."""
    result = read_result(course, chapter, student)
    if result is None:
        return
    others = tuple(other for other in result.problems if other.kind not in (KIND, PLAIN))
    now = others if problem is None else (*others, problem)
    if now != result.problems:
        write_result(course, replace(result, problems=now))
