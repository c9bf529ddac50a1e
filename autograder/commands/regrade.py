"""Run ``tfcourse regrade``."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.commands.grade_chapter import settings_for, write_pages
from autograder.commands.options import (
    OTHER_COURSE,
    course_option,
    execution_options,
    required_chapters_argument,
)
from autograder.course.paths import course_folder, project_root, require_writable

if TYPE_CHECKING:
    from autograder.course.folder import Course
    from autograder.engine.settings import GradingSettings
    from autograder.engine.workers.executor import WorkerPool
    from autograder.grading.regrade import Regrade


def _regrade(
    course: Course,
    chapter: str,
    students: Sequence[str] | None,
    settings: GradingSettings,
    dry_run: bool,
    workers: WorkerPool,
) -> Regrade:
    from autograder.commands.progress import grading_progress
    from autograder.grading.regrade import regrade as regrade_chapter
    from autograder.grading.regrade import to_regrade

    chosen = to_regrade(course, chapter, students, settings)
    with grading_progress(f"grading {chapter} again", len(chosen.students)) as step:
        done = regrade_chapter(
            course,
            chosen,
            settings,
            dry_run=dry_run,
            locked=True,
            progress=step,
            workers=workers,
        )
    if not dry_run:
        # Also where nothing was graded: a regrade that was killed may have left the pages of what it had recorded.
        write_pages(course, chapter, done.results)
    return done


def _format_regrade(done: Regrade) -> str:
    """Return who moved, as a table."""
    would = "would move" if done.dry_run else "moved"
    lines = [f"{done.chapter}: {len(done.moves)} {would}, {done.stayed} stayed"]
    width = max((len(move.student) for move in done.moves), default=0)
    for move in done.moves:
        exercises = ", ".join(f"{name} {before:g} → {after:g}" for name, before, after in move.exercises)
        lines.append(f"  {move.student:<{width}}  {move.before:6g} → {move.after:<6g}  {exercises}")
    lines += [f"  {result.student}: {problem}" for result in done.failed for problem in result.problems]
    lines += [f"  {phrase}" for phrase in done.left_out()]
    return "\n".join(lines)


@click.command()
@required_chapters_argument
@click.option(
    "--student", "students", multiple=True, metavar="STUDENT", help="Regrade only this student; may be repeated."
)
@click.option("--dry-run", is_flag=True, help="Write nothing; list the grades that would change.")
@click.option(
    "--new-points", is_flag=True, help="First release the chapter again, with the current points of its checks."
)
@execution_options
@course_option
@command
def regrade(
    chapters: tuple[str, ...],
    students: tuple[str, ...],
    dry_run: bool,
    new_points: bool,
    jobs: int | None,
    device: str,
    allow_weaker: bool,
    scheduler: str | None,
    course_dir: Path | None,
) -> CommandResult:
    """Grade again after the checks have changed, and list changed grades.

    The command repeats grades that were made with other checks, in another environment or with other limits. Manual points and comments
    are kept. A chapter that was released with other points needs --new-points.

    Example:
      tfcourse regrade 03 --dry-run
    """
    from autograder.course.folder import Course
    from autograder.course.lock import course_lock
    from autograder.engine.workers.executor import WorkerPool
    from autograder.gradebook.reader import released_chapters
    from autograder.grading.released_points import refuse_changed_points
    from autograder.release.assign import assign as assign_chapters

    course = Course.open(course_folder(course_dir))
    if dry_run and new_points:
        raise click.UsageError("--new-points changes the course, and --dry-run changes nothing; give one of them")
    if not dry_run:
        require_writable(course.root, OTHER_COURSE)
    names = released_chapters(course, chapters)
    for name in () if new_points else names:
        refuse_changed_points(course, name)
    settings = settings_for(course, jobs, device, allow_weaker, scheduler)
    with nullcontext() if dry_run else course_lock(course), WorkerPool() as workers:
        if new_points:
            assign_chapters(project_root(), course, names)
        done = [_regrade(course, name, students or None, settings, dry_run, workers) for name in names]
    text = "\n".join(_format_regrade(item) for item in done)
    failed = any(item.failed for item in done)
    return CommandResult([item.to_dict() for item in done], text, EXIT_FAILED if failed else 0)
