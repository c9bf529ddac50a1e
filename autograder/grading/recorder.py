"""Record the outcomes of submissions in the gradebook, in result files and in the chapter's journal."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from nbgrader.api import Grade, MissingEntry
from sqlalchemy import select
from sqlalchemy.orm import selectinload

from autograder.course.course_file import CourseFile, read_course_file
from autograder.course.folder import Course
from autograder.engine.settings import GradingSettings
from autograder.grading.record.executed_notebook import tested_exercise
from autograder.grading.record.gradebook_writer import GradebookWriter, RecordedGrade, RecordError
from autograder.grading.record.journal import FAILED, NO_STATE, RECORDED, Journal, SubmissionState
from autograder.grading.record.results import GradeResult, QuestionResult, read_result, write_result
from autograder.grading.record.signatures import write_signatures
from autograder.grading.run import Outcome
from autograder.intake.downloads.journal import OPEN_TIMES, find_time_problems
from autograder.intake.downloads.store import submitted_notebook
from autograder.intake.notebook.manifest import Manifest


@dataclass(frozen=True)
class Recorder:
    """Records the outcomes of one run's submissions."""

    course: Course
    manifest: Manifest  # the released chapter
    settings: GradingSettings  # the limits, the seed and the device of the run
    books: GradebookWriter  # the gradebook
    journal: Journal  # the chapter's journal
    standings: Mapping[str, SubmissionState]  # each submission's state in the journal before the run
    force: bool  # whether unchanged submissions run again

    def reusable_result(self, student: str, digest: str) -> GradeResult | None:
        """Return the complete stored result if an unchanged submission was graded in the same way; else None."""
        stored = None if self.force else self._stored_result(student)
        if stored is None or self._journal_state(student).last_event != RECORDED or stored.status == "not recorded":
            return None
        same_way = (stored.device, stored.seed) == (self.settings.device, self.settings.seed)
        if not same_way or (stored.submission, stored.source) != (digest, self.manifest.digest):
            return None
        if stored.status != "to decide" and not (self._is_complete(stored) and self._is_in_gradebook(stored)):
            return None
        return self._refresh_time_problems(stored)

    def _is_complete(self, stored: GradeResult) -> bool:
        """Return whether the graded notebook exists; without a submitted notebook none is expected."""
        chapter = self.manifest.chapter
        graded = self.course.folder("autograded", stored.student, chapter).is_dir()
        handed_in = submitted_notebook(self.course, chapter, stored.student).is_file()
        return graded or not handed_in or stored.status == "not gradable"

    def _is_in_gradebook(self, stored: GradeResult) -> bool:
        """Return whether the gradebook has the result's points and the current submission time."""
        try:
            grades, _ = self.books.grades(stored.student)
            if not self.books.has_current_time(stored.student):
                return False
        except MissingEntry:
            return False
        points = {tested_exercise(name): grade.auto_score for name, grade in grades.items()}
        return all(points.get(exercise.name) == exercise.score for exercise in stored.exercises)

    def has_failed_before(self, student: str, digest: str) -> bool:
        """Return whether grading this submission failed in an earlier run because of its contents."""
        return self._journal_state(student).failed_submission == digest

    def store_outcome(self, outcome: Outcome) -> GradeResult:
        """Record an outcome and return its result. If no notebook is chosen, the gradebook gets only the student."""
        result, notebook = outcome.result, outcome.notebook
        student, digest = result.student, result.submission
        if result.status == "not recorded":
            return self._record_failure(outcome)
        manual = frozenset[str]() if notebook is None else self._manual_cells(student, notebook, digest)
        self.journal.record_begin(student, digest, manual)
        if result.status == "to decide":
            with self.books.gradebook() as gradebook:
                gradebook.update_or_create_student(student)
                gradebook.db.commit()
        elif notebook is None:
            self.books.record_zero(student)
        else:
            blank = blank_answers(self.manifest, notebook)
            grades, penalty = self.books.record(student, notebook, manual, blank - manual)
            result = replace(result, questions=tuple(_question_results(self.manifest, grades)), late_penalty=penalty)
        result = self._refresh_time_problems(result)
        self._write_result(result, outcome.signatures)
        self.journal.record_end(
            student,
            status=result.status,
            score=result.score,
            max_score=result.max_score,
            seconds=result.seconds,
            problems=[problem.kind for problem in result.problems],
        )
        return result

    def _record_failure(self, outcome: Outcome) -> GradeResult:
        """Record that the grader failed, and zero the automatic points of an earlier submission."""
        result, by_submission = outcome.result, outcome.by_submission
        before = self._stored_result(result.student)
        if before is not None and before.submission not in ("", result.submission):
            try:
                self.books.zero_automatic_points(result.student)
            except RecordError:
                # The digest of the file before stays in the result, so that the next run tries again to take its grade back.
                result, by_submission = replace(result, submission=before.submission), False
        self._write_result(result, {})
        (problem,) = result.problems
        failed_submission = result.submission if by_submission else ""
        self.journal.write(FAILED, student=result.student, kind=problem.kind, what=problem.what, lost=failed_submission)
        return result

    def _write_result(self, result: GradeResult, signatures: Mapping[str, Any]) -> None:
        """Write a result and its signatures; if writing signatures fails, answers are grouped by their messages."""
        with suppress(OSError):
            write_signatures(self.course, result.chapter, result.student, result.submission, signatures)
        write_result(self.course, result)

    def _journal_state(self, student: str) -> SubmissionState:
        return self.standings.get(student, NO_STATE)

    def _stored_result(self, student: str) -> GradeResult | None:
        return read_result(self.course, self.manifest.chapter, student)

    def _manual_cells(self, student: str, executed: Any, digest: str) -> frozenset[str]:
        """Return the cells whose manual points stay, because a person has seen their current contents."""
        standing = self._journal_state(student)
        if standing.submission:
            # A recording that was stopped may have left a notebook that nobody has seen: its own note counts.
            return standing.manual_cells if standing.submission == digest else frozenset()
        stored = self._stored_result(student)
        manual = manually_graded_cells(self.books, self.manifest, student)
        # Of what the grader failed on, nobody has seen anything yet.
        if not manual or (stored is not None and stored.status == "graded" and stored.submission == digest):
            return manual
        chapter = self.manifest.chapter
        graded = self.course.folder("autograded", student, chapter) / f"{chapter}.ipynb"
        return manual & unchanged_cells(self.manifest, graded, executed)

    def _refresh_time_problems(self, result: GradeResult) -> GradeResult:
        """Return the result with its submission-time problems updated, and store it again if they changed."""
        others = [problem for problem in result.problems if problem.kind not in OPEN_TIMES]
        times = find_time_problems(self.course, self.manifest.chapter, [result.student], self._plan)
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


