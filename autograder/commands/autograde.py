"""Run ``tfcourse autograde``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.commands.grade_chapter import (
    apply_options,
    autograde_chapter,
    collect_in_place,
    needs_action,
    pause_garbage_collection,
    require_submissions,
    start_workers,
)
from autograder.commands.options import (
    OTHER_COURSE,
    course_option,
    execution_options,
    required_chapters_argument,
)
from autograder.course.paths import course_folder, require_writable

if TYPE_CHECKING:
    from autograder.course.folder import Course
    from autograder.engine.settings import GradingSettings
    from autograder.engine.workers.executor import WorkerPool


@click.command()
@required_chapters_argument
@click.option(
    "--submissions",
    type=click.Path(path_type=Path),
    help="A folder or ZIP archive of submissions, as your learning platform exports it.",
)
@execution_options
@click.option("--force", is_flag=True, help="Also grade unchanged submissions again.")
@course_option
@command
def autograde(
    chapters: tuple[str, ...],
    submissions: Path | None,
    jobs: int | None,
    device: str,
    force: bool,
    allow_weaker: bool,
    scheduler: str | None,
    course_dir: Path | None,
) -> CommandResult:
    """Grade submissions into the gradebook and write feedback.

    Submissions run in a sandbox, which needs Linux; without one, the command stops unless you pass --allow-weaker-isolation. A submission
    that cannot be graded is listed and stops no other.

    Without --submissions, the command grades the submissions in COURSE/submitted. Run it again to continue after an interruption.
    Each student's feedback page is in COURSE/feedback. CHAPTER is a number or a word of the name, such as 3 or gpt.

    Example:
      tfcourse autograde 03 --submissions ~/Downloads/submissions.zip
    """
    from autograder.course.folder import Course
    from autograder.engine.workers.executor import WorkerPool

    course = Course.open(course_folder(course_dir))
    require_writable(course.root, OTHER_COURSE)
    with WorkerPool() as workers:
        start_workers(workers, course, device, scheduler)
        read_settings = partial(apply_options, course, jobs, device, allow_weaker, scheduler)
        return _autograde(course, chapters, submissions, force, workers, read_settings)


def _autograde(
    course: Course,
    chapters: tuple[str, ...],
    submissions: Path | None,
    force: bool,
    workers: WorkerPool,
    read_settings: Callable[[], GradingSettings],
) -> CommandResult:
    with pause_garbage_collection():
        from autograder.course.gradebook.reader import released_chapters
        from autograder.course.lock import course_lock
        from autograder.grading.released_points import refuse_changed_points
        from autograder.grading.reports.grades import read_grades
        from autograder.grading.reports.missing import is_work_without_grade, list_gaps
        from autograder.intake.downloads.download import read_downloads
        from autograder.intake.downloads.in_place import CONFLICT

        names = released_chapters(course, chapters)
        settings = read_settings()
    for name in names:
        refuse_changed_points(course, name)
    if submissions is not None and submissions.resolve() == course.folder("submitted").resolve():
        submissions = None
    if submissions is None:
        for name in names:
            require_submissions(course, name, partial(collect_in_place, course, name))
    with course_lock(course):
        downloads = read_downloads(course, names, submissions) if submissions else []
        for download in downloads:
            download.refuse_other_work(course)
        done = [
            autograde_chapter(course, name, download, settings, force, workers)
            for name, download in zip_longest(names, downloads)
        ]
        unfinished = is_work_without_grade(list_gaps(course, read_grades(course, names)))
    conflicts = any(problem["kind"] == CONFLICT for data, _ in done for problem in data["problems"])
    failed = unfinished or conflicts or any(needs_action(result) for data, _ in done for result in data["results"])
    return CommandResult([data for data, _ in done], "\n".join(text for _, text in done), EXIT_FAILED if failed else 0)
