"""Grade a chapter: every submission gets a grade or a named problem, none stops the others, and a killed run can be resumed."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import nbformat
from nbformat import reader
from nbgrader.api import MissingEntry

from autograder.collecting.choices import undecided_notebooks
from autograder.collecting.course_folder.late_notes import KINDS as OF_TIMES
from autograder.collecting.course_folder.late_notes import time_problems
from autograder.collecting.store import submitted_notebook
from autograder.course.course_file import CourseFile, read_course_file
from autograder.course.folder import Course
from autograder.course.known_errors import explained_for_all
from autograder.course.lock import course_lock
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings, resolve_device
from autograder.engine.workers.executor import WorkerPool
from autograder.errors import CourseError
from autograder.grading.course_settings import (
    as_released,
    configured_settings,
    grade_provenance,
    provenance,
    require_student_package,
)
from autograder.grading.dispatch import MakeExecutor, executions
from autograder.grading.late_work import update_penalties
from autograder.grading.plugin import configured
from autograder.grading.released_points import refuse_other_totals, unscorable
from autograder.grading.submissions import files_of, submission_hash, wanted_students
from autograder.record.executed_notebook import (
    exercise_of,
    exercise_results,
    no_exercises,
    no_notebook,
    scores_of,
    seconds_of,
    to_decide,
)
from autograder.record.gradebook_writer import GradebookWriter, RecordedGrade, RecordError
from autograder.record.journal import (
    FAILED,
    NO_STATE,
    RECORDED,
    Journal,
    SubmissionState,
    open_journal,
    submission_states,
)
from autograder.record.manual_grades import manually_graded_cells, unchanged_cells
from autograder.record.provenance import Provenance
from autograder.record.results import GradeResult, Notebook, QuestionResult, Status, read_result, write_result
from autograder.record.signatures import remove_orphans, write_signatures
from autograder.roster.roster import gradebook_names, is_safe
from autograder.submission.attached_files import CompanionFiles
from autograder.submission.manifest import Manifest, released_manifest
from autograder.submission.problem import Problem, add_problems, problems_of

Progress = Callable[[GradeResult], None]


class Stopped(KeyboardInterrupt):
    """Grading was stopped with Ctrl-C; the message states what is kept and how to continue."""


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
    limits = replace(limits, jobs=jobs, device=resolve_device(device))
    if make_executor is None:
        require_student_package(course, manifest)
    names = wanted_students(course, chapter, students)
    with (
        nullcontext() if locked else course_lock(course),
        open_journal(course, chapter) as journal,
        GradebookWriter(course, chapter, configured(course)) as books,
        ThreadPoolExecutor(1) as aside,
        _heap_set_aside(),
    ):
        books.refuse_unusable_steps()
        read_course_file(course.root)  # A mistake in it is reported before anything runs.
        limits = as_released(course, chapter, limits)
        # PyTorch is asked about the processor while the first submissions run.
        provenance_future = aside.submit(provenance, limits, workers)
        run = _Run(
            course, manifest, limits, force, books, journal, submission_states(course, chapter), provenance_future
        )
        journal.write("run begins", submissions=len(names), jobs=jobs, device=limits.device, force=force)
        results: list[GradeResult] = []
        try:
            for result in run.results(names, make_executor, workers):
                progress(result)
                results.append(result)
        except KeyboardInterrupt:
            journal.write("run stopped", done=len(results))
            raise Stopped(_stopped(chapter, len(results), len(names), force)) from None
        except Exception as error:
            if (full := explained_for_all(error, course.root)) is None:
                raise
            message = f"{full.what}; {len(results)} of {len(names)} submissions of {chapter} are done and kept"
            raise CourseError(message, where=full.where or course.root, do=full.do) from error
        if missing := sorted(set(names) - {result.student for result in results}):
            raise RuntimeError(f"no result for {', '.join(missing)}")
        books.name_students(gradebook_names(course, names))
        results = _with_penalties(books, results)
        remove_orphans(course, chapter)
        journal.write("run ends", done=len(results))
    return sorted(results, key=lambda result: result.student)


def _with_penalties(books: GradebookWriter, results: list[GradeResult]) -> list[GradeResult]:
    """Return results with the penalties of today's deadlines: what had been graded before may be charged differently now."""
    changed = update_penalties(books)
    stored = {student: read_result(books.course, books.chapter, student) for student in changed}
    return [
        replace(result, late_penalty=now.late_penalty) if (now := stored.get(result.student)) else result
        for result in results
    ]


