"""Judge what came of a submission, without writing anything: its result; or, if the grader failed, whose fault that is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from nbformat import reader

from autograder.course.folder import Course
from autograder.engine.interface import Execution
from autograder.engine.settings import GradingSettings
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
from autograder.grading.submissions import text_hash
from autograder.intake.downloads.store import submitted_notebook
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.problem import Problem, problems_of

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
            raise RecordError("the notebook that was run is not the one that was sent")
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
        place, what = f"submitted/{student}", "nbgrader cannot use this student id."
        return Outcome(
            self._result(student, digest, "not recorded", Problem("unsafe name", what, place, _RENAME, fatal=True))
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
