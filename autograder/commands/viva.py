"""Run ``tfcourse viva``."""

from __future__ import annotations

import asyncio
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.commands.console import CommandResult, command, progress_bar
from autograder.commands.grade_chapter import apply_options
from autograder.commands.local_page import listen, user_name
from autograder.commands.options import course_option, jobs_option, page_options, weaker_option
from autograder.course.paths import course_folder

if TYPE_CHECKING:
    from autograder.course.folder import Course
    from autograder.quizzes.viva.interviews import Interview
    from autograder.quizzes.viva.live_view.server import VivaApplication


@click.command()
@click.argument("chapter", metavar="CHAPTER")
@course_option
@click.option(
    "--questions",
    type=click.IntRange(1, 12),
    help="The number of questions per student. [default: as before, and 4 the first time]",
)
@click.option("--live", is_flag=True, help="Record answers on a page on this machine, student by student.")
@page_options
@jobs_option
@weaker_option
@command
def viva(
    chapter: str,
    course_dir: Path | None,
    questions: int | None,
    live: bool,
    marker: str | None,
    port: int,
    no_browser: bool,
    jobs: int | None,
    allow_weaker: bool,
) -> CommandResult:
    """Make questions about each student's own code.

    For each student, the course's seed chooses one exercise that earned at least nine tenths of its points. Its code is run in the
    sandbox, as it is and with one line changed. The command writes a page of questions per student to print, and the keys. Questions that
    were made before are kept.

    With --live a page on this machine shows the questions, records the answers and then shows the keys. Answers go into nbgrader's
    gradebook as a separate assignment. --marker, --port and --no-browser belong to this page.

    Example:
      tfcourse viva 03 --questions 4
      tfcourse viva 03 --live
    """
    from autograder.course.folder import Course
    from autograder.course.gradebook.reader import released_chapters
    from autograder.quizzes.viva.interviews import interview_folder, last_question_count
    from autograder.quizzes.viva.pages import write_pages

    if not live and (marker is not None or port or no_browser):
        raise click.UsageError("--marker, --port and --no-browser require --live.")
    course = Course.open(course_folder(course_dir))
    (name,) = released_chapters(course, [chapter])
    sheets = _make_interviews(course, name, questions or last_question_count(course, name), jobs, allow_weaker)
    page, keys = write_pages(sheets, interview_folder(course, name), title=name)
    lacking = [item for item in sheets if item.problem]
    lines = [
        f"questions for {sum(bool(item.parts) for item in sheets)} of {len(sheets)} students: {page}",
        f"keys: {keys}",
    ]
    lines += [f"  {item.student}: {item.problem}" for item in lacking]
    data = {
        "questions": page,
        "keys": keys,
        "students": {item.student: {"questions": item.count, "problem": item.problem} for item in sheets},
    }
    if live:
        _serve(course, name, sheets, marker or user_name(), port, "\n".join(lines), open_browser=not no_browser)
        return CommandResult(data, "")
    return CommandResult(data, "\n".join(lines))


def _make_interviews(course: Course, chapter: str, count: int, jobs: int | None, allow_weaker: bool) -> list[Interview]:
    from autograder.grading.course_settings import settings_for_release
    from autograder.grading.record.results import read_results
    from autograder.quizzes.viva.interviews import make_interviews

    settings = settings_for_release(course, chapter, apply_options(course, jobs, "cpu", allow_weaker, None))
    total = sum(result.status == "graded" for result in read_results(course, chapter))
    with progress_bar("viva", total) as step:
        return make_interviews(course, chapter, count, settings, report=step)


def _serve(
    course: Course, chapter: str, sheets: Sequence[Interview], marker: str, port: int, text: str, *, open_browser: bool
) -> None:
    from autograder.quizzes.viva.live_view.server import VivaApplication

    application = VivaApplication(course, chapter, sheets, marker)
    application.write_gradebook()
    click.echo(text, err=True)
    asyncio.run(_listen(application, port, open_browser=open_browser))


async def _listen(application: VivaApplication, port: int, *, open_browser: bool) -> None:
    address = listen(application, port)
    click.echo(f"Record answers at {address}\nStop with Ctrl-C; every answer is kept.", err=True)
    if open_browser:
        webbrowser.open(address)
    await asyncio.Event().wait()
