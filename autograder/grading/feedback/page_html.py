"""Render a graded notebook's feedback page in a process with a time limit, because it contains students' text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import BaseLoader, ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined
from nbformat.notebooknode import from_dict

from autograder.checking.verdict import section_address
from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.grading.feedback.counted_page import apply_rules
from autograder.grading.feedback.markup import duration_text, points_text, sentence_html
from autograder.grading.feedback.page import build_feedback_page
from autograder.intake.roster import Student, read_roster
from autograder.limited_process import FailedCallError, LimitedProcess

TEMPLATES = Path(__file__).parent / "templates"
# Processor time that one page may take. A chapter's page takes a fiftieth.
PAGE_SECONDS = 4.0


class RenderedPage(NamedTuple):
    """A page's HTML, and the reason why its texts are shown unrendered, if they are."""

    html: str
    plain_because: str = ""


def page_process() -> LimitedProcess:
    """Return a limited process that renders feedback pages."""
    return LimitedProcess(__name__)


def make_page(
    process: LimitedProcess, notebook: Any, resources: Mapping[str, Any], site: str, course: str = ""
) -> RenderedPage:
    """Render a graded notebook's feedback page; beyond the time limit, the student's texts stay unrendered.

    Args:
        process: renders the page.
        notebook: the graded notebook; see :func:`autograder.grading.feedback.page.build_feedback_page`.
        resources: nbgrader's resources.
        site: the address of the course's site, or empty.
        course: the course folder, whose ``course.toml`` has the rules for exercises; or empty.

    Raises:
        FailedCallError: if even the unrendered page exceeds the limit.
    """
    arguments = notebook, dict(resources), site, course
    try:
        return RenderedPage(process.call(page_html, *arguments, seconds=PAGE_SECONDS))
    except FailedCallError as error:
        return RenderedPage(process.call(page_html, *arguments, seconds=PAGE_SECONDS, plain=True), str(error))


def page_html(
    notebook: Mapping[str, Any], resources: Mapping[str, Any], site: str, course: str = "", *, plain: bool = False
) -> str:
    """Render the HTML of a page; see :func:`make_page`."""
    page = build_feedback_page(from_dict(notebook), resources, plain=plain)
    if course:
        page = apply_rules(page, read_course_file(Path(course)))
        student = read_roster(Course(Path(course))).get(page.student, Student(page.student))
        if page.chapter in student.decided:
            points, reason = student.decided[page.chapter]
            page = replace(page, score=points, late_penalty=0.0, decision=reason)
    html: str = _load_template().render(page=page, site=site)
    return html


@cache
def _load_template() -> Any:
    environment = html_environment(FileSystemLoader(TEMPLATES))
    environment.globals["section_address"] = section_address
    return environment.get_template("feedback.html.j2")


def html_environment(loader: BaseLoader) -> Environment:
    """Return a Jinja environment for HTML pages: values are escaped, and an undefined one is an error."""
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"in_code": sentence_html, "points": points_text, "duration": duration_text}
    return environment


def printable_environment(package: str, stylesheet: str) -> Environment:
    """Return a Jinja environment for printable pages, whose templates extend ``printed.html``.

    Args:
        package: the package that has the templates.
        stylesheet: the name of the template with the styles that are theirs alone.
    """
    environment = html_environment(ChoiceLoader([PackageLoader(package), FileSystemLoader(TEMPLATES)]))
    environment.globals["stylesheet"] = stylesheet
    return environment