@contextmanager
def _heap_set_aside() -> Iterator[None]:
    """Have Python look for garbage only in what is made from here on: modules and classes, of which there are many, stay in any case."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _stopped(chapter: str, done: int, of: int, force: bool) -> str:
    without = " without --force: with it, everything would begin again" if force else ""
    return f"stopped. {done} of {of} submissions of {chapter} are done and kept.\nTo go on, give the same command again{without}."


# Stands for the hash of what a student has handed in until it has been read, and where it cannot be.
_UNREADABLE = "unreadable"


@dataclass
class _Ready:
    """The state of a run's submissions before any of them runs.

    Attributes:
        hashes: the hash of each submission that was read.
        early: results of submissions that need not run.
        several: the notebooks of students who have handed in several.
    """

    hashes: dict[str, str] = field(default_factory=dict)
    early: list[GradeResult] = field(default_factory=list)
    several: dict[str, list[Submission]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Run:
    course: Course
    manifest: Manifest
    settings: GradingSettings
    force: bool
    books: GradebookWriter
    journal: Journal
    standings: Mapping[str, SubmissionState]
    made_with: Future[Provenance]

    def results(
        self,
        students: Sequence[str],
        make_executor: MakeExecutor | None,
        workers: WorkerPool | None,
    ) -> Iterator[GradeResult]:
        """Yield results as they arrive; results that need no kernel come while others run."""
        if self.force:
            self.journal.stale(students)
        ready = _Ready()
        submissions = self._submissions(students, ready)
        with WorkerPool() if workers is None else nullcontext(workers) as pool:
            for execution in executions(make_executor, self.settings, submissions, workers=pool):
                yield from _taken(ready.early)
                yield self._judged(execution, ready.hashes[execution.student])
            yield from _taken(ready.early)
            for count in sorted({len(several) for several in ready.several.values()}):
                run = partial(executions, make_executor, self.settings.shared_by(count), workers=pool)
                yield from self._undecided(ready, count, run)

    def _undecided(
        self, ready: _Ready, count: int, run: Callable[[Iterable[Submission]], Iterator[Execution]]
    ) -> Iterator[GradeResult]:
        """Yield the results of students with ``count`` notebooks, from which the lecturer has to choose."""
        some = {student: several for student, several in ready.several.items() if len(several) == count}
        done: dict[str, dict[str, Execution]] = {student: {} for student in some}
        for execution in run(submission for several in some.values() for submission in several):
            student, _, file = execution.student.partition("/")
            done[student][file] = execution
            if len(done[student]) == count:
                yield self._to_decide(student, ready.hashes[student], done.pop(student))

    def _submissions(self, students: Sequence[str], ready: _Ready) -> Iterator[Submission]:
        """Yield what has to be run; keep the results of all others, and what is to be run with a shared allowance, for later."""
        for student in students:
            ready.hashes[student] = _UNREADABLE
            try:
                submissions = self._prepared(student, ready)
            except CourseError:
                raise
            except Exception as error:  # one student's files must not keep the others from being graded
                if explained_for_all(error) is not None:
                    raise
                failure = error if isinstance(error, RecordError) else RecordError.of(error)
                ready.early.append(self._unrecorded(student, ready.hashes[student], failure))
                continue
            if len(submissions) > 1:
                ready.several[student] = submissions
            else:
                yield from submissions

    def _prepared(self, student: str, ready: _Ready) -> list[Submission]:
        """Return what has to be run of a student; put the result into ``ready`` where nothing has."""
        path = self._notebook(student)
        companions = self._files(path)
        digest = ready.hashes[student] = submission_hash(path, companions.files)
        if not is_safe(student):
            ready.early.append(self._unsafe(student, digest))
        elif not self.force and (stored := self._unchanged(student, digest)):
            ready.early.append(stored)
        elif several := undecided_notebooks(path.parent, self.manifest.chapter):
            places = {f"{student}/{name}": path.with_name(name) for name in several}
            return [self._submission(name, student, path, companions, instead) for name, instead in places.items()]
        elif not path.is_file():
            ready.early.append(self._without_notebook(student, digest))
        else:
            return [self._submission(student, student, path, companions)]
        return []

    def _submission(
        self, name: str, student: str, path: Path, companions: CompanionFiles, instead: Path | None = None
    ) -> Submission:
        sanitised = self.books.sanitise(student, path, instead=instead)
        if companions.problems:
            notebook = nbformat.reads(sanitised, as_version=4)
            add_problems(notebook, list(companions.problems))
            sanitised = nbformat.writes(notebook)
        return Submission(name, self.manifest.chapter, sanitised, companions.files)

    def _notebook(self, student: str) -> Path:
        return submitted_notebook(self.course, self.manifest.chapter, student)

    def _files(self, path: Path) -> CompanionFiles:
        return files_of(self.course, self.manifest.chapter, path)

    def _unchanged(self, student: str, digest: str) -> GradeResult | None:
        if self.standings.get(student, NO_STATE).last_event != RECORDED:
            return None
        stored = read_result(self.course, self.manifest.chapter, student)
        if stored is None or stored.status == "not recorded":
            return None
        same = stored.submission == digest and stored.source == self.manifest.digest
        same_way = stored.device == self.settings.device and stored.seed == self.settings.seed
        if stored.status == "to decide":
            return self._with_present_times(stored) if same and same_way else None
        # Where no notebook was handed in there is none that was graded.
        graded = self.course.folder("autograded", student, self.manifest.chapter).is_dir()
        complete = graded or not self._notebook(student).is_file() or stored.status == "not gradable"
        return (
            self._with_present_times(stored) if same and same_way and complete and self._is_in_books(stored) else None
        )

    def _with_present_times(self, result: GradeResult) -> GradeResult:
        """Return a result with the problems that leave open how late its submission is now; a stored result is written again."""
        others = [problem for problem in result.problems if problem.kind not in OF_TIMES]
        problems = (*others, *time_problems(self.course, self.manifest.chapter, result.student, self._plan))
        if problems == result.problems:
            return result
        result = replace(result, problems=problems)
        if result.unchanged:
            write_result(self.course, result)
        return result

    @cached_property
    def _plan(self) -> CourseFile:
        return read_course_file(self.course.root)

    def _is_in_books(self, stored: GradeResult) -> bool:
        """Return whether the gradebook has the points of a result: it may have been recreated or restored from a backup."""
        try:
            grades, _ = self.books.grades(stored.student)
        except MissingEntry:
            return False
        points = {exercise_of(name): grade.auto_score for name, grade in grades.items()}
        return all(points.get(exercise.name) == exercise.score for exercise in stored.exercises)

    def _manual_cells(self, execution: Execution, digest: str) -> frozenset[str]:
        """Return the cells whose points are a person's and stay so: the person has seen what there is to see now."""
        student = execution.student
        standing = self.standings.get(student, NO_STATE)
        if standing.submission:
            # A recording that was stopped may have left a notebook that nobody has seen: its own note counts.
            return standing.manual_cells if standing.submission == digest else frozenset()
        stored = read_result(self.course, self.manifest.chapter, student)
        manual = manually_graded_cells(self.books, self.manifest, student)
        # Of what the grader failed on, nobody has seen anything yet.
        if not manual or (stored is not None and stored.status == "graded" and stored.submission == digest):
            return manual
        chapter = self.manifest.chapter
        graded = self.course.folder("autograded", student, chapter) / f"{chapter}.ipynb"
        return manual & unchanged_cells(self.manifest, graded, execution.notebook)

    def _judged(self, execution: Execution, digest: str) -> GradeResult:
        student = execution.student
        if execution.failure and not (execution.notebook and self._failed_before(student, digest)):
            return self._failed(student, digest, execution.failure, by_submission=bool(execution.notebook))
        if fault := self._fault(execution):
            return self._failed(student, digest, fault)
        try:
            return self._recorded(self._entered(execution, digest), execution.signatures)
        except RecordError as error:
            return self._unrecorded(student, digest, error)

    def _fault(self, execution: Execution) -> str:
        """Return why the tests, and not the submission, keep an execution from being recorded; empty if nothing does.

        Raises:
            CourseError: if a check's total is not its cell's points, which concerns the whole chapter.
        """
        if not execution.notebook:
            return ""
        notebook = reader.reads(execution.notebook)
        refuse_other_totals(self.course, self.manifest.chapter, notebook)
        return unscorable(notebook)

    def _failed_before(self, student: str, digest: str) -> bool:
        """Return whether grading the same submission failed in an earlier run because of its contents."""
        return self.standings.get(student, NO_STATE).failed_submission == digest

    def _unrecorded(self, student: str, digest: str, error: RecordError) -> GradeResult:
        """Say that a submission could not be read or recorded; the second time that counts, unless the gradebook is the cause."""
        if not (error.by_submission and self._failed_before(student, digest)):
            return self._failed(student, digest, str(error), by_submission=error.by_submission)
        try:
            self.journal.begun(student, digest)
            self.books.record_zero(student)
        except RecordError as again:
            return self._failed(student, digest, str(again))
        message = f"Grading it failed again ({error}); it was given no points."
        problem = Problem("grading stopped", message, do="Look at what was handed in.", fatal=True)
        result = self._result(student, digest, "not gradable")
        return self._recorded(replace(result, exercises=no_exercises(self.manifest, message), problems=(problem,)))

    def _entered(self, execution: Execution, digest: str) -> GradeResult:
        """Write an execution into the gradebook, and return what came of it."""
        student = execution.student
        manual = self._manual_cells(execution, digest)
        self.journal.begun(student, digest, manual)
        recorded = self.books.record(student, execution.notebook, manual)
        notebook, grades = recorded.notebook, recorded.grades
        problems = tuple(problems_of(notebook))
        points = {name: float(grade.auto_score or 0.0) for name, grade in grades.items()}
        times = seconds_of(json.loads(execution.notebook))
        fatal = any(problem.fatal for problem in problems)
        return replace(
            self._result(student, digest, "not gradable" if fatal else "graded"),
            provenance=grade_provenance(self.made_with.result(), execution, ran=not fatal),
            exercises=exercise_results(self.manifest, notebook, points, times),
            questions=tuple(_questions(self.manifest, grades)),
            problems=problems,
            late_penalty=recorded.late_penalty,
            seconds=round(execution.seconds, 3),
        )

    def _to_decide(self, student: str, digest: str, executions: Mapping[str, Execution]) -> GradeResult:
        """Say what each of several notebooks would be worth; the gradebook learns of nothing but the student."""
        for execution in executions.values():
            if reason := execution.failure or self._fault(execution):
                return self._failed(student, digest, reason)
        notebooks = tuple(self._worth(name, executions[name]) for name in sorted(executions))
        self.journal.begun(student, digest)
        with self.books.gradebook() as gradebook:
            gradebook.update_or_create_student(student)
            gradebook.db.commit()
        problem = to_decide(self.course, student, self.manifest.chapter, notebooks)
        result = self._result(student, digest, "to decide")
        return self._recorded(replace(result, notebooks=notebooks, problems=(problem,)))

    def _worth(self, file: str, execution: Execution) -> Notebook:
        notebook = nbformat.reads(execution.notebook, as_version=4)
        exercises = exercise_results(self.manifest, notebook, scores_of(notebook), {})
        return Notebook(file, sum(e.score for e in exercises), sum(e.max_score for e in exercises))

    def _without_notebook(self, student: str, digest: str) -> GradeResult:
        self.journal.begun(student, digest)
        self.books.record_zero(student)
        problem = no_notebook(self._notebook(student).parent)
        nothing = no_exercises(self.manifest, problem.what)
        result = self._result(student, digest, "not gradable")
        return self._recorded(replace(result, exercises=nothing, problems=(problem,)))

    def _unsafe(self, student: str, digest: str) -> GradeResult:
        do = (
            "Rename the folder: letters, digits, single dots, @, hyphens and underscores, at most 100 of them, "
            "and no name that Windows keeps for a device, such as con or nul."
        )
        problem = Problem("unsafe name", "nbgrader cannot use this student id.", f"submitted/{student}", do, fatal=True)
        return self._record_failure(student, digest, problem)

    def _failed(self, student: str, digest: str, reason: str, *, by_submission: bool = False) -> GradeResult:
        message = f"It could not be graded: {reason.rstrip('.')}."
        if not self._withdrawn(student, digest):
            # The digest of the file before stays in the result, so that the next run tries again to take its grade back.
            digest, by_submission = self._graded_file(student), False
        problem = Problem("grader failed", message, do="Grade the chapter again.", fatal=True)
        return self._record_failure(student, digest, problem, failed_submission=digest if by_submission else "")

    def _graded_file(self, student: str) -> str:
        stored = read_result(self.course, self.manifest.chapter, student)
        return stored.submission if stored is not None else ""

    def _withdrawn(self, student: str, digest: str) -> bool:
        """Take back the points of an earlier file, if there are any; return whether none are left in the gradebook."""
        if self._graded_file(student) in ("", digest):
            return True
        try:
            self.books.withdraw(student)
        except RecordError:
            return False
        return True

    def _record_failure(
        self, student: str, digest: str, problem: Problem, *, failed_submission: str = ""
    ) -> GradeResult:
        result = replace(self._result(student, digest, "not recorded"), problems=(problem,))
        self._keep(result, {})
        write_result(self.course, result)
        self.journal.write(FAILED, student=student, kind=problem.kind, what=problem.what, lost=failed_submission)
        return result

    def _recorded(self, result: GradeResult, signatures: Mapping[str, Any] = MappingProxyType({})) -> GradeResult:
        result = self._with_present_times(result)
        self._keep(result, signatures)
        write_result(self.course, result)
        self.journal.recorded(
            result.student,
            status=result.status,
            score=result.score,
            max_score=result.max_score,
            seconds=result.seconds,
            problems=[problem.kind for problem in result.problems],
        )
        return result

    def _keep(self, result: GradeResult, signatures: Mapping[str, Any]) -> None:
        """Keep the signatures of a submission in the place of those before; without them answers are grouped by their messages."""
        with suppress(OSError):
            write_signatures(self.course, result.chapter, result.student, result.submission, signatures)

    def _result(self, student: str, digest: str, status: Status) -> GradeResult:
        assert self.settings.seed is not None
        return GradeResult(
            student=student,
            chapter=self.manifest.chapter,
            status=status,
            device=self.settings.device,
            seed=self.settings.seed,
            submission=digest,
            source=self.manifest.digest,
            provenance=self.made_with.result(),
        )


def _taken(results: list[GradeResult]) -> Iterator[GradeResult]:
    while results:
        yield results.pop(0)


def _questions(manifest: Manifest, grades: Mapping[str, RecordedGrade]) -> Iterator[QuestionResult]:
    for source_cell in manifest.cells:
        if source_cell.is_answer or source_cell.task:
            grade = grades[source_cell.name]
            yield QuestionResult(source_cell.name, grade.max_score, answered=grade.auto_score is None)
