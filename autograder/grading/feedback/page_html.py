"""Make a feedback page's HTML of a graded notebook, in a process with a limit: the page holds text that students choose."""

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
from autograder.grading.feedback.counted_page import counted_page
from autograder.grading.feedback.markup import duration_text, in_code, points_text
from autograder.grading.feedback.page import feedback_page
from autograder.intake.roster import Student, read_roster
from autograder.limited_process import FailedCallError, LimitedProcess

TEMPLATES = Path(__file__).parent / "templates"
# Processor time that one page may take. A chapter's page takes a fiftieth.
PAGE_SECONDS = 4.0


class MadePage(NamedTuple):
    """A page's HTML; and, if it shows text as it was written, why."""

    html: str
    plain_because: str = ""


def page_process() -> LimitedProcess:
    """Return a process that makes feedback pages."""
    return LimitedProcess(__name__)


def made_page(
    process: LimitedProcess, notebook: Any, resources: Mapping[str, Any], site: str, course: str = ""
) -> MadePage:
    """Return the feedback page of a graded notebook. If rendering exceeds the limit, the student's texts are shown unrendered.

    Args:
        process: renders the page.
        notebook: the graded notebook; see :func:`autograder.grading.feedback.page.feedback_page`.
        resources: nbgrader's resources.
        site: the address of the course's site, or empty.
        course: the course folder, whose ``course.toml`` has the rules for exercises; or empty.

    Raises:
        FailedCallError: if even the unrendered page exceeds the limit.
    """
    arguments = notebook, dict(resources), site, course
    try:
        return MadePage(process.call(page_html, *arguments, seconds=PAGE_SECONDS))
    except FailedCallError as error:
        return MadePage(process.call(page_html, *arguments, seconds=PAGE_SECONDS, plain=True), str(error))


def page_html(
    notebook: Mapping[str, Any], resources: Mapping[str, Any], site: str, course: str = "", *, plain: bool = False
) -> str:
    """Return a page's HTML; see :func:`made_page`."""
    page = feedback_page(from_dict(notebook), resources, plain=plain)
    if course:
        page = counted_page(page, read_course_file(Path(course)))
        student = read_roster(Course(Path(course))).get(page.student, Student(page.student))
        if page.chapter in student.decided:
            points, reason = student.decided[page.chapter]
            page = replace(page, score=points, late_penalty=0.0, decision=reason)
    html: str = _template().render(page=page, site=site)
    return html


@cache
def _template() -> Any:
    environment = html_environment(FileSystemLoader(TEMPLATES))
    environment.globals["section_address"] = section_address
    return environment.get_template("feedback.html.j2")


def html_environment(loader: BaseLoader) -> Environment:
    """Return an environment for pages of HTML: values are escaped, and a missing one is an error."""
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"in_code": in_code, "points": points_text, "duration": duration_text}
    return environment


def printed_environment(package: str, stylesheet: str) -> Environment:
    """Return an environment for pages to print, whose templates extend ``printed.html``.

    Args:
        package: the package that has the templates.
        stylesheet: the name of the template with the styles that are theirs alone.
    """
    environment = html_environment(ChoiceLoader([PackageLoader(package), FileSystemLoader(TEMPLATES)]))
    environment.globals["stylesheet"] = stylesheet
    return environment
