"""Run a chapter's submissions: the one way of grading, of grading again and of comparing. A sink keeps what comes of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from autograder.course.known_errors import explained_for_all
from autograder.engine.interface import Execution, Submission
from autograder.engine.workers.executor import WorkerPool
from autograder.errors import CourseError
from autograder.grading.dispatch import MakeExecutor, executions
from autograder.grading.outcome import Judge, Outcome
from autograder.grading.record.gradebook_writer import RecordError
from autograder.grading.record.results import GradeResult
from autograder.grading.submissions import files_of, submission, submission_hash
from autograder.intake.downloads.choices import undecided_notebooks
from autograder.intake.downloads.store import submitted_notebook
from autograder.intake.roster import is_safe

_FailedBefore = Callable[[str, str], bool]
# Stands for the hash of what a student has handed in until it has been read, and where it cannot be.
_UNREADABLE = "unreadable"


class Sink(Protocol):
    """Keeps what comes of submissions."""

    def known(self, student: str, digest: str) -> GradeResult | None:
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
                yield self._kept(execution.student, partial(self._executed, execution), again)
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
                        yield self._kept(student, undecided, lambda student, digest: False)

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
        if known := self.sink.known(student, digest):
            return known
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

    def _kept(self, student: str, judged: Callable[[], Outcome], again: _FailedBefore) -> GradeResult:
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
            return self.sink.keep(self.judge.failure(student, digest, unkept, again=False))
