"""Run ``tfcourse regrade``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.commands.grade_chapter import apply_options, write_pages
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
    from autograder.grading.regrade import OtherRelease, Regrade


def _regrade(
    course: Course,
    chapter: str,
    students: Sequence[str] | None,
    settings: GradingSettings,
    dry_run: bool,
    workers: WorkerPool,
    release: OtherRelease | None,
) -> Regrade:
    from autograder.commands.progress import grading_progress
    from autograder.grading.regrade import regrade as regrade_chapter
    from autograder.grading.regrade import select_for_regrade
    from autograder.grading.reports.grades import read_grades
    from autograder.grading.reports.recount import convert_to_totals

    before = read_grades(course, [chapter])
    chosen = select_for_regrade(course, chapter, students, settings, release)
    with grading_progress(f"grading {chapter} again", len(chosen.students)) as step:
        done = regrade_chapter(
            course,
            chosen,
            settings,
            dry_run=dry_run,
            release=release,
            locked=True,
            progress=step,
            workers=workers,
        )
    if not dry_run:
        # Also where nothing was graded: a regrade that was killed may have left the pages of what it had recorded.
        write_pages(course, chapter, done.results)
    return replace(done, moves=convert_to_totals(course, chapter, done.moves, before, dry_run=dry_run))


def _find_students(course: Course, chapter: str, typed: Sequence[str]) -> list[str] | None:
    """Return the ids of the typed students, or None for all students."""
    from autograder.grading.record.results import read_results
    from autograder.intake.people.find_student import find_student

    graded = [result.student for result in read_results(course, chapter)] if typed else []
    return [find_student(course, name, graded) for name in typed] or None


def _format_regrade(done: Regrade) -> str:
    """Return the changed grades as a table."""
    would = "would move" if done.dry_run else "moved"
    lines = [f"{done.chapter}: {len(done.moves)} {would}, {done.stayed} stayed"]
    width = max((len(move.student) for move in done.moves), default=0)
    for move in done.moves:
        exercises = ", ".join(f"{name} {before:g} → {after:g}" for name, before, after in move.exercises)
        lines.append(f"  {move.student:<{width}}  {move.before:6g} → {move.after:<6g}  {exercises}")
    lines += [f"  {result.student}: {problem}" for result in done.failed for problem in result.problems]
    lines += [f"  {phrase}" for phrase in done.skip_messages()]
    return "\n".join(lines)


@contextmanager
def _release_for_regrade(
    course: Course, names: Sequence[str], new_points: bool, dry_run: bool
) -> Iterator[Mapping[str, OtherRelease]]:
    """Release chapters under new points if requested, and yield the temporary folder of a dry run."""
    from autograder.course.release.assign import assign as assign_chapters
    from autograder.course.release.assign import preview_release
    from autograder.grading.regrade import OtherRelease
    from autograder.intake.notebook.manifest import read_manifest, released_manifest

    if new_points and dry_run:
        with preview_release(project_root(), course, names) as previews:
            yield {
                name: OtherRelease(
                    replace(
                        read_manifest(preview.gradebook_url, name, preview.source),
                        elsewhere=released_manifest(course, name).elsewhere,
                    ),
                    str(preview.wheel),
                )
                for name, preview in previews.items()
            }
        return
    if new_points:
        assign_chapters(project_root(), course, names)
    yield {}


@click.command()
@required_chapters_argument
@click.option(
    "--student", "students", multiple=True, metavar="STUDENT", help="Regrade only this student; may be repeated."
)
@click.option("--dry-run", is_flag=True, help="Write nothing; list the grades that would change.")
@click.option(
    "--new-points",
    is_flag=True,
    help="First release the chapter again, with the current points of its checks; with --dry-run, in a temporary folder.",
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
    are kept. A chapter that was released with other points needs --new-points. Rules of course.toml for single exercises count without
    regrading; a dry run lists the grades that they change.

    Example:
      tfcourse regrade 03 --dry-run
    """
    from autograder.course.folder import Course
    from autograder.course.gradebook.reader import released_chapters
    from autograder.course.lock import course_lock
    from autograder.engine.workers.executor import WorkerPool
    from autograder.grading.released_points import refuse_changed_points
    from autograder.grading.reports.recount import recount

    course = Course.open(course_folder(course_dir))
    if not dry_run:
        require_writable(course.root, OTHER_COURSE)
    names = released_chapters(course, chapters)
    for name in () if new_points else names:
        refuse_changed_points(course, name)
    settings = apply_options(course, jobs, device, allow_weaker, scheduler)
    with (
        nullcontext() if dry_run else course_lock(course),
        _release_for_regrade(course, names, new_points, dry_run) as releases,
        WorkerPool() as workers,
    ):
        done = [
            _regrade(
                course, name, _find_students(course, name, students), settings, dry_run, workers, releases.get(name)
            )
            for name in names
        ]
    counts = [recount(course, name) for name in names]
    text = "\n".join(
        line
        for item, count in zip(done, counts, strict=True)
        for line in (_format_regrade(item), *count.lines(each=dry_run))
    )
    failed = any(item.failed for item in done)
    data = [item.to_dict() | {"by_rules": count.to_dict()} for item, count in zip(done, counts, strict=True)]
    return CommandResult(data, text, EXIT_FAILED if failed else 0)
