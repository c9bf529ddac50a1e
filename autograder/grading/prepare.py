"""Prepare a chapter's submissions for grading: read and sanitise the notebooks, and record the submissions that need no run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import MissingEntry

from autograder.course.known_errors import explained_for_all
from autograder.engine.interface import Submission
from autograder.errors import CourseError
from autograder.grading.record.executed_notebook import (
    exercise_of,
)
from autograder.grading.record.gradebook_writer import RecordError
from autograder.grading.record.journal import (
    NO_STATE,
    RECORDED,
)
from autograder.grading.record.results import GradeResult, read_result
from autograder.grading.recorder import Recorder
from autograder.grading.submissions import files_of, submission, submission_hash
from autograder.intake.downloads.choices import undecided_notebooks
from autograder.intake.downloads.store import submitted_notebook
from autograder.intake.roster import is_safe

# Stands for the hash of what a student has handed in until it has been read, and where it cannot be.
_UNREADABLE = "unreadable"


@dataclass
class Ready:
    """The state of a run's submissions before any of them runs."""

    hashes: dict[str, str] = field(default_factory=dict)  # the hash of each submission that was read
    texts: dict[str, str] = field(default_factory=dict)  # the hash of the text that each submission is run with
    early: list[GradeResult] = field(default_factory=list)  # results of submissions that need not run
    # the notebooks of students who have handed in several
    several: dict[str, list[Submission]] = field(default_factory=dict)


@dataclass(frozen=True)
class Preparation:
    """Prepares the submissions of one run."""

    recorder: Recorder  # records submissions that are answered without a run
    force: bool  # also run unchanged submissions again

    def submissions(self, students: Sequence[str], ready: Ready) -> Iterator[Submission]:
        """Yield what has to be run; keep the results of all others, and what is to be run with a shared allowance, for later."""
        for student in students:
            ready.hashes[student] = _UNREADABLE
            try:
                submissions = self._prepared(student, ready)
            except CourseError:
                raise
            except Exception as error:  # one student's files must not keep the others from being graded
                if explained_for_all(error) is not None:
                    raise
                failure = RecordError.of(error)
                ready.early.append(self.recorder.record_failure_of(student, ready.hashes[student], failure))
                continue
            if len(submissions) > 1:
                ready.several[student] = submissions
            else:
                yield from submissions

    def _prepared(self, student: str, ready: Ready) -> list[Submission]:
        """Return what has to be run of a student; put the result into ``ready`` where nothing has."""
        path, manifest = self._notebook(student), self.recorder.manifest
        companions = files_of(self.recorder.course, manifest.chapter, path)
        digest = ready.hashes[student] = submission_hash(path, companions.files)
        if not is_safe(student):
            ready.early.append(self.recorder.record_unsafe_name(student, digest))
        elif not self.force and (stored := self._unchanged(student, digest)):
            ready.early.append(stored)
        elif several := undecided_notebooks(path.parent, manifest.chapter):
            return [submission(f"{student}/{name}", path.with_name(name), manifest, companions)[0] for name in several]
        elif not path.is_file():
            ready.early.append(self.recorder.record_without_notebook(student, digest))
        else:
            prepared, ready.texts[student] = submission(student, path, manifest, companions)
            return [prepared]
        return []

    def _notebook(self, student: str) -> Path:
        return submitted_notebook(self.recorder.course, self.recorder.manifest.chapter, student)

    def _unchanged(self, student: str, digest: str) -> GradeResult | None:
        if self.recorder.standings.get(student, NO_STATE).last_event != RECORDED:
            return None
        stored = read_result(self.recorder.course, self.recorder.manifest.chapter, student)
        if stored is None or stored.status == "not recorded":
            return None
        same = stored.submission == digest and stored.source == self.recorder.manifest.digest
        same_way = stored.device == self.recorder.settings.device and stored.seed == self.recorder.settings.seed
        if stored.status == "to decide":
            return self.recorder.with_present_times(stored) if same and same_way else None
        # Where no notebook was handed in there is none that was graded.
        graded = self.recorder.course.folder("autograded", student, self.recorder.manifest.chapter).is_dir()
        complete = graded or not self._notebook(student).is_file() or stored.status == "not gradable"
        return (
            self.recorder.with_present_times(stored)
            if same and same_way and complete and self._is_in_books(stored)
            else None
        )

    def _is_in_books(self, stored: GradeResult) -> bool:
        """Return whether the gradebook has a result's points and time: it may have been recreated, and a time may come later."""
        try:
            grades, _ = self.recorder.books.grades(stored.student)
            if not self.recorder.books.has_time(stored.student):
                return False
        except MissingEntry:
            return False
        points = {exercise_of(name): grade.auto_score for name, grade in grades.items()}
        return all(points.get(exercise.name) == exercise.score for exercise in stored.exercises)
