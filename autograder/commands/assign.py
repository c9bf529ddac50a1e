"""Run ``tfcourse assign``."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.commands.console import CommandResult, command, progress_bar
from autograder.commands.options import OTHER_COURSE, chapters_of_project, course_option, required_chapters_argument
from autograder.course.paths import course_folder, create_or_open_course, project_root, require_writable


@click.command()
@required_chapters_argument
@course_option
@command
def assign(chapters: tuple[str, ...], course_dir: Path | None) -> CommandResult:
    """Release chapters to students.

    This makes nbgrader's source and release, and for each chapter an archive with the notebook and the student's tfcourse.

    Example:
      tfcourse assign 03 04
    """
    root = project_root()
    folder = course_folder(course_dir)
    require_writable(folder, OTHER_COURSE)
    from autograder.release.assign import assign as assign_chapters

    names = chapters_of_project(root, chapters)
    with create_or_open_course(folder) as course, progress_bar("assign"):
        assigned = assign_chapters(root, course, names)
    lines = [
        f"{item.chapter}: give students {item.package}\n  notebook {item.notebook}\n  package  {item.wheel}"
        for item in assigned
    ]
    return CommandResult([vars(item) for item in assigned], "\n".join(lines))
