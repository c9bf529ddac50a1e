"""Regrade submissions after a change of the checks, and report changed scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from autograder.course.folder import Course
from autograder.course.paths import shell_command
from autograder.engine.settings import GradingSettings
from autograder.engine.workers.executor import WorkerPool
from autograder.errors import CourseError, list_first
from autograder.grading.autograde import autograde
from autograder.grading.course_settings import local_provenance, settings_for_release
from autograder.grading.record.journal import NO_STATE, RECORDED, submission_states
from autograder.grading.record.provenance import Provenance
from autograder.grading.record.results import GradeResult, read_results
from autograder.grading.replay import rerun_submissions
from autograder.grading.run import MakeExecutor
from autograder.grading.submissions import read_submitted_companions, submission_hash
from autograder.intake.downloads.store import submitted_notebook
from autograder.intake.notebook.manifest import Manifest, released_manifest

Why = Literal["changed", "gone", "current", "not graded", "to decide"]


_LEFT: dict[Why, str] = {
    "current": "had been graded in just this way",
    "changed": "handed in something else since (tfcourse autograde grades it)",
    "gone": "skipped, because the submission is gone",
    "to decide": "skipped, because no notebook is chosen yet (tfcourse choose)",
    "not graded": "skipped, because the grader had failed (tfcourse autograde tries again)",
}


@dataclass(frozen=True)
class ScoreChange:
    """A student whose points changed."""

    student: str
    before: float  # the old points
    after: float  # the new points
    exercises: tuple[tuple[str, float, float], ...]  # the exercises whose points changed: name, before, after
    best: Mapping[str, float] = field(default_factory=dict, compare=False)  # the points that can be earned, by exercise

    def to_dict(self) -> dict[str, Any]:
        """Return the change as plain data, ready for JSON."""
        exercises = [{"name": name, "before": before, "after": after} for name, before, after in self.exercises]
        return {"student": self.student, "before": self.before, "after": self.after, "exercises": exercises}


@dataclass(frozen=True)
class Selection:
    """The students of a chapter to regrade, and the skipped students."""

    chapter: str
    students: tuple[str, ...]  # their ids, in order
    # the other students, and why: the submission ``"changed"`` or is ``"gone"``, the grade is ``"current"`` or ``"not graded"``, or it is
    # ``"to decide"`` which notebook counts
    skipped: tuple[tuple[str, Why], ...]


@dataclass(frozen=True)
class Regrade:
    """The result of regrading a chapter."""

    chapter: str
    dry_run: bool  # whether nothing was written
    moves: tuple[ScoreChange, ...]  # changed scores, ordered by student
    results: tuple[GradeResult, ...]  # all new grades, ordered by student
    skipped: tuple[tuple[str, Why], ...]  # the other students, and why, as in :class:`Selection`

    @property
    def failed(self) -> list[GradeResult]:
        """The submissions for which the grader failed."""
        return [result for result in self.results if result.status == "not recorded"]

    @property
    def stayed(self) -> int:
        """The number of students whose points are unchanged."""
        return len(self.results) - len(self.moves) - len(self.failed)

    def skip_messages(self) -> Iterator[str]:
        """Yield a phrase with the skipped students for each reason."""
        for why, phrase in _LEFT.items():
            who = [student for student, reason in self.skipped if reason == why]
            if who:
                yield f"{len(who)} {phrase}" + ("" if why == "current" else f": {list_first(who)}")

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data, ready for JSON."""
        return {
            "chapter": self.chapter,
            "dry_run": self.dry_run,
            "moved": [move.to_dict() for move in self.moves],
            "stayed": self.stayed,
            "failed": [result.student for result in self.failed],
            "left": [{"student": student, "why": why} for student, why in self.skipped],
        }


@dataclass(frozen=True)
class OtherRelease:
    """A release of a chapter that is not the course's, for a dry run."""

    manifest: Manifest  # the chapter's cells
    package: str  # the path of the students' package


def select_for_regrade(
    course: Course,
    chapter: str,
    students: Sequence[str] | None,
    settings: GradingSettings,
    release: OtherRelease | None = None,
) -> Selection:
    """Select the students to regrade.

    Args:
        chapter: the chapter's name.
        students: these students in any case; None selects all grades with other checks, another environment, other limits or other cells
            than now.
        settings: the settings of the new run, including the device.
        release: the release to regrade with; by default the course's.

    Raises:
        CourseError: if nothing has been graded, or a student has no grade.
    """
    manifest = release.manifest if release else released_manifest(course, chapter)
    graded = {result.student: result for result in read_results(course, chapter)}
    _refuse_strangers(course, chapter, graded, students)
    settings = _regrade_settings(course, chapter, settings, release)
    chosen, skipped = _select_students(course, manifest, graded, students, settings)
    return Selection(chapter, tuple(chosen), tuple(skipped))


def _regrade_settings(
    course: Course, chapter: str, settings: GradingSettings, release: OtherRelease | None
) -> GradingSettings:
    """Return the settings with the course's seed and the package of a release."""
    settings = settings_for_release(course, chapter, settings)
    return replace(settings, package=release.package) if release else settings


