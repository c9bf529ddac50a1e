"""Run a chapter's submissions for grading, regrading and comparing; a sink stores the outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from nbformat import reader

from autograder.course.folder import Course
from autograder.course.known_errors import explain_general_error
from autograder.engine.interface import Execution, Executor, Submission
from autograder.engine.sandbox.isolation import with_available_isolation
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.executor import WorkerPool
from autograder.engine.workers.pool import run_concurrently
from autograder.errors import CourseError
from autograder.grading.record.executed_notebook import (
    exercise_results,
    missing_notebook_problem,
    read_scores,
    read_seconds,
    undecided_problem,
    zero_results,
)
from autograder.grading.record.gradebook_writer import RecordError
from autograder.grading.record.provenance import Provenance
from autograder.grading.record.results import GradeResult, Notebook, Status
from autograder.grading.released_points import impossible_scores, refuse_other_totals
from autograder.grading.submissions import build_submission, read_submitted_companions, submission_hash, text_hash
from autograder.intake.downloads.choices import undecided_notebooks
from autograder.intake.downloads.store import submitted_notebook
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.problem import Problem, read_problems
from autograder.intake.roster import is_safe

MakeExecutor = Callable[[GradingSettings], Executor]


def run_submissions(
    make_executor: MakeExecutor | None,
    settings: GradingSettings,
    submissions: Iterable[Submission],
    workers: WorkerPool | None = None,
) -> Iterator[Execution]:
    """Run submissions and yield the executions in the order in which they finish.

    Args:
        make_executor: creates an executor; by default this machine's.
        settings: limits, device, seed, and how many run at once.
        submissions: consumed as needed.
        workers: running worker processes, which stay.
    """
    if settings.scheduler:
        from autograder.grading.cluster import executions_on_cluster

        return executions_on_cluster(settings, submissions, make_executor)
    if make_executor is not None:
        return run_concurrently(partial(make_executor, settings), submissions, jobs=settings.jobs)
    return _run_locally(workers, with_available_isolation(settings), submissions)


def _run_locally(
    workers: WorkerPool | None, settings: GradingSettings, submissions: Iterable[Submission]
) -> Iterator[Execution]:
    with WorkerPool() if workers is None else nullcontext(workers) as pool:
        yield from run_concurrently(partial(pool.lease_executor, settings), submissions, jobs=settings.jobs)


_RENAME = (
    "Rename the folder: letters, digits, single dots, @, hyphens and underscores, at most 100 of them, "
    "and no name that Windows keeps for a device, such as con or nul."
)


@dataclass(frozen=True)
class Outcome:
    """The outcome of grading a submission."""

    result: GradeResult  # the result, without what only the gradebook knows: questions, and the penalty for lateness
    notebook: Any = None  # the executed notebook; None if none was executed, or several were
    signatures: Mapping[str, Any] = field(default_factory=dict)  # the signatures of its wrong answers, by exercise
    by_submission: bool = False  # whether the submission's contents may be why the grader failed


@dataclass(frozen=True)
class Judge:
    """Turns the executions of one run into outcomes."""

    course: Course
    manifest: Manifest  # the chapter's cells
    settings: GradingSettings  # the limits, the seed and the device of the run
    made_with: Callable[[], Provenance]  # returns the versions and the machine, which every result names

    def judge_execution(self, execution: Execution, digest: str, text: str, *, again: bool) -> Outcome:
        """Return the outcome of an executed notebook.

        Args:
            digest: the hash of the submission.
            text: the hash of the text that was to be run.
            again: whether the grader failed on the same submission before; then its second failure is the submission's result.

        Raises:
            RecordError: if it could not be graded.
            CourseError: if a check's total is not its cell's points, which concerns the whole chapter.
        """
        if execution.failure and not (execution.notebook and again):
            raise RecordError(execution.failure, by_submission=bool(execution.notebook))
        notebook = parse_notebook(execution)
        if text_hash(notebook) != text:
            raise RecordError("the executed notebook differs from the submitted notebook")
        self._refuse_wrong_tests(notebook)
        problems = tuple(read_problems(notebook))
        fatal = any(problem.fatal for problem in problems)
        result = self._new_result(execution.student, digest, "not gradable" if fatal else "graded", *problems)
        if not fatal:
            made_with = replace(result.provenance, isolation=execution.isolation, layers=execution.layers)
            result = replace(result, provenance=made_with)
        exercises = exercise_results(self.manifest, notebook, read_scores(notebook), read_seconds(notebook))
        result = replace(result, exercises=exercises, seconds=round(execution.seconds, 3))
        return Outcome(result, notebook, execution.signatures)

    def judge_undecided(self, student: str, digest: str, executions: Mapping[str, Execution]) -> Outcome:
        """Return the outcome for several notebooks of which none is chosen, with the points of each.

        Args:
            executions: the executions by the notebook's file.

        Raises:
            RecordError: if one could not be graded.
        """
        if failure := next((one.failure for one in executions.values() if one.failure), ""):
            raise RecordError(failure)
        notebooks = tuple(
            self._notebook_points(file, parse_notebook(execution)) for file, execution in sorted(executions.items())
        )
        problem = undecided_problem(self.course, student, self.manifest.chapter, notebooks)
        return Outcome(replace(self._new_result(student, digest, "to decide", problem), notebooks=notebooks))

    def missing_notebook_outcome(self, student: str, digest: str) -> Outcome:
        """Return the outcome for a submission without the chapter's notebook."""
        problem = missing_notebook_problem(submitted_notebook(self.course, self.manifest.chapter, student).parent)
        return self._zero_outcome(student, digest, problem, problem.what)

    def unsafe_name_outcome(self, student: str, digest: str) -> Outcome:
        """Return the outcome for a student id that nbgrader cannot use."""
        message, folder = "nbgrader cannot use this student id.", f"submitted/{student}"
        return Outcome(
            self._new_result(
                student, digest, "not recorded", Problem("unsafe name", message, folder, _RENAME, fatal=True)
            )
        )

    def failure_outcome(self, student: str, digest: str, error: RecordError, *, again: bool) -> Outcome:
        """Return the outcome of a failed submission: not recorded, or 0 points if it may be the cause and fails again.

        Args:
            again: whether the grader failed on the same submission before.
        """
        if again and error.by_submission:
            message = f"Grading it failed again ({error}); it was given no points."
            problem = Problem("grading stopped", message, do="Look at what was handed in.", fatal=True)
            return self._zero_outcome(student, digest, problem, message)
        message = f"It could not be graded: {str(error).rstrip('.')}."
        problem = Problem("grader failed", message, do="Grade the chapter again.", fatal=True)
        return Outcome(self._new_result(student, digest, "not recorded", problem), by_submission=error.by_submission)

    def _refuse_wrong_tests(self, notebook: Any) -> None:
        """Refuse an executed notebook with a faulty test, whose score cannot be recorded."""
        refuse_other_totals(self.course, self.manifest.chapter, notebook)
        if fault := impossible_scores(notebook):
            raise RecordError(fault)

    def _notebook_points(self, file: str, notebook: Any) -> Notebook:
        self._refuse_wrong_tests(notebook)
        exercises = exercise_results(self.manifest, notebook, read_scores(notebook), {})
        return Notebook(file, sum(e.score for e in exercises), sum(e.max_score for e in exercises))

    def _zero_outcome(self, student: str, digest: str, problem: Problem, why: str) -> Outcome:
        result = self._new_result(student, digest, "not gradable", problem)
        return Outcome(replace(result, exercises=zero_results(self.manifest, why)))

    def _new_result(self, student: str, digest: str, status: Status, *problems: Problem) -> GradeResult:
        assert self.settings.seed is not None
        return GradeResult(
            student=student,
            chapter=self.manifest.chapter,
            status=status,
            problems=problems,
            device=self.settings.device,
            seed=self.settings.seed,
            submission=digest,
            source=self.manifest.digest,
            provenance=self.made_with(),
        )


