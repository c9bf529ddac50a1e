"""Run a chapter's submissions: the one way of grading, of grading again and of comparing. A sink keeps what comes of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from nbformat import reader

from autograder.course.folder import Course
from autograder.course.known_errors import explained_for_all
from autograder.engine.interface import Execution, Executor, Submission
from autograder.engine.sandbox.isolation import with_available_isolation
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.executor import WorkerPool
from autograder.engine.workers.pool import run_concurrently
from autograder.errors import CourseError
from autograder.grading.record.executed_notebook import (
    exercise_results,
    no_exercises,
    no_notebook,
    scores_of,
    seconds_of,
    to_decide,
)
from autograder.grading.record.gradebook_writer import RecordError
from autograder.grading.record.provenance import Provenance
from autograder.grading.record.results import GradeResult, Notebook, Status
from autograder.grading.released_points import refuse_other_totals, unscorable
from autograder.grading.submissions import files_of, submission, submission_hash, text_hash
from autograder.intake.downloads.choices import undecided_notebooks
from autograder.intake.downloads.store import submitted_notebook
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.problem import Problem, problems_of
from autograder.intake.roster import is_safe

MakeExecutor = Callable[[GradingSettings], Executor]


def executions(
    make_executor: MakeExecutor | None,
    settings: GradingSettings,
    submissions: Iterable[Submission],
    workers: WorkerPool | None = None,
) -> Iterator[Execution]:
    """Run submissions and yield the results in the order in which they finish.

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
    return _executions_here(workers, with_available_isolation(settings), submissions)


def _executions_here(
    workers: WorkerPool | None, settings: GradingSettings, submissions: Iterable[Submission]
) -> Iterator[Execution]:
    with WorkerPool() if workers is None else nullcontext(workers) as pool:
        yield from run_concurrently(partial(pool.executor_for, settings), submissions, jobs=settings.jobs)


_RENAME = (
    "Rename the folder: letters, digits, single dots, @, hyphens and underscores, at most 100 of them, "
    "and no name that Windows keeps for a device, such as con or nul."
)


@dataclass(frozen=True)
class Outcome:
    """What came of a submission."""

    result: GradeResult  # the result, without what only the gradebook knows: questions, and the penalty for lateness
    notebook: Any = None  # the executed notebook; None if none was executed, or several were
    signatures: Mapping[str, Any] = field(default_factory=dict)  # the signatures of its wrong answers, by exercise
    by_submission: bool = False  # whether the submission's contents may be why the grader failed


@dataclass(frozen=True)
class Judge:
    """Judges the submissions of one run."""

    course: Course
    manifest: Manifest  # the chapter's cells
    settings: GradingSettings  # the limits, the seed and the device of the run
    made_with: Callable[[], Provenance]  # returns the versions and the machine, which every result names

    def executed(self, execution: Execution, digest: str, text: str, *, again: bool) -> Outcome:
        """Judge the execution of a notebook.

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
        notebook = parsed(execution)
        if text_hash(notebook) != text:
            raise RecordError("the executed notebook differs from the submitted notebook")
        self._refuse_wrong_tests(notebook)
        problems = tuple(problems_of(notebook))
        fatal = any(problem.fatal for problem in problems)
        result = self._result(execution.student, digest, "not gradable" if fatal else "graded", *problems)
        if not fatal:
            made_with = replace(result.provenance, isolation=execution.isolation, layers=execution.layers)
            result = replace(result, provenance=made_with)
        exercises = exercise_results(self.manifest, notebook, scores_of(notebook), seconds_of(notebook))
        result = replace(result, exercises=exercises, seconds=round(execution.seconds, 3))
        return Outcome(result, notebook, execution.signatures)

    def undecided(self, student: str, digest: str, executions: Mapping[str, Execution]) -> Outcome:
        """Say what each of several notebooks would be worth.

        Args:
            executions: the executions by the notebook's file.

        Raises:
            RecordError: if one could not be graded.
        """
        if failure := next((one.failure for one in executions.values() if one.failure), ""):
            raise RecordError(failure)
        notebooks = tuple(self._worth(file, parsed(execution)) for file, execution in sorted(executions.items()))
        problem = to_decide(self.course, student, self.manifest.chapter, notebooks)
        return Outcome(replace(self._result(student, digest, "to decide", problem), notebooks=notebooks))

    def without_notebook(self, student: str, digest: str) -> Outcome:
        """Say that the chapter's notebook is missing."""
        problem = no_notebook(submitted_notebook(self.course, self.manifest.chapter, student).parent)
        return self._nothing(student, digest, problem, problem.what)

    def unsafe_name(self, student: str, digest: str) -> Outcome:
        """Say that nbgrader cannot use the student's id."""
        message, folder = "nbgrader cannot use this student id.", f"submitted/{student}"
        return Outcome(
            self._result(student, digest, "not recorded", Problem("unsafe name", message, folder, _RENAME, fatal=True))
        )

    def failure(self, student: str, digest: str, error: RecordError, *, again: bool) -> Outcome:
        """Say that a submission could not be graded or recorded; the second time that counts, if it may be the cause.

        Args:
            again: whether the grader failed on the same submission before.
        """
        if again and error.by_submission:
            message = f"Grading it failed again ({error}); it was given no points."
            problem = Problem("grading stopped", message, do="Look at what was handed in.", fatal=True)
            return self._nothing(student, digest, problem, message)
        message = f"It could not be graded: {str(error).rstrip('.')}."
        problem = Problem("grader failed", message, do="Grade the chapter again.", fatal=True)
        return Outcome(self._result(student, digest, "not recorded", problem), by_submission=error.by_submission)

    def _refuse_wrong_tests(self, notebook: Any) -> None:
        """Refuse an executed notebook that the tests, and not the submission, keep from being recorded."""
        refuse_other_totals(self.course, self.manifest.chapter, notebook)
        if fault := unscorable(notebook):
            raise RecordError(fault)

    def _worth(self, file: str, notebook: Any) -> Notebook:
        self._refuse_wrong_tests(notebook)
        exercises = exercise_results(self.manifest, notebook, scores_of(notebook), {})
        return Notebook(file, sum(e.score for e in exercises), sum(e.max_score for e in exercises))

    def _nothing(self, student: str, digest: str, problem: Problem, why: str) -> Outcome:
        result = self._result(student, digest, "not gradable", problem)
        return Outcome(replace(result, exercises=no_exercises(self.manifest, why)))

    def _result(self, student: str, digest: str, status: Status, *problems: Problem) -> GradeResult:
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