def regrade(
    course: Course,
    chosen: Selection,
    settings: GradingSettings,
    *,
    dry_run: bool = False,
    release: OtherRelease | None = None,
    locked: bool = False,
    progress: Callable[[GradeResult], None] = lambda result: None,
    make_executor: MakeExecutor | None = None,
    workers: WorkerPool | None = None,
) -> Regrade:
    """Regrade the selected students and compare scores. Manual points and comments stay, and need no second look.

    Args:
        chosen: the students.
        settings: the settings of the run, including jobs and device.
        dry_run: compare only, and write nothing.
        release: the release to regrade with in a dry run; by default the course's.
        locked: whether the caller holds the course's lock already.
        progress: called with each result as it arrives.
        make_executor: creates the executors, instead of worker processes.
        workers: running worker processes, which stay.

    Raises:
        CourseError: if somebody else is grading.
    """
    before = {result.student: result for result in read_results(course, chosen.chapter)}
    settings = _regrade_settings(course, chosen.chapter, settings, release)
    results: list[GradeResult] = []
    if chosen.students and dry_run:
        manifest = release.manifest if release else released_manifest(course, chosen.chapter)
        grades = [before[student] for student in chosen.students]
        for result in rerun_submissions(course, manifest, grades, settings, make_executor, workers):
            progress(result)
            results.append(result)
    elif chosen.students:
        results = autograde(
            course,
            chosen.chapter,
            students=chosen.students,
            jobs=settings.jobs,
            device=settings.device,
            force=True,
            locked=locked,
            progress=progress,
            settings=settings,
            make_executor=make_executor,
            workers=workers,
        )
    results.sort(key=lambda result: result.student)
    compared = [result for result in results if result.status != "not recorded"]
    moves = [move for result in compared if (move := _score_change(before[result.student], result))]
    return Regrade(chosen.chapter, dry_run, tuple(moves), tuple(results), chosen.skipped)


def _refuse_strangers(
    course: Course, chapter: str, graded: dict[str, GradeResult], students: Sequence[str] | None
) -> None:
    where, do = course.root / "results" / chapter, f"Grade first: {shell_command(course, 'autograde', chapter)}"
    if not graded:
        raise CourseError(f"nothing has been graded for {chapter}", where=where, do=do)
    if strangers := sorted(set(students or ()) - set(graded)):
        raise CourseError(f"there is no grade for {chapter} of {', '.join(strangers)}", where=where, do=do)


def _select_students(
    course: Course,
    manifest: Manifest,
    graded: dict[str, GradeResult],
    students: Sequence[str] | None,
    settings: GradingSettings,
) -> tuple[list[str], list[tuple[str, Why]]]:
    """Return the students to regrade, and the skipped students with the reasons."""
    now, standing = local_provenance(settings), submission_states(course, manifest.chapter)
    chosen, skipped = [], list[tuple[str, Why]]()
    for student in sorted(set(students) if students is not None else graded):
        grade = graded[student]
        pending = standing.get(student, NO_STATE).last_event != RECORDED
        path = submitted_notebook(course, manifest.chapter, student)
        if not path.parent.is_dir():
            skipped.append((student, "gone"))
        elif grade.status == "to decide":
            skipped.append((student, "to decide"))
        elif grade.status == "not recorded":
            skipped.append((student, "not graded"))
        elif submission_hash(path, read_submitted_companions(course, manifest.chapter, path).files) != grade.submission:
            skipped.append((student, "changed"))
        elif students is None and not pending and _is_current(grade, now, manifest, settings):
            skipped.append((student, "current"))
        else:
            chosen.append(student)
    return chosen, skipped


def _is_current(grade: GradeResult, now: Provenance, manifest: Manifest, settings: GradingSettings) -> bool:
    """Return whether a grade's provenance equals that of a new grade, so that regrading cannot change it."""
    recorded = grade.provenance
    same_code = (recorded.checks, recorded.package) == (now.checks, now.package)
    same_means = same_code and (recorded.environment, recorded.limits) == (now.environment, now.limits)
    return same_means and (grade.source, grade.device, grade.seed) == (manifest.digest, settings.device, settings.seed)


def _score_change(before: GradeResult, after: GradeResult) -> ScoreChange | None:
    exercises = tuple(_changed_exercises(before, after))
    if not exercises and before.score == after.score:
        return None
    best = {exercise.name: exercise.max_score for exercise in after.exercises}
    return ScoreChange(after.student, before.score, after.score, exercises, best)


def _changed_exercises(before: GradeResult, after: GradeResult) -> Iterator[tuple[str, float, float]]:
    old, new = ({exercise.name: exercise.score for exercise in grade.exercises} for grade in (before, after))
    for name in dict.fromkeys((*old, *new)):
        was, now = old.get(name, 0.0), new.get(name, 0.0)
        if was != now:
            yield name, was, now
