"""Grade a chapter and report the results for the commands autograde, choose and regrade."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from autograder.commands.console import progress_bar
from autograder.course.paths import shell_command
from autograder.errors import CourseError, list_first

if TYPE_CHECKING:
    from autograder.course.folder import Course
    from autograder.engine.settings import GradingSettings
    from autograder.engine.workers.executor import WorkerPool
    from autograder.grading.record.results import GradeResult
    from autograder.intake.downloads.download import Download
    from autograder.intake.downloads.store import Collection
    from autograder.intake.notebook.problem import Problem


def needs_action(result: Mapping[str, Any]) -> bool:
    """Return whether a person must act before a submission has its final grade and its author a feedback page."""
    from autograder.grading.feedback.pages import KIND as NO_FEEDBACK

    return result["status"] == "not recorded" or any(problem["kind"] == NO_FEEDBACK for problem in result["problems"])


def apply_options(
    course: Course, jobs: int | None, device: str, allow_weaker: bool, scheduler: str | None
) -> GradingSettings:
    """Return the course's settings, changed by the options of the command line."""
    from autograder.engine.settings import resolve_device
    from autograder.grading.course_settings import configured_settings
    from autograder.parallel import available_cores

    settings = configured_settings(course)
    return replace(
        settings,
        jobs=jobs or available_cores(),
        device=resolve_device(device),
        allow_weaker=allow_weaker or settings.allow_weaker,
        scheduler=scheduler or settings.scheduler,
    )


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause the garbage collector while a block imports nbgrader."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def start_workers(workers: WorkerPool, course: Course, device: str, scheduler: str | None) -> None:
    """Start workers, which import PyTorch while this process imports nbgrader.

    Reading the course's configuration of grading needs nbgrader. So this supposes the CPU and the course's own seed; where it is
    wrong, and in a course that has no seed yet, workers are started when the configuration has been read.
    """
    from autograder.course.folder import SEED_NAME
    from autograder.engine.sandbox.isolation import available_layers
    from autograder.engine.settings import GradingSettings

    if device not in ("auto", "cpu") or scheduler or Path("/dev/nvidiactl").exists():
        return
    if (course.root / SEED_NAME).exists():
        workers.start(GradingSettings(seed=course.secret_seed()))
        Thread(target=available_layers, daemon=True).start()  # it waits for a process, and keeps what it has learned


def autograde_chapter(
    course: Course, chapter: str, download: Download | None, settings: GradingSettings, force: bool, workers: WorkerPool
) -> tuple[dict[str, Any], str]:
    """Collect and grade one chapter and write feedback pages; return the results as data and as text."""
    from autograder.commands.progress import grading_progress
    from autograder.grading.autograde import autograde as grade_chapter
    from autograder.grading.reports.grades import count_waiting_answers
    from autograder.intake.downloads.collect import collect, collect_download
    from autograder.intake.people.standing import split_by_listed_time
    from autograder.intake.people.strangers import find_strangers
    from autograder.intake.people.times import apply_times

    collection = collect(course, chapter) if download is None else collect_download(course, download)
    apply_times(course, chapter)
    students = require_submissions(course, chapter, lambda: collection)
    with _add_missing_students(collection), grading_progress(f"grading {chapter}", len(students)) as step:
        results = grade_chapter(
            course,
            chapter,
            jobs=settings.jobs,
            device=settings.device,
            force=force,
            locked=True,
            settings=settings,
            progress=step,
            workers=workers,
        )
        pages, results = write_pages(course, chapter, results)
    absent, elsewhere = split_by_listed_time(course, chapter)
    data = {
        "chapter": chapter,
        "missing": [item.to_dict() for item in collection.missing],
        "problems": [problem.to_dict() for problem in collection.problems],
        "results": [result.to_dict() for result in results],
        "answers_pending": sum(answers for _, answers in count_waiting_answers(course, chapter)),
        "nothing_handed_in": absent,
        "not_downloaded": elsewhere,
        "strangers": [stranger.to_dict() for stranger in find_strangers(course, [chapter])],
        "feedback": pages,
    }
    return data, "\n".join(
        [_format_grades(course, collection, results, pages), *_format_isolation(course, chapter, results, settings)]
    )


