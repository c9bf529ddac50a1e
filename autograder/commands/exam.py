"""Run ``tfcourse exam``."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.commands.console import CommandResult, command, progress_bar
from autograder.commands.options import course_option, required_chapters_argument, resolve_project_chapters
from autograder.course.paths import course_folder, project_root
from autograder.errors import CourseError

if TYPE_CHECKING:
    from autograder.course.course_file import CourseFile

_NAME = re.compile(r"[\w-]+(\.[\w-]+)*")


@click.command()
@required_chapters_argument
@course_option
@click.option(
    "--questions",
    type=click.IntRange(1, 60),
    default=12,
    show_default=True,
    help="The number of questions in each version.",
)
@click.option("--versions", type=click.IntRange(1, 4), default=4, show_default=True, help="The number of versions.")
@click.option(
    "--seed", help="Seed of the choice of questions; the same seed gives the same files. [default: a random one]"
)
@click.option(
    "--without",
    type=click.IntRange(1, 60),
    multiple=True,
    metavar="NUMBER",
    help="Strike this question and draw another one for it; with the same seed the others stay. It can be given several times.",
)
@click.option("--name", help="The folder within course/exam/. [default: the numbers of the chapters]")
@command
def exam(
    chapters: tuple[str, ...],
    course_dir: Path | None,
    questions: int,
    versions: int,
    seed: str | None,
    without: tuple[int, ...],
    name: str | None,
) -> CommandResult:
    """Make an exam from known mistakes of chapters that are no longer due.

    Each question shows code with one mistake. Papers and keys are HTML pages to print; moodle.xml has the questions of all versions for a
    question bank, canvas.zip a quiz for each version. Show no known mistakes of a chapter that is still due: the code is one edit away
    from a solution.

    Example:
      tfcourse exam 03 05 07 --questions 12 --versions 4
    """
    from autograder.atomic_files import write_all_or_none
    from autograder.course.course_file import read_course_file
    from autograder.course.folder import Course
    from autograder.quizzes.exam.compose import compose_exam
    from autograder.quizzes.exam.pages import render_pages
    from autograder.quizzes.exam.question_banks import canvas_zip, moodle_xml

    struck = set(without)
    if struck and (seed is None or max(struck) > questions):
        raise click.UsageError("--without needs the --seed of an exam, and the number of one of its questions.")
    names = resolve_project_chapters(project_root(), chapters)
    numbers = [chapter.partition("_")[0] for chapter in names]
    folder_name = _folder_name(name or "-".join(numbers))
    course = Course.open(course_folder(course_dir), create=True)
    plan = read_course_file(course.root)
    seed = seed or secrets.token_hex(8)
    folder = course.root / "exam" / folder_name
    with progress_bar("exam", questions + len(struck)) as step:
        written = compose_exam(
            names,
            questions,
            versions,
            seed,
            without=struck,
            secret=course.secret_seed(),
            selects=plan.selects,
            report=step,
        )
    title = f"Exam on chapter{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
    files = {
        **render_pages(written, title=title),
        "moodle.xml": moodle_xml(written, title=title),
        "canvas.zip": canvas_zip(written, title=title),
    }
    write_all_or_none({folder / file: content for file, content in files.items()})
    lines = [f"{versions} version{'s' if versions > 1 else ''} of {questions} questions: {folder}", f"seed: {seed}"]
    lines += [
        f"  {chapter} is open until {due:%Y-%m-%d %H:%M}: do not show this exam before"
        for chapter, due in _open_chapters(plan, names)
    ]
    return CommandResult({"folder": folder, "files": sorted(files), "seed": seed}, "\n".join(lines))


def _folder_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise CourseError(f"--name {name!r} cannot be used as a folder name", do="Use letters, digits and hyphens.")
    return name


def _open_chapters(plan: CourseFile, chapters: Sequence[str]) -> list[tuple[str, datetime]]:
    """Return the chapters whose class deadline is not over, with this deadline."""
    dues = [(chapter, plan.due(chapter)) for chapter in chapters]
    return [(chapter, due) for chapter, due in dues if due is not None and due > datetime.now(UTC)]
