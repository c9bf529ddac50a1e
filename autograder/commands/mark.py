"""Run ``tfcourse mark``."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.commands.console import CommandResult, command
from autograder.commands.local_page import listen, user_name
from autograder.commands.options import course_option, page_options
from autograder.course.paths import course_folder, project_root, shell_command
from autograder.errors import CourseError

if TYPE_CHECKING:
    from autograder.course.authoring.rubrics import Rubric
    from autograder.course.folder import Course


def _read_rubrics(course: Course, chapter: str) -> Mapping[str, Rubric]:
    """Return a chapter's rubrics from the project or else from the course's source notebook."""
    from autograder.course.authoring.rubrics import read_rubrics, rubrics_in_notebook

    with suppress(CourseError):
        if rubrics := read_rubrics(project_root() / "chapters" / chapter / "rubrics.md"):
            return rubrics
    return rubrics_in_notebook(course.folder("source", ".", chapter) / f"{chapter}.ipynb")


@click.command()
@click.argument("chapter", metavar="CHAPTER")
@course_option
@click.option(
    "--live",
    is_flag=True,
    help="Also start a view for a projector, without names or code, and open it instead of the marking page.",
)
@click.option("--names", is_flag=True, help="Show the names of the students, which are hidden otherwise.")
@page_options
@command
def mark(
    chapter: str, course_dir: Path | None, live: bool, names: bool, marker: str | None, port: int, no_browser: bool
) -> CommandResult:
    """Mark code and written answers on a page on this machine.

    Code answers that behave alike are marked together, and so are identical written answers. Marks and comments go into nbgrader's
    gradebook at once; stop with Ctrl-C. Run `tfcourse autograde` afterwards to put them into the feedback pages. CHAPTER is a number or a
    word of the name, such as 3 or gpt.

    Example:
      tfcourse mark 03
    """
    from autograder.course.folder import Course
    from autograder.course.gradebook.reader import released_chapters
    from autograder.grading.record.results import read_results
    from autograder.marking.live_view import LiveApplication
    from autograder.marking.questions import unreadable_notebooks
    from autograder.marking.server import MarkingApplication

    course = Course.open(course_folder(course_dir))
    (name,) = released_chapters(course, [chapter])
    rubrics = partial(_read_rubrics, course, name)
    report = partial(click.echo, err=True)
    application = MarkingApplication(course, name, marker or user_name(), rubrics, names=names, report=report)
    application.marks.recover()
    questions = application.reader.questions()
    if not rubrics() and not all(question.is_code for question in questions):
        report(
            f"The questions in words of {name} have no rubrics: its source notebook in the course folder holds none."
        )
    waiting = sum(question.waiting for question in questions if not question.is_code)
    code = sum(question.waiting for question in questions if question.is_code)
    ungradable = {result.student for result in read_results(course, name) if result.status == "not gradable"}
    if students := [student for student in unreadable_notebooks(questions) if student not in ungradable]:
        again = shell_command(course, "regrade", name, *(f"--student={student}" for student in students))
        count = f"{len(students)} graded notebook{'s' * (len(students) > 1)}"
        click.echo(
            f"{count} cannot be read, so the answers are not shown: {', '.join(students)}. Grade again: {again}",
            err=True,
        )

    async def serve() -> None:
        address = listen(application, port)
        click.echo(f"{waiting} answers wait, {code} code answers lost points and are not marked.", err=True)
        click.echo(f"Mark them at {address}\nStop with Ctrl-C; every mark is kept.", err=True)
        if live:
            # The marking page shows students' work: on a projector only the live view may open by itself.
            _, address = LiveApplication(application.reader).listen_locally()
            click.echo(f"The live view is at {address}", err=True)
        if not no_browser:
            webbrowser.open(address)
        await asyncio.Event().wait()

    asyncio.run(serve())
    return CommandResult({"chapter": name}, "")
