"""Grading a chapter: every submission gets a grade or a named problem, and none stops the others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat

from autograder.checking.verdict import VERDICT_MIME, Verdict
from autograder.course import Course
from autograder.errors import CourseError
from autograder.grading.execute import KernelExecutor
from autograder.grading.execution import Execution, Executor, Submission
from autograder.grading.intake import problems_of
from autograder.grading.kernel import KernelExecute
from autograder.grading.manifest import Manifest, released_manifest
from autograder.grading.pool import run_all
from autograder.grading.problem import Problem
from autograder.grading.record import Books, RecordedGrade, RecordError
from autograder.grading.results import ExerciseResult, GradeResult, QuestionResult, Status, read_result, write_result
from autograder.grading.roster import gradebook_names, is_safe
from autograder.grading.settings import GradingSettings, resolve_device

Progress = Callable[[GradeResult], None]
MakeExecutor = Callable[[GradingSettings], Executor]


def autograde(
    course: Course,
    chapter: str,
    *,
    students: Sequence[str] | None = None,
    jobs: int = 1,
    device: str = "auto",
    force: bool = False,
    progress: Progress = lambda result: None,
    settings: GradingSettings | None = None,
    make_executor: MakeExecutor = KernelExecutor,
) -> list[GradeResult]:
    """Grade the submissions of a chapter.

    Args:
        course: the course, with the chapter released and its submissions under ``submitted/``.
        chapter: the chapter's name.
        students: whose submissions; by default everybody's.
        jobs: how many submissions run at once.
        device: where the checks put their tensors: ``"cpu"``, ``"cuda"``, or ``"auto"``: CUDA where there is one.
        force: grade again what has not changed.
        progress: is told each result as it comes in, in no particular order.
        settings: limits and seed; by default those of the course's ``nbgrader_config.py``. Jobs and device are taken from above.
        make_executor: makes what runs the submissions.

    Returns:
        One result per submission, ordered by student. The same seed gives the same grades with any number of jobs.

    Raises:
        CourseError: if the chapter is not released, there is nothing to grade, or the device is not there.
    """
    if jobs < 1:
        raise CourseError(f"{jobs} jobs cannot grade anything", do="Use --jobs 1 or more.")
    limits = settings or configured_settings(course)
    run = _Run(
        course, released_manifest(course, chapter), replace(limits, jobs=jobs, device=resolve_device(device)), force
    )
    there = submitted_students(course, chapter)
    wanted = there if students is None else sorted(set(students))
    if strangers := sorted(set(wanted) - set(there)):
        raise CourseError(
            f"there is no submission for {chapter} by {', '.join(strangers)}",
            where=course.folder("submitted"),
            do=f"A submission is a folder submitted/STUDENT/{chapter}. Is the id spelled as the folder is?",
        )
    if not wanted:
        raise CourseError(
            f"there is no submission for {chapter}",
            where=course.folder("submitted"),
            do=f"Put notebooks into submitted/STUDENT/{chapter}/, or bring them in with --submissions FOLDER_OR_ZIP.",
        )
    results = []
    for result in run.results(wanted, make_executor):
        progress(result)
        results.append(result)
    run.books.name_students(gradebook_names(course, wanted))
    return sorted(results, key=lambda result: result.student)


def submitted_students(course: Course, chapter: str) -> list[str]:
    """Return who has handed something in for a chapter, in order."""
    return sorted(path.parent.name for path in course.folder("submitted").glob(f"*/{chapter}") if path.is_dir())


def configured_settings(course: Course) -> GradingSettings:
    """Return the limits that the course's ``nbgrader_config.py`` sets, which are those of plain ``nbgrader autograde``."""
    kernel = KernelExecute(config=course.config())
    return GradingSettings(
        seed=kernel.seed,
        cell_seconds=kernel.timeout,
        submission_seconds=kernel.submission_timeout,
        kept_output=kernel.kept_output,
        flood_output=kernel.flood_output,
        restarts=kernel.restarts,
    )