def _question_results(manifest: Manifest, grades: Mapping[str, RecordedGrade]) -> Iterator[QuestionResult]:
    for source_cell in manifest.cells:
        if source_cell.is_answer or source_cell.task:
            grade = grades[source_cell.name]
            yield QuestionResult(source_cell.name, grade.max_score, answered=grade.auto_score is None)


def manually_graded_cells(books: GradebookWriter, manifest: Manifest, student: str) -> frozenset[str]:
    """Return a student's manually graded cells, including tests, that need no second look."""
    with books.gradebook() as gradebook:
        try:
            notebook = gradebook.find_submission_notebook(manifest.chapter, manifest.chapter, student)
        except MissingEntry:
            return frozenset()
        grades = gradebook.db.scalars(
            select(Grade).where(Grade.notebook_id == notebook.id).options(selectinload(Grade.cell))
        )
        return frozenset(
            grade.cell.name for grade in grades if grade.manual_score is not None and not grade.needs_manual_grade
        )


def unchanged_cells(manifest: Manifest, graded: Path, executed: Mapping[str, Any]) -> frozenset[str]:
    """Return the graded cells that are unchanged since the earlier graded notebook.

    An answer is the same if its text is. A test depends on all of the student's code, so tests are the same if all texts are; changed
    points of the checks do not affect a manual grade.

    Args:
        manifest: the chapter's cells.
        graded: the earlier graded notebook; it need not exist.
        executed: the executed notebook.
    """
    try:
        before = _read_sources(json.loads(graded.read_text(encoding="utf-8")), manifest)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return frozenset()
    now = _read_sources(executed, manifest)
    same = {name for name, source in now.named.items() if before.named.get(name) == source}
    graded_cells = {cell.name for cell in manifest.cells if cell.grade or cell.task}
    answers = {cell.name for cell in manifest.cells if cell.is_answer}
    return frozenset(graded_cells if before.written == now.written else same & answers)


def blank_answers(manifest: Manifest, executed: Mapping[str, Any]) -> frozenset[str]:
    """Return the answer cells that the student left unchanged; nbgrader gives them 0 points."""
    now = _read_sources(executed, manifest).named
    return frozenset(cell.name for cell in manifest.cells if cell.is_answer and now.get(cell.name) == cell.source)


class _Sources:
    """The sources of a notebook's student cells, in order and by name."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.named: dict[str, str] = {}


def _read_sources(notebook: Mapping[str, Any], manifest: Manifest) -> _Sources:
    sources = _Sources()
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id", "")
        declared = manifest.by_name.get(name)
        if declared is not None and declared.locked:
            continue
        source = cell["source"] if isinstance(cell["source"], str) else "".join(cell["source"])
        sources.written.append(source)
        if name:
            sources.named[name] = source
    return sources
