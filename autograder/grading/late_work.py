"""Apply the deadlines of ``course.toml`` to nbgrader's due dates, extensions and late penalties.

nbgrader keeps dates in UTC, without a time zone; only :func:`_to_naive_utc` converts them. A chapter without a deadline in
``course.toml`` keeps the due date, extensions and penalties that nbgrader has for it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import AssignLatePenalties, NbGraderPreprocessor
from traitlets.config import Config

from autograder.course.course_file import CourseFile, read_course_file
from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.grading.record.results import read_results, write_result
from autograder.intake.notebook.notebook_reader import UnreadableError
from autograder.intake.notebook.timestamp import plausible_timestamp


class CourseLateness(LateSubmissionPlugin):  # type: ignore[misc]
    """Charges late submissions by the rule of ``course.toml``; without a deadline there, by nbgrader's own plugin."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Return the points to deduct for lateness.

        Args:
            student_id: the student.
            score: points before the penalty.
            total_seconds_late: time after the student's own deadline.
        """
        plan, chapter = read_course_file(_course_root(self.parent)), self.parent.assignment_id
        due = plan.due(chapter, student_id)
        if due is None:
            inherited: float | None = super().late_submission_penalty(student_id, score, total_seconds_late)
            return inherited
        return plan.late_penalty(
            chapter, student_id, score, due.astimezone(UTC) + timedelta(seconds=total_seconds_late)
        )


class ApplyDeadline(NbGraderPreprocessor):  # type: ignore[misc]
    """Writes a student's deadline and submission time to the gradebook before nbgrader's ``AssignLatePenalties`` runs.

    nbgrader reads ``timestamp.txt`` with other rules (month first, unknown zones as UTC), and keeps an earlier time if there is no file.
    """

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Write the submission time, the deadline and the extension to the gradebook; return the notebook unchanged."""
        metadata = resources["nbgrader"]
        chapter, student = metadata["assignment"], metadata["student"]
        folder = _find_coursedir(self)
        plan = read_course_file(Path(folder.root))
        due = _to_naive_utc(plan.due(chapter))
        with Gradebook(metadata["db_url"]) as gradebook:
            submission = gradebook.find_submission(chapter, student)
            submission.timestamp = _read_time(
                Path(folder.format_path(folder.submitted_directory, student, chapter)), plan
            )
            if due is not None:
                gradebook.find_assignment(chapter).duedate = due
                submission.extension = _compute_extension(plan, chapter, student)
            gradebook.db.commit()
        return nb, resources


@dataclass(frozen=True)
class _SubmissionUpdate:
    """An outdated gradebook entry: the values that one submission should have."""

    student: str
    handed_in: datetime | None
    extension: timedelta | None
    penalty: float | None


def stale_penalties(course: Course, chapter: str, config: Config) -> list[str]:
    """Return the students whose penalty or extension differs from ``course.toml`` and their points, writing nothing.

    Args:
        config: nbgrader's configuration of the course.
    """
    plan = read_course_file(course.root)
    if plan.due(chapter) is None:
        return []
    with open_gradebook(course) as gradebook:
        return [change.student for change in _find_updates(gradebook, course, chapter, config)]


def are_penalties_stale(course: Course, chapter: str, config: Config) -> bool:
    """Return whether a chapter's due date, or a value derived from it, differs from ``course.toml``."""
    due = _to_naive_utc(read_course_file(course.root).due(chapter))
    if due is None:
        return False
    with open_gradebook(course) as gradebook:
        moved = bool(gradebook.find_assignment(chapter).duedate != due)
    return moved or bool(stale_penalties(course, chapter, config))


def update_penalties(
    course: Course, chapter: str, config: Config, opened: AbstractContextManager[Gradebook]
) -> list[str]:
    """Update a chapter's due date, extensions and penalties in the gradebook, without running submissions.

    The deadline, an extension, the rule or manual points may have changed since the chapter was graded.

    Args:
        config: nbgrader's configuration of the course.
        opened: opens the gradebook, and writes what was committed.

    Returns:
        The students whose penalty or extension changed.
    """
    if read_course_file(course.root).due(chapter) is None:
        return []
    with opened as gradebook:
        changed = write_penalties(gradebook, course, chapter, None, config)
        penalties = {one.student_id: _recorded_penalty(one) for one in gradebook.assignment_submissions(chapter)}
    # A mark that was given on the marking page has changed the gradebook and left the results to the next run.
    outdated = [
        result
        for result in read_results(course, chapter)
        if not math.isclose(penalties.get(result.student, result.late_penalty), result.late_penalty, abs_tol=1e-9)
    ]
    for result in outdated:
        write_result(course, replace(result, late_penalty=penalties[result.student]))
    return sorted({*changed, *(result.student for result in outdated)})