def parse_notebook(execution: Execution) -> Any:
    """Parse the notebook of an execution.

    Raises:
        RecordError: if it is not a notebook, for instance because it is truncated.
    """
    try:
        return reader.reads(execution.notebook)
    except ValueError as error:
        raise RecordError.from_exception(error) from error


_FailedBefore = Callable[[str, str], bool]
# Stands for the hash of what a student has handed in until it has been read, and where it cannot be.
_UNREADABLE = "unreadable"


class Sink(Protocol):
    """Stores the outcomes of submissions."""

    def reusable_result(self, student: str, digest: str) -> GradeResult | None:
        """Return the stored result of a submission that need not run, by the submission's hash; else None."""

    def has_failed_before(self, student: str, digest: str) -> bool:
        """Return whether the grader has failed on the same submission before, because of its contents."""

    def store_outcome(self, outcome: Outcome) -> GradeResult:
        """Store an outcome, and return its result.

        Raises:
            RecordError: if it cannot be kept.
        """


@dataclass(frozen=True)
class Run:
    """One run over submissions of a chapter."""

    judge: Judge
    sink: Sink
    _hashes: dict[str, str] = field(default_factory=dict)  # the hash of each submission that was read
    _texts: dict[str, str] = field(default_factory=dict)  # the hash of the text that each submission is run with
    _early: list[GradeResult] = field(default_factory=list)  # results of submissions that need not run
    # the notebooks of students who have handed in several
    _several: dict[str, list[Submission]] = field(default_factory=dict)

    def results(
        self, students: Sequence[str], make_executor: MakeExecutor | None, workers: WorkerPool | None
    ) -> Iterator[GradeResult]:
        """Yield results as they arrive; results of submissions that need not run come in between."""
        settings, again = self.judge.settings, self.sink.has_failed_before
        with WorkerPool() if workers is None else nullcontext(workers) as pool:
            for execution in run_submissions(make_executor, settings, self._list_submissions(students), workers=pool):
                yield from self._take_early()
                yield self._keep_outcome(execution.student, partial(self._judge_execution, execution), again)
            yield from self._take_early()
            for count in sorted({len(several) for several in self._several.values()}):
                chosen = {student: several for student, several in self._several.items() if len(several) == count}
                submissions = (one for several in chosen.values() for one in several)
                done: dict[str, dict[str, Execution]] = {student: {} for student in chosen}
                for execution in run_submissions(make_executor, settings.split_among(count), submissions, workers=pool):
                    student, _, file = execution.student.partition("/")
                    done[student][file] = execution
                    if len(done[student]) == count:
                        undecided = partial(
                            self.judge.judge_undecided, student, self._hashes[student], done.pop(student)
                        )
                        # Which of several notebooks is the cause is open, so a second failure does not count.
                        yield self._keep_outcome(student, undecided, lambda student, digest: False)

    def _take_early(self) -> Iterator[GradeResult]:
        while self._early:
            yield self._early.pop(0)

    def _list_submissions(self, students: Sequence[str]) -> Iterator[Submission]:
        """Yield the submissions to run, and put aside finished results and students with several notebooks."""
        for student in students:
            self._hashes[student] = _UNREADABLE
            try:
                prepared = self._prepare_student(student)
            except Exception as error:  # one student's files must not keep the others from being graded
                prepared = self._keep_failure(student, error, self.sink.has_failed_before)
            if isinstance(prepared, GradeResult):
                self._early.append(prepared)
            elif len(prepared) > 1:
                self._several[student] = prepared
            else:
                yield from prepared

    def _prepare_student(self, student: str) -> list[Submission] | GradeResult:
        """Return a student's submissions to run, or the result if none has to run."""
        course, manifest = self.judge.course, self.judge.manifest
        path = submitted_notebook(course, manifest.chapter, student)
        companions = read_submitted_companions(course, manifest.chapter, path)
        digest = self._hashes[student] = submission_hash(path, companions.files)
        if not is_safe(student):
            return self.sink.store_outcome(self.judge.unsafe_name_outcome(student, digest))
        if stored := self.sink.reusable_result(student, digest):
            return stored
        if several := undecided_notebooks(path.parent, manifest.chapter):
            return [
                build_submission(f"{student}/{name}", path.with_name(name), manifest, companions)[0] for name in several
            ]
        if not path.is_file():
            return self.sink.store_outcome(self.judge.missing_notebook_outcome(student, digest))
        prepared, self._texts[student] = build_submission(student, path, manifest, companions)
        return [prepared]

    def _judge_execution(self, execution: Execution) -> Outcome:
        student = execution.student
        digest = self._hashes[student]
        again = self.sink.has_failed_before(student, digest)
        return self.judge.judge_execution(execution, digest, self._texts[student], again=again)

    def _keep_outcome(self, student: str, judged: Callable[[], Outcome], again: _FailedBefore) -> GradeResult:
        try:
            return self.sink.store_outcome(judged())
        except Exception as error:
            return self._keep_failure(student, error, again)

    def _keep_failure(self, student: str, error: Exception, again: _FailedBefore) -> GradeResult:
        """Store a failed submission; an error that concerns all submissions is raised."""
        if isinstance(error, CourseError) or explain_general_error(error) is not None:
            raise error
        digest, failure = self._hashes[student], RecordError.from_exception(error)
        try:
            return self.sink.store_outcome(
                self.judge.failure_outcome(student, digest, failure, again=again(student, digest))
            )
        except RecordError as unkept:
            return self.sink.store_outcome(
                self.judge.failure_outcome(student, digest, RecordError(str(unkept)), again=False)
            )
