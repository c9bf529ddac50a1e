"""Make feedback pages for the members of a group who did not hand in themselves: with their own name, points and lateness."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import nbformat
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory

from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.grading.feedback.exporter import FeedbackExporter, with_gradebook
from autograder.grading.reports.grades import Grade, read_grades


def member_pages(course: Course, chapter: str, members: Iterable[str]) -> dict[str, bytes]:
    """Return the pages of group members, by student; a member has none if the group's notebook is not graded.

    Args:
        members: ids of students whose group has handed in for them.
    """
    member_ids = frozenset(members)
    if not member_ids:
        return {}
    # The page applies the rules of course.toml for single exercises itself.
    everyone = read_grades(course, [chapter], by_rules=False)
    grades = [grade for grade in everyone if grade.handed_in_by and grade.student in member_ids]
    config = course.config()
    coursedir = CourseDirectory(config=config, assignment_id=chapter)
    converter = GenerateFeedback(coursedir=coursedir, config=config)
    exporter = FeedbackExporter(parent=converter, config=config)
    pages = {}
    with open_gradebook(course) as gradebook:
        step = with_gradebook(gradebook)(config=config)
        for grade in grades:
            path = course.folder("autograded", grade.handed_in_by, chapter) / f"{chapter}.ipynb"
            if path.is_file():
                notebook: Any = nbformat.read(path, as_version=4)
                metadata = {"assignment": chapter, "notebook": chapter, "student": grade.handed_in_by}
                metadata["db_url"] = course.gradebook_url
                step.preprocess(notebook, {"nbgrader": metadata})
                page, _ = exporter.from_notebook_node(notebook, {"nbgrader": metadata | _member_data(grade, metadata)})
                pages[grade.student] = page.encode()
    return pages


def _member_data(grade: Grade, submitter: dict[str, Any]) -> dict[str, Any]:
    """Return what differs between a member's page and that of the member who handed in."""
    named = grade.first_name or grade.last_name
    return {
        "student": grade.student,
        "handed_in_by": grade.handed_in_by,
        "name": grade.full_name if named else "",
        "score": max(0.0, submitter["score"] + submitter["late_penalty"] - grade.penalty),
        "late_penalty": grade.penalty,
        "seconds_late": grade.late_by.total_seconds(),
    }
