"""Run ``tfcourse mark``."""

from __future__ import annotations

import asyncio
import getpass
import webbrowser
from functools import partial
from pathlib import Path

import click

from autograder.commands.console import CommandResult, command
from autograder.commands.options import course_option
from autograder.course.paths import course_folder, project_root, shell_command
from autograder.errors import CourseError


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # no name for this user id
        return "marker"


@click.command()
@click.argument("chapter", metavar="CHAPTER")
@course_option
@click.option("--live", is_flag=True, help="Also start the live view for a projector, at a second address.")
@click.option("--names", is_flag=True, help="Show the names of the students. [default: anonymous]")
@click.option("--marker", metavar="NAME", help="The marker's name in the history. [default: your user name]")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port. [default: a free one]")
@click.option("--no-browser", is_flag=True, help="Print the address, but do not open a browser.")
@command
def mark(
    chapter: str, course_dir: Path | None, live: bool, names: bool, marker: str | None, port: int, no_browser: bool
) -> CommandResult:
    """Mark code and written answers on a page on this machine.

    Code answers that behave alike are marked together, and so are identical written answers. Marks and comments go into nbgrader's
    gradebook. The live view shows counts, diagnoses and titles of rows, but no student's work; the browser then opens only that view.

    Example:
      tfcourse mark 03
    """
    from autograder.authoring.rubrics import read_rubrics
    from autograder.course.folder import Course
    from autograder.gradebook.reader import released_chapters
    from autograder.marking.live import LiveApplication
    from autograder.marking.questions import unreadable_notebooks
    from autograder.marking.server import MarkingApplication

    course = Course.open(course_folder(course_dir))
    (name,) = released_chapters(course, [chapter])
    rubrics = {}
    try:
        project = project_root()
    except CourseError:
        click.echo("This folder has no rubrics: run the command inside the course's project to see them.", err=True)
    else:
        rubrics = read_rubrics(project / "chapters" / name / "rubrics.md")
    tell = partial(click.echo, err=True)
    application = MarkingApplication(course, name, marker or _user(), rubrics, names=names, tell=tell)
    application.marks.recover()
    questions = application.questions()
    waiting = sum(question.waiting for question in questions if not question.is_code)
    code = sum(question.waiting for question in questions if question.is_code)
    if students := unreadable_notebooks(questions):
        again = shell_command(course, "regrade", name, *(f"--student={student}" for student in students))
        count = f"{len(students)} graded notebook{'s' * (len(students) > 1)}"
        click.echo(
            f"{count} cannot be read, so the answers are not shown: {', '.join(students)}. Grade again: {again}",
            err=True,
        )

    async def serve() -> None:
        try:
            _, address = application.listen_locally(port)
        except OSError as error:
            raise CourseError(f"port {port} cannot be used ({error.strerror})", do="Choose another --port.") from None
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