def charge_students(
    gradebook: Gradebook, course: Course, chapter: str, students: Sequence[str], config: Config
) -> None:
    """Update the penalties of some students in the gradebook after a person has changed their points.

    The course is not locked, so that people can mark while others grade. Only the gradebook changes; the next ``tfcourse autograde``
    brings the files in ``results/`` up to date.

    Args:
        gradebook: the course's gradebook.
        course: the course.
        chapter: the chapter's full name.
        students: the students with changed points.
        config: nbgrader's configuration of the course.

    Raises:
        CourseError: if ``course.toml`` cannot be read.
    """
    if read_course_file(course.root).due(chapter) is not None:
        write_penalties(gradebook, course, chapter, students, config)


def write_penalties(
    gradebook: Gradebook, course: Course, chapter: str, students: Sequence[str] | None, config: Config
) -> list[str]:
    """Write due date, times, extensions and penalties to the gradebook; return the students whose values changed."""
    due = _to_naive_utc(read_course_file(course.root).due(chapter))
    if due is not None:
        gradebook.find_assignment(chapter).duedate = due
    changes = list(_find_updates(gradebook, course, chapter, config, students))
    for change in changes:
        submission = gradebook.find_submission(chapter, change.student)
        submission.timestamp, submission.extension = change.handed_in, change.extension
        notebook = gradebook.find_submission_notebook(chapter, chapter, change.student)
        notebook.late_submission_penalty = change.penalty
    gradebook.db.commit()
    return [change.student for change in changes]


def _recorded_penalty(submission: Any) -> float:
    """Return a submission's penalty in the gradebook."""
    return float(submission.late_submission_penalty or 0.0)


def _find_updates(
    gradebook: Gradebook, course: Course, chapter: str, config: Config, students: Sequence[str] | None = None
) -> Iterator[_SubmissionUpdate]:
    plan = read_course_file(course.root)
    step = penalty_step(config, chapter)
    submissions = (
        gradebook.assignment_submissions(chapter)
        if students is None
        else [gradebook.find_submission(chapter, student) for student in students]
    )
    for submission in submissions:
        student = submission.student_id
        notebook = next((one for one in submission.notebooks if one.name == chapter), None)
        if notebook is None:
            continue
        planned = _to_naive_utc(plan.due(chapter, student))
        # Without a deadline in the plan, nbgrader's due date and extension count.
        extension = submission.extension if planned is None else _compute_extension(plan, chapter, student)
        # What was handed in may be kept elsewhere by now.
        folder = course.folder("submitted", student, chapter)
        handed_in = _read_time(folder, plan) if folder.is_dir() else submission.timestamp
        penalty = _compute_penalty(step, student, notebook.score, handed_in, planned or submission.duedate)
        # A database may add up the points in another order, which is no change.
        same = math.isclose(penalty or 0.0, notebook.late_submission_penalty or 0.0, abs_tol=1e-9)
        if extension != submission.extension or handed_in != submission.timestamp or not same:
            yield _SubmissionUpdate(student, handed_in, extension, penalty)


def penalty_step(config: Config, chapter: str) -> AssignLatePenalties:
    """Return nbgrader's step for late penalties, with the lecturer's own rule if one is configured."""
    step = AssignLatePenalties(config=config)
    step.assignment_id = chapter
    step.init_plugin()
    return step


def _compute_penalty(
    step: Any, student: str, score: float, handed_in: datetime | None, due: datetime | None
) -> float | None:
    """Compute the penalty as nbgrader's ``AssignLatePenalties`` does."""
    late = (handed_in - due).total_seconds() if handed_in is not None and due is not None else 0.0
    penalty = step.plugin_inst.late_submission_penalty(student, score, late) if late > 0 else None
    return None if penalty is None else min(max(0.0, penalty), score)


def _compute_extension(plan: CourseFile, chapter: str, student: str) -> timedelta | None:
    """Return a student's deadline minus the chapter's; None if they are equal.

    Earlier deadlines give negative values.
    """
    general, individual = _to_naive_utc(plan.due(chapter)), _to_naive_utc(plan.due(chapter, student))
    return individual - general if general is not None and individual is not None and individual != general else None


def _to_naive_utc(moment: datetime | None) -> datetime | None:
    """Convert a time to nbgrader's form: UTC, without a time zone."""
    return None if moment is None else moment.astimezone(UTC).replace(tzinfo=None)


def read_submission_time(course: Course, chapter: str, student: str) -> datetime | None:
    """Return a submission's time from ``timestamp.txt``; None if it is unknown or implausible."""
    return _read_time(course.folder("submitted", student, chapter), read_course_file(course.root))


def _read_time(folder: Path, plan: CourseFile) -> datetime | None:
    try:
        return plausible_timestamp(folder, plan)
    except UnreadableError:
        return None  # grading names it


def _course_root(step: Any) -> Path:
    """Return the path of the course folder of an nbgrader step."""
    return Path(_find_coursedir(step).root)


def _find_coursedir(step: Any) -> Any:
    """Return nbgrader's CourseDirectory of one of its steps."""
    coursedir, above = None, step
    while coursedir is None and above is not None:
        coursedir, above = getattr(above, "coursedir", None), getattr(above, "parent", None)
    return coursedir or CourseDirectory(config=step.config)