@contextmanager
def _add_missing_students(collection: Collection) -> Iterator[None]:
    """Add the students whose submissions were not collected to an error."""
    try:
        yield
    except CourseError as error:
        if not collection.missing:
            raise
        who = list_first([item.student for item in collection.missing])
        message = f"{error.what}\n  not brought in, {len(collection.missing)} of {collection.chapter}: {who}"
        raise CourseError(message, where=error.where, do=error.do) from error


def collect_in_place(course: Course, chapter: str) -> Collection:
    """Collect a chapter's submissions from the course's own folder."""
    from autograder.intake.downloads.collect import collect

    return collect(course, chapter)


def require_submissions(course: Course, chapter: str, collected: Callable[[], Collection]) -> list[str]:
    """Return the students with submissions; raise an error without any."""
    from autograder.grading.submissions import select_students

    try:
        return select_students(course, chapter)
    except CourseError as error:
        details = "".join(f"\n  {problem}" for problem in collected().problems)
        raise CourseError(f"{error.what}{details}", where=error.where, do=error.do) from error


def write_pages(course: Course, chapter: str, results: Sequence[GradeResult]) -> tuple[list[Path], list[GradeResult]]:
    """Write a chapter's feedback pages; return them and the results, with failed pages as problems."""
    from autograder.grading.feedback.pages import graded_students, write_feedback
    from autograder.grading.plugin import autograder_config
    from autograder.grading.record.results import read_results

    students = graded_students(course, chapter)
    with progress_bar(f"feedback {chapter}", len(students), every=len(students)) as step:
        pages = write_feedback(course, chapter, autograder_config(course), students=students, progress=step)
    problems = {result.student: result.problems for result in read_results(course, chapter)}
    return pages, [replace(result, problems=problems.get(result.student, result.problems)) for result in results]


def update_pages(course: Course, chapters: Sequence[str]) -> list[str]:
    """Update outdated feedback pages, and return a line per chapter that had some.

    A page that shows plain text, because it could not be rendered within the limit, gets its own line.

    Raises:
        InUseError: if a page is out of date and somebody else is at work in the course.
    """
    from autograder.course.lock import course_lock
    from autograder.grading.feedback.pages import stale_pages
    from autograder.grading.plugin import autograder_config

    config = autograder_config(course)
    stale = {chapter: len(students) for chapter in chapters if (students := stale_pages(course, chapter, config))}
    if not stale:
        return []
    with course_lock(course):
        for chapter in stale:
            write_pages(course, chapter, [])
    lines = [f"{chapter}: {count} feedback page{'s' * (count != 1)} updated" for chapter, count in stale.items()]
    return [*lines, *(line for chapter in stale for line in _plain_page_messages(course, chapter))]


def _plain_page_messages(course: Course, chapter: str) -> Iterator[str]:
    """Yield a message per feedback page that shows plain text."""
    from autograder.grading.feedback.pages import PLAIN
    from autograder.grading.record.results import read_results

    for result in read_results(course, chapter):
        yield from (f"{chapter}: {result.student}: {problem}" for problem in result.problems if problem.kind == PLAIN)


def update_late_penalties(course: Course, chapters: Sequence[str]) -> list[str]:
    """Update penalties to ``course.toml`` and to manual points; return a message per changed chapter."""
    from autograder.grading.plugin import autograder_config
    from autograder.grading.record.gradebook_writer import refresh_penalties
    from autograder.grading.record.results import read_results

    changed = refresh_penalties(course, chapters, autograder_config(course))
    for chapter in changed:
        write_pages(course, chapter, read_results(course, chapter))
    return [f"{chapter}: late penalties and feedback pages were updated" for chapter in changed]


def _format_isolation(
    course: Course, chapter: str, results: Sequence[GradeResult], settings: GradingSettings
) -> list[str]:
    """Return messages on isolation, on a lecturer's own tests, and on unchanged grades with another provenance."""
    from autograder.grading.course_settings import local_provenance, settings_for_release
    from autograder.grading.record.provenance import isolation_line, outdated_message

    isolation = isolation_line(result.provenance for result in results if not result.unchanged)
    unchanged = [result.provenance for result in results if result.unchanged]
    again = shell_command(course, "regrade", chapter)
    changed = (
        outdated_message(unchanged, local_provenance(settings_for_release(course, chapter, settings)), again)
        if unchanged
        else ""
    )
    return [f"  {line}" for line in (isolation, isolation and _own_tests_message(course, chapter), changed) if line]