@dataclass(frozen=True)
class _Run:
    course: Course
    manifest: Manifest
    settings: GradingSettings
    force: bool

    @property
    def books(self) -> Books:
        return Books(self.course, self.manifest.chapter)

    def results(self, students: Sequence[str], make_executor: MakeExecutor) -> Iterator[GradeResult]:
        """Yield results as they come in; what needs no kernel is told while others run."""
        hashes = {student: _hash(self._notebook(student)) for student in students}
        early: list[GradeResult] = []
        submissions = self._submissions(hashes, early)
        for execution in run_all(make_executor(self.settings), submissions, jobs=self.settings.jobs):
            yield from _taken(early)
            yield self._judged(execution, hashes[execution.student])
        yield from _taken(early)

    def _submissions(self, hashes: Mapping[str, str], early: list[GradeResult]) -> Iterator[Submission]:
        """Yield what has to be run; put the results of all others into ``early``."""
        for student, digest in hashes.items():
            path = self._notebook(student)
            if not is_safe(student):
                early.append(self._unsafe(student, digest))
            elif not self.force and (known := self._unchanged(student, digest)):
                early.append(known)
            elif not path.is_file():
                early.append(self._without_notebook(student, digest))
            else:
                try:
                    yield Submission(student, self.manifest.chapter, self.books.sanitise(student, path))
                except RecordError as error:
                    early.append(self._failed(student, digest, str(error)))

    def _notebook(self, student: str) -> Path:
        return self.course.folder("submitted", student, self.manifest.chapter) / f"{self.manifest.chapter}.ipynb"

    def _unchanged(self, student: str, digest: str) -> GradeResult | None:
        known = read_result(self.course, self.manifest.chapter, student)
        if known is None or known.status == "not recorded":
            return None
        same = known.submission == digest and known.source == self.manifest.digest
        same_way = known.device == self.settings.device and known.seed == self.settings.seed
        graded = self.course.folder("autograded", student, self.manifest.chapter).is_dir() or not known.exercises
        return known if same and same_way and graded else None

    def _judged(self, execution: Execution, digest: str) -> GradeResult:
        if execution.failure:
            return self._failed(execution.student, digest, execution.failure)
        try:
            notebook = self.books.record(execution.student, execution.notebook)
        except RecordError as error:
            return self._failed(execution.student, digest, str(error))
        grades, penalty = self.books.grades(execution.student)
        problems = tuple(problems_of(notebook))
        times = _seconds(nbformat.reads(execution.notebook, as_version=4))
        result = GradeResult(
            student=execution.student,
            chapter=self.manifest.chapter,
            status="not gradable" if any(problem.fatal for problem in problems) else "graded",
            exercises=tuple(_exercises(self.manifest, notebook, grades, times)),
            questions=tuple(_questions(self.manifest, notebook, grades)),
            problems=problems,
            late_penalty=penalty,
            device=self.settings.device,
            seed=self.settings.seed,
            seconds=round(execution.seconds, 3),
            submission=digest,
            source=self.manifest.digest,
        )
        write_result(self.course, result)
        return result

    def _without_notebook(self, student: str, digest: str) -> GradeResult:
        self.books.record_zero(student)
        chapter = self.manifest.chapter
        what = f"The folder submitted/{student}/{chapter} has no {chapter}.ipynb."
        problem = Problem("no notebook", what, do=f"Rename the notebook to {chapter}.ipynb, or ask for it.", fatal=True)
        nothing = (
            ExerciseResult(cell.name.removeprefix("test_"), 0.0, cell.points, error=what)
            for cell in self.manifest.cells
            if cell.is_test
        )
        return self._written(student, digest, "not gradable", problem, tuple(nothing))

    def _unsafe(self, student: str, digest: str) -> GradeResult:
        do = "Rename the folder: letters, digits, dots, hyphens and underscores."
        problem = Problem("unsafe name", "nbgrader cannot use this student id.", f"submitted/{student}", do, fatal=True)
        return self._written(student, digest, "not recorded", problem)

    def _failed(self, student: str, digest: str, reason: str) -> GradeResult:
        problem = Problem(
            "grader failed", f"It could not be graded: {reason}", do="Grade it again with --force.", fatal=True
        )
        return self._written(student, digest, "not recorded", problem)

    def _written(
        self, student: str, digest: str, status: Status, problem: Problem, exercises: tuple[ExerciseResult, ...] = ()
    ) -> GradeResult:
        result = GradeResult(
            student=student,
            chapter=self.manifest.chapter,
            status=status,
            exercises=exercises,
            problems=(problem,),
            device=self.settings.device,
            seed=self.settings.seed,
            submission=digest,
            source=self.manifest.digest,
        )
        write_result(self.course, result)
        return result


def _taken(results: list[GradeResult]) -> Iterator[GradeResult]:
    while results:
        yield results.pop(0)


def _hash(notebook: Path) -> str:
    """Return a hash of a submission: the notebook, and the time stamp that decides about late penalties."""
    digest = hashlib.sha256()
    for path in (notebook, notebook.with_name("timestamp.txt")):
        data = path.read_bytes() if path.is_file() else b""
        digest.update(len(data).to_bytes(8, "big") + data)
    return digest.hexdigest()


def _exercises(
    manifest: Manifest, notebook: Any, grades: dict[str, RecordedGrade], times: dict[str, float]
) -> Iterator[ExerciseResult]:
    cells = _by_name(notebook)
    for wanted in manifest.cells:
        if wanted.is_test and wanted.name in cells:
            cell = cells[wanted.name]
            verdict, error = _verdict(cell)
            recorded = grades[wanted.name]
            yield ExerciseResult(
                name=wanted.name.removeprefix("test_"),
                score=float(recorded.auto_score or 0.0),
                max_score=recorded.max_score,
                verdict=verdict,
                error=error,
                seconds=times.get(wanted.name, 0.0),
            )


def _questions(manifest: Manifest, notebook: Any, grades: dict[str, RecordedGrade]) -> Iterator[QuestionResult]:
    for wanted in manifest.cells:
        if wanted.is_answer or wanted.task:
            grade = grades[wanted.name]
            answered = grade.auto_score is None
            yield QuestionResult(wanted.name, grade.max_score, answered=answered, pending=grade.needs_manual_grade)


def _by_name(notebook: Any) -> dict[str, Any]:
    return {cell.metadata.nbgrader["grade_id"]: cell for cell in notebook.cells if cell.metadata.get("nbgrader")}


def _verdict(cell: Any) -> tuple[Verdict | None, str]:
    """Return a test cell's verdict, or why there is none."""
    for output in cell.outputs:
        if output.output_type == "error":
            return None, f"{output.ename}: {output.evalue}".strip(": ")
        if output.output_type == "execute_result" and VERDICT_MIME in output.data:
            try:
                return Verdict.from_dict(output.data[VERDICT_MIME]), ""
            except (KeyError, TypeError):
                return None, "The verdict could not be read."
    return None, ""


def _seconds(notebook: Any) -> dict[str, float]:
    """Return how long each named cell ran."""
    found = {}
    for name, cell in _by_name(notebook).items():
        times = cell.metadata.get("execution", {})
        begin, end = times.get("iopub.status.busy"), times.get("shell.execute_reply")
        if begin and end:
            found[name] = round((datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds(), 3)
    return found
