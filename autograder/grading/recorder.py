"""Record what came of a submission: in the gradebook, in its result file, and in the chapter's journal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from nbformat import reader

from autograder.course.course_file import CourseFile, read_course_file
from autograder.course.folder import Course
from autograder.engine.interface import Execution
from autograder.engine.settings import GradingSettings
from autograder.grading.course_settings import (
    grade_provenance,
)
from autograder.grading.record.executed_notebook import (
    exercise_results,
    no_exercises,
    no_notebook,
    scores_of,
    seconds_of,
    to_decide,
)
from autograder.grading.record.gradebook_writer import GradebookWriter, RecordedGrade, RecordError
from autograder.grading.record.journal import (
    FAILED,
    NO_STATE,
    Journal,
    SubmissionState,
)
from autograder.grading.record.manual_grades import blank_answers, manually_graded_cells, unchanged_cells
from autograder.grading.record.provenance import Provenance
from autograder.grading.record.results import GradeResult, Notebook, QuestionResult, Status, read_result, write_result
from autograder.grading.record.signatures import write_signatures
from autograder.grading.released_points import refuse_other_totals, unscorable
from autograder.grading.submissions import text_hash
from autograder.intake.downloads.journal import OPEN_TIMES, open_times
from autograder.intake.downloads.store import submitted_notebook
from autograder.intake.notebook.manifest import Manifest
from autograder.intake.notebook.problem import Problem, problems_of


@dataclass(frozen=True)
class Recorder:
    """Records the submissions of one run."""

    course: Course
    manifest: Manifest  # the released chapter
    settings: GradingSettings  # the limits, the seed and the device of the run
    books: GradebookWriter  # the gradebook
    journal: Journal  # the chapter's journal
    standings: Mapping[str, SubmissionState]  # each submission's state in the journal before the run
    made_with: Future[Provenance]  # the versions and the machine, which every result names

    def record(self, execution: Execution, digest: str, text: str) -> GradeResult:
        """Record an execution of a submission.

        Args:
            digest: the hash of the submission.
            text: the hash of the text that was to be run.
        """
        student = execution.student
        if execution.failure and not (execution.notebook and self._failed_before(student, digest)):
            return self._failed(student, digest, execution.failure, by_submission=bool(execution.notebook))
        try:
            executed = parsed(execution)
            if text_hash(executed) != text:
                return self._failed(student, digest, "the notebook that was run is not the one that was sent")
            if fault := self._fault(executed):
                return self._failed(student, digest, fault)
            return self._recorded(self._entered(execution, executed, digest), execution.signatures)
        except RecordError as error:
            return self.record_failure_of(student, digest, error)

    def _fault(self, executed: Any) -> str:
        """Return why the tests, and not the submission, keep an executed notebook from being recorded; empty if nothing does.

        Raises:
            CourseError: if a check's total is not its cell's points, which concerns the whole chapter.
        """
        refuse_other_totals(self.course, self.manifest.chapter, executed)
        return unscorable(executed)

    def _failed_before(self, student: str, digest: str) -> bool:
        """Return whether grading the same submission failed in an earlier run because of its contents."""
        return self.standings.get(student, NO_STATE).failed_submission == digest

    def record_failure_of(self, student: str, digest: str, error: RecordError) -> GradeResult:
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

    def _entered(self, execution: Execution, executed: Any, digest: str) -> GradeResult:
        """Write an execution into the gradebook, and return what came of it."""
        student = execution.student
        manual = self._manual_cells(student, executed, digest)
        self.journal.begun(student, digest, manual)
        seconds, blank = seconds_of(executed), blank_answers(self.manifest, executed)
        grades, penalty = self.books.record(student, executed, manual, blank - manual)
        problems = tuple(problems_of(executed))
        points = {name: float(grade.auto_score or 0.0) for name, grade in grades.items()}
        fatal = any(problem.fatal for problem in problems)
        return replace(
            self._result(student, digest, "not gradable" if fatal else "graded"),
            provenance=grade_provenance(self.made_with.result(), execution, ran=not fatal),
            exercises=exercise_results(self.manifest, executed, points, seconds),
            questions=tuple(_questions(self.manifest, grades)),
            problems=problems,
            late_penalty=penalty,
            seconds=round(execution.seconds, 3),
        )

    def _manual_cells(self, student: str, executed: Any, digest: str) -> frozenset[str]:
        """Return the cells whose points are a person's and stay so: the person has seen what there is to see now."""
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
        return manual & unchanged_cells(self.manifest, graded, executed)

    def record_undecided(self, student: str, digest: str, executions: Mapping[str, Execution]) -> GradeResult:
        """Say what each of several notebooks would be worth; the gradebook learns of nothing but the student."""
        if failure := next((one.failure for one in executions.values() if one.failure), ""):
            return self._failed(student, digest, failure)
        try:
            executed = {name: parsed(execution) for name, execution in sorted(executions.items())}
        except RecordError as error:
            return self._failed(student, digest, str(error))
        if fault := next(filter(None, map(self._fault, executed.values())), ""):
            return self._failed(student, digest, fault)
        notebooks = tuple(self._worth(name, notebook) for name, notebook in executed.items())
        self.journal.begun(student, digest)
        with self.books.gradebook() as gradebook:
            gradebook.update_or_create_student(student)
            gradebook.db.commit()
        problem = to_decide(self.course, student, self.manifest.chapter, notebooks)
        result = self._result(student, digest, "to decide")
        return self._recorded(replace(result, notebooks=notebooks, problems=(problem,)))

    def _worth(self, file: str, notebook: Any) -> Notebook:
        exercises = exercise_results(self.manifest, notebook, scores_of(notebook), {})
        return Notebook(file, sum(e.score for e in exercises), sum(e.max_score for e in exercises))

    def record_without_notebook(self, student: str, digest: str) -> GradeResult:
        self.journal.begun(student, digest)
        self.books.record_zero(student)
        problem = no_notebook(submitted_notebook(self.course, self.manifest.chapter, student).parent)
        nothing = no_exercises(self.manifest, problem.what)
        result = self._result(student, digest, "not gradable")
        return self._recorded(replace(result, exercises=nothing, problems=(problem,)))

    def record_unsafe_name(self, student: str, digest: str) -> GradeResult:
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
        result = self.with_present_times(result)
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

    def with_present_times(self, result: GradeResult) -> GradeResult:
        """Return a result with the problems that leave open how late its submission is now; a stored result is written again."""
        others = [problem for problem in result.problems if problem.kind not in OPEN_TIMES]
        times = open_times(self.course, self.manifest.chapter, [result.student], self._plan)
        problems = (*others, *times.values())
        if problems == result.problems:
            return result
        result = replace(result, problems=problems)
        if result.unchanged:
            write_result(self.course, result)
        return result

    @cached_property
    def _plan(self) -> CourseFile:
        return read_course_file(self.course.root)


def parsed(execution: Execution) -> Any:
    """Return the notebook of an execution.

    Raises:
        RecordError: if it is not a notebook, for instance because it is truncated.
    """
    try:
        return reader.reads(execution.notebook)
    except ValueError as error:
        raise RecordError.of(error) from error


def _questions(manifest: Manifest, grades: Mapping[str, RecordedGrade]) -> Iterator[QuestionResult]:
    for source_cell in manifest.cells:
        if source_cell.is_answer or source_cell.task:
            grade = grades[source_cell.name]
            yield QuestionResult(source_cell.name, grade.max_score, answered=grade.auto_score is None)