def parsed(execution: Execution) -> Any:
    """Return the notebook of an execution.

    Raises:
        RecordError: if it is not a notebook, for instance because it is truncated.
    """
    try:
        return reader.reads(execution.notebook)
    except ValueError as error:
        raise RecordError.of(error) from error


_FailedBefore = Callable[[str, str], bool]
# Stands for the hash of what a student has handed in until it has been read, and where it cannot be.
_UNREADABLE = "unreadable"


class Sink(Protocol):
    """Keeps what comes of submissions."""

    def stored(self, student: str, digest: str) -> GradeResult | None:
        """Return the result of a submission that need not run, by the hash of the submission; else None."""

    def failed_before(self, student: str, digest: str) -> bool:
        """Return whether the grader has failed on the same submission before, because of its contents."""

    def keep(self, outcome: Outcome) -> GradeResult:
        """Keep what came of a submission, and return its result.

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
        """Yield results as they arrive; results that need no kernel come while others run."""
        settings, again = self.judge.settings, self.sink.failed_before
        with WorkerPool() if workers is None else nullcontext(workers) as pool:
            for execution in executions(make_executor, settings, self._submissions(students), workers=pool):
                yield from self._taken()
                yield self._recorded(execution.student, partial(self._executed, execution), again)
            yield from self._taken()
            for count in sorted({len(several) for several in self._several.values()}):
                chosen = {student: several for student, several in self._several.items() if len(several) == count}
                submissions = (one for several in chosen.values() for one in several)
                done: dict[str, dict[str, Execution]] = {student: {} for student in chosen}
                for execution in executions(make_executor, settings.shared_by(count), submissions, workers=pool):
                    student, _, file = execution.student.partition("/")
                    done[student][file] = execution
                    if len(done[student]) == count:
                        undecided = partial(self.judge.undecided, student, self._hashes[student], done.pop(student))
                        # Which of several notebooks is the cause is open, so a second failure does not count.
                        yield self._recorded(student, undecided, lambda student, digest: False)

    def _taken(self) -> Iterator[GradeResult]:
        while self._early:
            yield self._early.pop(0)

    def _submissions(self, students: Sequence[str]) -> Iterator[Submission]:
        """Yield what has to be run; keep the results of all others, and what is to be run with a shared allowance, for later."""
        for student in students:
            self._hashes[student] = _UNREADABLE
            try:
                prepared = self._prepared(student)
            except Exception as error:  # one student's files must not keep the others from being graded
                prepared = self._failed(student, error, self.sink.failed_before)
            if isinstance(prepared, GradeResult):
                self._early.append(prepared)
            elif len(prepared) > 1:
                self._several[student] = prepared
            else:
                yield from prepared

    def _prepared(self, student: str) -> list[Submission] | GradeResult:
        """Return what has to be run of a student, or the result where nothing has."""
        course, manifest = self.judge.course, self.judge.manifest
        path = submitted_notebook(course, manifest.chapter, student)
        companions = files_of(course, manifest.chapter, path)
        digest = self._hashes[student] = submission_hash(path, companions.files)
        if not is_safe(student):
            return self.sink.keep(self.judge.unsafe_name(student, digest))
        if stored := self.sink.stored(student, digest):
            return stored
        if several := undecided_notebooks(path.parent, manifest.chapter):
            return [submission(f"{student}/{name}", path.with_name(name), manifest, companions)[0] for name in several]
        if not path.is_file():
            return self.sink.keep(self.judge.without_notebook(student, digest))
        prepared, self._texts[student] = submission(student, path, manifest, companions)
        return [prepared]

    def _executed(self, execution: Execution) -> Outcome:
        student = execution.student
        digest = self._hashes[student]
        again = self.sink.failed_before(student, digest)
        return self.judge.executed(execution, digest, self._texts[student], again=again)

    def _recorded(self, student: str, judged: Callable[[], Outcome], again: _FailedBefore) -> GradeResult:
        try:
            return self.sink.keep(judged())
        except Exception as error:
            return self._failed(student, error, again)

    def _failed(self, student: str, error: Exception, again: _FailedBefore) -> GradeResult:
        """Keep that a submission could not be graded; an error that concerns all submissions ends the run."""
        if isinstance(error, CourseError) or explained_for_all(error) is not None:
            raise error
        digest, failure = self._hashes[student], RecordError.of(error)
        try:
            return self.sink.keep(self.judge.failure(student, digest, failure, again=again(student, digest)))
        except RecordError as unkept:
            return self.sink.keep(self.judge.failure(student, digest, RecordError(str(unkept)), again=False))
