"""Run ``tfcourse choose``."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.commands.grade_chapter import apply_options, autograde_chapter, needs_action, start_workers
from autograder.commands.options import (
    OTHER_COURSE,
    course_option,
    execution_options,
)
from autograder.course.paths import course_folder, require_writable


@click.command()
@click.argument("student", metavar="STUDENT")
@click.argument("chapter", metavar="CHAPTER")
@click.argument("file", metavar="FILE")
@execution_options
@course_option
@command
def choose(
    student: str,
    chapter: str,
    file: str,
    jobs: int | None,
    device: str,
    allow_weaker: bool,
    scheduler: str | None,
    course_dir: Path | None,
) -> CommandResult:
    """Choose which of a student's notebooks counts, and grade it.

    FILE is one of the notebooks that autograde lists under 'to decide'. A new choice replaces an earlier one.

    Example:
      tfcourse choose ada 03 solution.ipynb
    """
    from autograder.course.folder import Course
    from autograder.course.lock import course_lock
    from autograder.engine.workers.executor import WorkerPool

    course = Course.open(course_folder(course_dir))
    require_writable(course.root, OTHER_COURSE)
    with WorkerPool() as workers:
        start_workers(workers, course, device, scheduler)
        from autograder.course.gradebook.reader import released_chapters
        from autograder.grading.choose import choose as choose_notebook
        from autograder.intake.people.find_student import find_student

        (name,) = released_chapters(course, [chapter])
        student = find_student(course, student)
        settings = apply_options(course, jobs, device, allow_weaker, scheduler)
        with course_lock(course):
            choose_notebook(course, student, name, file)
            data, text = autograde_chapter(course, name, None, settings, False, workers)
    failed = any(needs_action(result) for result in data["results"] if result["student"] == student)
    return CommandResult(data, f"{student}, {name}: {file} counts\n{text}", EXIT_FAILED if failed else 0)