def _own_tests_message(course: Course, chapter: str) -> str:
    """Return a message on the test cells with a lecturer's own tests, or an empty string."""
    from autograder.intake.notebook.manifest import released_manifest

    names = [cell.name for cell in released_manifest(course, chapter).cells if cell.has_own_tests]
    where = "in each submission's own process, as in nbgrader, so a submission can forge their result"
    return f"your own tests run {where}: {list_first(names)}" if names else ""


def _format_grades(
    course: Course, collection: Collection, results: Sequence[GradeResult], pages: Sequence[Path]
) -> str:
    from autograder.grading.record.results import describe_waiting
    from autograder.grading.reports.grades import count_waiting_answers
    from autograder.grading.reports.missing import missing_downloads_message
    from autograder.intake.downloads.journal import OPEN_TIMES
    from autograder.intake.people.standing import split_by_listed_time
    from autograder.intake.people.strangers import find_strangers, stranger_problems
    from autograder.intake.roster import read_roster

    chapter = collection.chapter
    graded = [result for result in results if result.status == "graded"]
    earlier = sum(result.unchanged for result in graded)
    # A missing student's earlier submission may already count.
    absent = {item.student for item in collection.missing} - {result.student for result in results}
    total = len(results) + len(absent)
    lines = [f"{chapter}: {len(graded)} of {total} submissions graded, {earlier} of them earlier and unchanged"]
    if collection.missing:
        lines.append(f"  {len(collection.missing)} not brought in")
    lines.append(
        f"  {len(pages)} feedback page{'s' * (len(pages) != 1)} in {course.folder('feedback')}"
        if pages
        else "  no feedback pages"
    )
    # The results name the submissions whose times are open, and those without a notebook, also in the next run.
    lines += [
        f"  {problem}"
        for problem in collection.problems
        if problem.kind not in OPEN_TIMES and not (problem.kind == "no notebook" and problem.fatal)
    ]
    decided = {name for name, student in read_roster(course).items() if chapter in student.decided}
    problems = [(result.student, problem) for result in results for problem in result.problems]
    problems = [(student, problem) for student, problem in problems if student not in decided]
    lines += [
        f"  {_problem_prefix(problem)}{student}: {problem}" for student, problem in problems if not problem.remark
    ]
    # After an upgrade the same remark concerns the whole class.
    remarks: dict[str, list[str]] = {}
    for student, problem in problems:
        if problem.remark:
            remarks.setdefault(str(problem), []).append(student)
    lines += [f"  note: {list_first(students)}: {text}" for text, students in remarks.items()]
    if any(result.status == "not gradable" and result.student not in decided for result in results):
        give = shell_command(course, "decide", "STUDENT", chapter, "POINTS", "REASON")
        lines.append(f"  to give points to work that cannot be graded: {give}")
    lines += [f"  to decide: {problem}" for problem in stranger_problems(course, find_strangers(course, [chapter]))]
    if pending := describe_waiting(count_waiting_answers(course, chapter)):
        lines.append(f"  {pending}: {marking_hint(course, [chapter])}")
    absent_members, elsewhere = split_by_listed_time(course, chapter)
    if absent_members:
        lines.append(
            f"  {len(absent_members)} on the class list handed in nothing: {shell_command(course, 'students')}"
        )
    if elsewhere:
        lines.append(f"  to decide: {missing_downloads_message(elsewhere)}")
    return "\n".join(lines)


def _problem_prefix(problem: Problem) -> str:
    """Return the prefix of a problem that needs a decision, or an empty string."""
    return "to decide: " if problem.kind == "to decide" else ""


def marking_hint(course: Course, chapters: Iterable[str]) -> str:
    """Return the commands that open the marking pages of chapters with written answers to mark."""
    return ", ".join(shell_command(course, "mark", chapter) for chapter in chapters)
