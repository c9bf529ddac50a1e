"""Reproduce a recorded grade without writing anything, and report differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from autograder.checking.verdict import Verdict
from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.engine.settings import GradingSettings, resolve_device
from autograder.engine.workers.executor import WorkerPool
from autograder.errors import CourseError
from autograder.grading.course_settings import local_provenance, settings_for_release
from autograder.grading.feedback.pages import KIND as NO_FEEDBACK
from autograder.grading.feedback.pages import PLAIN
from autograder.grading.record.results import ExerciseResult, GradeResult, read_result
from autograder.grading.run import Judge, MakeExecutor, Outcome, Run
from autograder.intake.downloads.journal import OPEN_TIMES
from autograder.intake.notebook.manifest import Manifest, released_manifest

# The kinds of problems that running a submission again does not find.
_NOT_GRADED = frozenset({NO_FEEDBACK, PLAIN, *OPEN_TIMES})


@dataclass(frozen=True)
class Replay:
    """A recorded grade and its reproduction."""

    recorded: GradeResult  # the recorded grade
    again: GradeResult  # the new grade
    differences: tuple[str, ...]  # differences between the two, as sentences
    changes: tuple[str, ...]  # changes of the provenance, as sentences; they alone make no different grade

    @property
    def is_same(self) -> bool:
        """Whether the reproduced grade is the same."""
        return not self.differences

    def to_dict(self) -> dict[str, Any]:
        """Return the replay as plain data, ready for JSON."""
        return {
            "student": self.recorded.student,
            "chapter": self.recorded.chapter,
            "same": self.is_same,
            "score": self.recorded.score,
            "score_again": self.again.score,
            "max_score": self.recorded.max_score,
            "differences": list(self.differences),
            "changes": list(self.changes),
            "recorded": self.recorded.to_dict(),
            "again": self.again.to_dict(),
        }


def replay(course: Course, chapter: str, student: str, *, make_executor: MakeExecutor | None = None) -> Replay:
    """Reproduce a grade with its recorded seed, device and limits.

    Args:
        chapter: the chapter's name.
        make_executor: creates the executor.

    Raises:
        CourseError: if there is no such grade, or its device is not available.
    """
    manifest = released_manifest(course, chapter)
    recorded = read_result(course, chapter, student)
    if recorded is None or recorded.status == "not recorded":
        folder, grade = course.folder("submitted", student, chapter), shell_command(course, "autograde", chapter)
        absent = f"There is no {folder}: is the id spelled as the folder is? Once it is there: {grade}"
        raise CourseError(
            f"there is no grade of {student} for {chapter}" + (": the grader failed" if recorded else ""),
            where=course.root / "results" / chapter,
            do=f"Grade it first: {grade}" if folder.is_dir() else absent,
        )
    folder = course.folder("submitted", student, chapter)
    if not folder.is_dir():
        do = "Put it back: without it, the grade cannot be made again."
        raise CourseError(f"what {student} handed in for {chapter} is gone", where=folder, do=do)
    settings = settings_for_release(course, chapter, _recorded_settings(recorded))
    (again,) = rerun_submissions(course, manifest, [recorded], settings, make_executor)
    changes = recorded.provenance.differences(again.provenance)
    return Replay(recorded, again, tuple(list_grade_differences(recorded, again)), tuple(changes))


def _recorded_settings(recorded: GradeResult) -> GradingSettings:
    """Return the grade's recorded settings, without limits that no longer exist."""
    names = {field.name for field in fields(GradingSettings)}
    limits = {name: value for name, value in recorded.provenance.limits.items() if name in names}
    # The changes report a weaker isolation; it does not prevent the replay.
    device = resolve_device(recorded.device)
    return replace(GradingSettings(), **{**limits, "device": device, "seed": recorded.seed, "allow_weaker": True})


def rerun_submissions(
    course: Course,
    manifest: Manifest,
    grades: Sequence[GradeResult],
    settings: GradingSettings,
    make_executor: MakeExecutor | None = None,
    workers: WorkerPool | None = None,
) -> Iterator[GradeResult]:
    """Rerun graded submissions and yield the new grades, writing nothing.

    Args:
        manifest: the chapter's cells, which may differ from the gradebook's.
        grades: the recorded grades, from which questions and late penalties are copied.
        settings: the settings of the run.
        make_executor: creates the executors, instead of worker processes.
        workers: running worker processes, which stay.
    """
    made_with = local_provenance(settings)
    judge = Judge(course, manifest, settings, lambda: made_with)
    recorded = {grade.student: grade for grade in grades}
    yield from Run(judge, _ComparisonSink(recorded)).results(list(recorded), make_executor, workers)


@dataclass(frozen=True)
class _ComparisonSink:
    """A sink that stores nothing, and copies values that only the gradebook has from the recorded grade."""

    recorded: Mapping[str, GradeResult]

    def reusable_result(self, student: str, digest: str) -> GradeResult | None:
        return None

    def has_failed_before(self, student: str, digest: str) -> bool:
        return self.recorded[student].status == "not gradable"

    def store_outcome(self, outcome: Outcome) -> GradeResult:
        recorded = self.recorded[outcome.result.student]
        return replace(outcome.result, questions=recorded.questions, late_penalty=recorded.late_penalty)


def list_grade_differences(before: GradeResult, after: GradeResult) -> Iterator[str]:
    """Yield the differences between two grades of a submission, as sentences, without their provenance."""
    if before.submission != after.submission:
        yield "The submission has changed since it was graded."
    if before.source != after.source:
        yield "The chapter's cells have changed since it was graded."
    if before.status != after.status:
        yield f"It was {before.status}, it is {after.status}."
    olds, news = ({exercise.name: exercise for exercise in grade.exercises} for grade in (before, after))
    for name in dict.fromkeys((*olds, *news)):
        yield from _exercise_differences(name, olds.get(name), news.get(name))
    old, new = ({str(p) for p in grade.problems if p.kind not in _NOT_GRADED} for grade in (before, after))
    yield from (f"This problem is gone: {problem}" for problem in sorted(old - new))
    yield from (f"This problem is new: {problem}" for problem in sorted(new - old))


def _exercise_differences(name: str, old: ExerciseResult | None, new: ExerciseResult | None) -> Iterator[str]:
    if old is None or new is None:
        yield f"{name}: it was {'not ' * (old is None)}there, it is {'not ' * (new is None)}there."
        return
    if old.score != new.score:
        yield f"{name}: {old.score:g} points, now {new.score:g}."
    if old.max_score != new.max_score:
        yield f"{name}: it was worth {old.max_score:g} points, now {new.max_score:g}."
    if old.error != new.error:
        yield f"{name}: {_quote_error(old.error)}, now {_quote_error(new.error)}."
    yield from (f"{name}, {change}" for change in _verdict_differences(old.verdict, new.verdict))


def _quote_error(error: str) -> str:
    return f"“{error}”" if error else "no error"


def _verdict_differences(old: Verdict | None, new: Verdict | None) -> Iterator[str]:
    if old is None or new is None:
        if old != new:
            yield f"verdict: {'none' if old is None else 'there'}, now {'none' if new is None else 'there'}."
        return
    olds, news = ({finding.aspect: finding for finding in verdict.findings} for verdict in (old, new))
    for aspect in dict.fromkeys((*olds, *news)):
        before, after = olds.get(aspect), news.get(aspect)
        if before != after:
            outcomes = [("absent" if f is None else "passed" if f.passed else f.message) for f in (before, after)]
            yield (f"{aspect}: {outcomes[0]} → {outcomes[1]}" if outcomes[0] != outcomes[1] else f"{aspect}: reworded.")
