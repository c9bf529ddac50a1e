"""Run ``tfcourse viva``."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.commands.console import CommandResult, command, progress_bar
from autograder.commands.grade_chapter import settings_for
from autograder.commands.options import course_option
from autograder.course.paths import course_folder


@click.command()
@click.argument("chapter", metavar="CHAPTER")
@course_option
@click.option(
    "--questions", type=click.IntRange(1, 12), default=4, show_default=True, help="The number of questions per student."
)
@click.option("--jobs", type=click.IntRange(min=1), help="Submissions that run at once. [default: one per core]")
@click.option("--allow-weaker-isolation", "allow_weaker", is_flag=True, help="Run with less isolation if needed.")
@command
def viva(chapter: str, course_dir: Path | None, questions: int, jobs: int | None, allow_weaker: bool) -> CommandResult:
    """Make questions about each student's own code.

    The code of one exercise with nine tenths of its points or more is run in the sandbox, as it is and with one line changed. The command
    writes a page of questions per student to print, and the keys. Questions that were made before are kept.

    Example:
      tfcourse viva 03 --questions 4
    """
    from autograder.course.folder import Course
    from autograder.gradebook.reader import released_chapters
    from autograder.grading.course_settings import as_released
    from autograder.record.results import read_results
    from autograder.viva.interviews import folder_of, interviews
    from autograder.viva.pages import write_pages

    course = Course.open(course_folder(course_dir))
    (name,) = released_chapters(course, [chapter])
    settings = as_released(course, name, settings_for(course, jobs, "cpu", allow_weaker, None))
    total = sum(result.status == "graded" for result in read_results(course, name))
    with progress_bar("viva", total) as step:
        sheets = interviews(course, name, questions, settings, report=step)
    page, keys = write_pages(sheets, folder_of(course, name), title=name)
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
    return CommandResult(data, "\n".join(lines))
