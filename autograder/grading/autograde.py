"""Grade a chapter: each submission gets a grade or a named problem, no failure stops the others, killed runs resume."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from autograder.course.course_file import read_course_file
from autograder.course.folder import Course
from autograder.course.known_errors import explain_general_error
from autograder.course.lock import course_lock
from autograder.engine.settings import GradingSettings, resolve_device
from autograder.engine.workers.executor import WorkerPool
from autograder.errors import CourseError, list_first
from autograder.grading.course_settings import (
    configured_settings,
    local_provenance,
    require_student_package,
    settings_for_release,
)
from autograder.grading.late_work import update_penalties
from autograder.grading.plugin import autograder_config
from autograder.grading.record.gradebook_writer import GradebookWriter
from autograder.grading.record.journal import (
    open_journal,
    submission_states,
)
from autograder.grading.record.results import GradeResult, read_result
from autograder.grading.record.signatures import remove_orphaned_signatures
from autograder.grading.recorder import Recorder
from autograder.grading.run import Judge, MakeExecutor, Run
from autograder.grading.submissions import select_students
from autograder.intake.notebook.manifest import released_manifest
from autograder.intake.roster import gradebook_names

Progress = Callable[[GradeResult], None]


class GradingStopped(KeyboardInterrupt):
    """Grading was stopped with Ctrl-C; the message states which results are kept and how to continue."""


def autograde(
    course: Course,
    chapter: str,
    *,
    students: Sequence[str] | None = None,
    jobs: int = 1,
    device: str = "auto",
    force: bool = False,
    locked: bool = False,
    progress: Progress = lambda result: None,
    settings: GradingSettings | None = None,
    make_executor: MakeExecutor | None = None,
    workers: WorkerPool | None = None,
) -> list[GradeResult]:
    """Grade the submissions of a chapter.

    Args:
        course: the course, with the chapter released and its submissions under ``submitted/``.
        chapter: the chapter's name.
        students: the students to grade; by default all.
        jobs: number of submissions that run at once.
        device: the device for the checks' tensors: ``"cpu"``, ``"cuda"``, or ``"auto"`` (CUDA if available).
        force: also grade unchanged submissions again.
        locked: whether the caller already holds the course's lock.
        progress: called with each result as it arrives, in any order.
        settings: limits and seed; by default from the course's ``nbgrader_config.py``. ``jobs`` and ``device`` override them.
        make_executor: creates the executors, instead of worker processes.
        workers: running worker processes, which stay; by default new ones are started for this chapter.

    Returns:
        One result per submission, ordered by student. The same seed gives the same grades with any number of jobs.

    Raises:
        CourseError: if the chapter is not released, there is nothing to grade, the device is missing, another run is active, or the disk is
            full.
        Stopped: if it is stopped with Ctrl-C.
    """
    if jobs < 1:
        raise CourseError(f"{jobs} jobs cannot grade anything", do="Use --jobs 1 or more.")
    limits = settings or configured_settings(course)
    manifest = released_manifest(course, chapter)
    if mixed := [cell.name for cell in manifest.cells if cell.mixes_tests]:
        message = f"these test cells call check and do something else, and would be worth nothing: {list_first(mixed)}"
        do = f"Write one cell with check and one with the rest, in source/{chapter}, and release the chapter again."
        raise CourseError(message, where=course.folder("source", ".", chapter), do=do)
    limits = replace(limits, jobs=jobs, device=resolve_device(device))
    if make_executor is None:
        require_student_package(course, manifest)
    names = select_students(course, chapter, students)
    with (
        nullcontext() if locked else course_lock(course),
        open_journal(course, chapter) as journal,
        GradebookWriter(course, chapter, autograder_config(course)) as books,
        ThreadPoolExecutor(1) as aside,
        _freeze_heap(),
    ):
        books.refuse_unusable_configuration()
        read_course_file(course.root)  # A mistake in it is reported before anything runs.
        limits = settings_for_release(course, chapter, limits)
        # PyTorch is asked about the processor while the first submissions run.
        made_with = aside.submit(local_provenance, limits, workers).result
        recorder = Recorder(course, manifest, limits, books, journal, submission_states(course, chapter), force)
        run = Run(Judge(course, manifest, limits, made_with), recorder)
        journal.write("run begins", submissions=len(names), jobs=jobs, device=limits.device, force=force)
        results: list[GradeResult] = []
        try:
            if force:
                journal.mark_stale(names)
            for result in run.results(names, make_executor, workers):
                progress(result)
                results.append(result)
        except KeyboardInterrupt:
            journal.write("run stopped", done=len(results))
            raise GradingStopped(_stop_message(chapter, len(results), len(names), force)) from None
        except Exception as error:
            if (full := explain_general_error(error, course.root)) is None:
                raise
            message = f"{full.what}; {len(results)} of {len(names)} submissions of {chapter} are done and kept"
            raise CourseError(message, where=full.where or course.root, do=full.do) from error
        if missing := sorted(set(names) - {result.student for result in results}):
            raise RuntimeError(f"no result for {', '.join(missing)}")
        books.add_student_fields(gradebook_names(course, names))
        results = _refresh_result_penalties(books, results)
        remove_orphaned_signatures(course, chapter)
        journal.write("run ends", done=len(results))
    return sorted(results, key=lambda result: result.student)


def _refresh_result_penalties(books: GradebookWriter, results: list[GradeResult]) -> list[GradeResult]:
    """Update the late penalties to the current deadlines, and return the results with them."""
    changed = update_penalties(books.course, books.chapter, books.config, books.gradebook())
    stored = {student: read_result(books.course, books.chapter, student) for student in changed}
    return [
        replace(result, late_penalty=now.late_penalty) if (now := stored.get(result.student)) else result
        for result in results
    ]


@contextmanager
def _freeze_heap() -> Iterator[None]:
    """Exclude existing objects from garbage collection, because the many modules and classes stay in any case."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _stop_message(chapter: str, done: int, of: int, force: bool) -> str:
    without = " without --force: with it, everything would begin again" if force else ""
    return f"stopped. {done} of {of} submissions of {chapter} are done and kept.\nTo go on, give the same command again{without}."
