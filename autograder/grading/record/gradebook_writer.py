"""Write grades to nbgrader's gradebook, one transaction per submission, with the rows of ``nbgrader autograde``."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat import validate
from nbformat.v4.rwbase import strip_transient
from nbgrader.api import BaseCell, Comment, Grade, InvalidEntry, MissingEntry, Student
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import IgnorePattern, LimitOutput
from nbgrader.utils import compute_checksum, determine_grade, is_grade, is_solution, is_task
from sqlalchemy import select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from traitlets.config import Config

from autograder.course.folder import CONFIG_NAME, Course
from autograder.course.gradebook.nbgrader_log import silence_warnings
from autograder.course.gradebook.reader import sqlite_file
from autograder.course.gradebook.transactions import TransactionalGradebook
from autograder.course.known_errors import explain_general_error
from autograder.course.lock import course_lock
from autograder.errors import CourseError
from autograder.grading.late_work import (
    are_penalties_stale,
    penalty_step,
    read_submission_time,
    update_penalties,
    write_penalties,
)
from autograder.grading.record.results import dumps_by_line
from autograder.intake.notebook.attached_files import MAX_FILES, list_companion_paths

# Databases limit the number of values in a query.
_AT_ONCE = 500


class RecordError(Exception):
    """A submission could not be graded or recorded.

    Args:
        reason: the cause.
        by_submission: whether the submission's contents may be the cause. A locked database or a full disk is not.
    """

    def __init__(self, reason: str, *, by_submission: bool = False) -> None:
        self.by_submission = by_submission
        super().__init__(reason)

    @classmethod
    def from_exception(cls, error: Exception) -> RecordError:
        """Convert an exception that one submission raised."""
        if isinstance(error, cls):
            return error
        return cls(f"{type(error).__name__}: {error}", by_submission=not isinstance(error, _OF_THE_MACHINE))


# Exceptions that the submission's contents cannot cause.
_OF_THE_MACHINE = (SQLAlchemyError, InvalidEntry, OSError, MemoryError)


@dataclass(frozen=True)
class RecordedGrade:
    """The grade of one cell in the gradebook."""

    auto_score: float | None  # points from the autograder; None if a person must grade
    max_score: float  # the most points
    needs_manual_grade: bool  # whether a person must grade


@dataclass(frozen=True)
class GradebookWriter:
    """Writes to a course's gradebook, which only one process may have open.

    The database is opened on first use and stays open until :meth:`close`, so one object should serve a whole run. As a
    context manager it closes itself.
    """

    course: Course
    chapter: str  # the chapter that is graded
    config: Config = field(repr=False, compare=False)  # nbgrader's configuration

    def __enter__(self) -> GradebookWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database. Later calls open it again."""
        shared: TransactionalGradebook | None = self.__dict__.pop("_shared", None)
        if shared is not None:
            shared.dispose()

    @cached_property
    def _shared(self) -> TransactionalGradebook:
        with silence_warnings():
            return TransactionalGradebook(
                self.course.gradebook_url, str(self.config.CourseDirectory.get("course_id", ""))
            )

    @cached_property
    def _converter(self) -> Autograde:
        """The Autograde converter of nbgrader, for its settings of files and their permissions."""
        directory = CourseDirectory(config=self.config, assignment_id=self.chapter)
        return Autograde(coursedir=directory, config=self.config)

    @cached_property
    def _steps(self) -> tuple[Any, ...]:
        """The nbgrader preprocessors between execution and gradebook, as the course configures them."""
        return tuple(step(config=self.config) for step in (IgnorePattern, ClearMetadataPreprocessor, LimitOutput))

    def refuse_unusable_configuration(self) -> None:
        """Instantiate the configured classes once, because a failure would occur for every submission.

        Raises:
            CourseError: if a step, or the class for late penalties, cannot be imported or instantiated.
        """
        try:
            _ = self._steps, self._converter, penalty_step(self.config, self.chapter)
        except Exception as error:
            message = f"a step of nbgrader's cannot be used as this configures it ({type(error).__name__}: {error})"
            do = f"Fix the class named above, or {CONFIG_NAME}."
            raise CourseError(message, where=self.course.root / CONFIG_NAME, do=do) from error

    @contextmanager
    def gradebook(self) -> Iterator[TransactionalGradebook]:
        """Yield the gradebook. Commits in the block are written at its end, all or none.

        Raises:
            RecordError: if the database fails.
            CourseError: if the disk cannot be written, or the gradebook is damaged.
        """
        try:
            with silence_warnings(), self._shared as gradebook:
                yield gradebook
        except (SQLAlchemyError, InvalidEntry) as error:
            raise self._convert_error(error) from error

    def _convert_error(self, error: Exception) -> RecordError | CourseError:
        """Convert an exception to an error that concerns this submission, or one that concerns them all."""
        where = sqlite_file(make_url(self.course.gradebook_url)) or self.course.root
        return explain_general_error(error, where) or RecordError.from_exception(error)

    def record(
        self, student: str, notebook: Any, manual: Collection[str] = (), emptied: Collection[str] = ()
    ) -> tuple[dict[str, RecordedGrade], float]:
        """Record an executed notebook in the gradebook, and write it to ``autograded/``.

        Args:
            notebook: the parsed notebook; it is changed as nbgrader's steps between the run and the gradebook change it.
            manual: manually graded cells that need no second look, although nbgrader requires one.
            emptied: answers that are blank now: points that a person gave to a former answer are withdrawn.

        Returns:
            The submission's grades by cell, and its late penalty.

        Raises:
            RecordError: if it cannot be recorded.
            CourseError: if the disk cannot be written, or the gradebook is damaged.
        """
        try:
            for cell in notebook.cells:
                cell.metadata.pop("execution", None)
            for step in self._steps:
                notebook, _ = step(notebook, {})
            validate(notebook)
            with self.gradebook() as gradebook:
                self._record_grades(gradebook, student, notebook, manual, emptied)
                self._write_files(student, notebook)
                return self.grades(student)
        except Exception as error:
            # As in nbgrader, no graded notebook may stay without its grades in the gradebook.
            shutil.rmtree(self._graded_folder(student), ignore_errors=True)
            if isinstance(error, (RecordError, CourseError)):
                raise
            raise self._convert_error(error) from error

    def _record_grades(
        self, gradebook: Any, student: str, notebook: Any, manual: Collection[str], emptied: Collection[str]
    ) -> None:
        """Write the points and comments of all cells, and the late penalty, to the gradebook."""
        submission = self._update_submission(gradebook, student)
        for other in submission.notebooks:
            if other.name != self.chapter and not (self._submitted_folder(student) / f"{other.name}.ipynb").exists():
                _set_to_zero(other)
        rows = gradebook.find_submission_notebook(self.chapter, self.chapter, student)
        grades, comments = (
            dict(gradebook.db.execute(_select_by_cell(kind).where(kind.notebook_id == rows.id)).all())
            for kind in (Grade, Comment)
        )
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
            if is_grade(cell):
                grade = grades[name]
                if name in emptied:
                    grade.manual_score, grade.extra_credit = None, None
                grade.auto_score, _ = determine_grade(cell)
                waits = grade.auto_score is None or grade.manual_score is not None
                grade.needs_manual_grade = waits and name not in manual
            if is_solution(cell) or is_task(cell):
                blank = not is_task(cell) and cell.metadata["nbgrader"].get("checksum") == compute_checksum(cell)
                comments[name].auto_comment = "No response." if blank else None
        gradebook.db.flush()
        gradebook.db.commit()
        write_penalties(gradebook, self.course, self.chapter, [student], self.config)

    def _update_submission(self, gradebook: Any, student: str) -> Any:
        gradebook.update_or_create_student(student)
        handed_in = read_submission_time(self.course, self.chapter, student)
        return gradebook.update_or_create_submission(self.chapter, student, timestamp=handed_in)

    def _submitted_folder(self, student: str) -> Path:
        return self.course.folder("submitted", student, self.chapter)

    def _graded_folder(self, student: str) -> Path:
        return self.course.folder("autograded", student, self.chapter)

    def _write_files(self, student: str, notebook: Any) -> None:
        """Write the graded notebook and copy its companion files, but no links or devices.

        The course's files take precedence.
        """
        target = self._graded_folder(student)
        if target.exists():
            shutil.rmtree(target)
        target.mkdir(parents=True)
        excluded = frozenset(self._converter.exclude_overwriting.get(self.chapter, ()))
        for folder, ours in (
            (self._submitted_folder(student), False),
            (self.course.folder("source", ".", self.chapter), True),
        ):
            for name in [] if _is_link(folder) else list_companion_paths(folder, self._is_ignored)[0][:MAX_FILES]:
                path, copy = folder / name, target / name
                if path.is_file() and not path.is_symlink() and not (ours and name in excluded):
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    copy.unlink(missing_ok=True)
                    shutil.copy(path, copy, follow_symlinks=False)
        with (target / f"{self.chapter}.ipynb").open("w", encoding="utf-8") as file:
            file.write(dumps_by_line(strip_transient(notebook), "cells", sort_keys=True))
            # The journal will say that the file exists, so it must survive a power cut.
            file.flush()
            os.fsync(file.fileno())
        self._converter.set_permissions(self.chapter, student)

    def _is_ignored(self, name: str) -> bool:
        # As in a shell and in nbgrader, a pattern matches hidden files only if it begins with a dot.
        ignored = (*self._converter.coursedir.ignore, "*.ipynb")
        return any(fnmatch(name, pattern) for pattern in ignored if name[0] != "." or pattern[:1] == ".")

    def record_zero(self, student: str) -> None:
        """Record 0 points for a submission without a notebook, as nbgrader does for a missing file.

        This removes an earlier attempt from ``autograded/``, as nbgrader does.

        Raises:
            RecordError: as :meth:`gradebook` does.
        """
        with self.gradebook() as gradebook:
            self._update_submission(gradebook, student)
            _set_to_zero(gradebook.find_submission_notebook(self.chapter, self.chapter, student))
            gradebook.db.commit()
        if self._graded_folder(student).is_dir():
            shutil.rmtree(self._graded_folder(student))

    def zero_automatic_points(self, student: str) -> None:
        """Set the automatic points to zero for a submission whose replacement could not be graded.

        Manual points stay, and are marked for a second look.

        Raises:
            RecordError: as :meth:`gradebook` does.
        """
        with self.gradebook() as gradebook, suppress(MissingEntry):
            notebook = gradebook.find_submission_notebook(self.chapter, self.chapter, student)
            for grade in notebook.grades:
                grade.auto_score, grade.needs_manual_grade = 0, grade.manual_score is not None
            gradebook.db.commit()

    def has_current_time(self, student: str) -> bool:
        """Return whether the gradebook has the current submission time.

        Raises:
            nbgrader.api.MissingEntry: if it does not have the submission.
            RecordError: as :meth:`gradebook` does.
        """
        with self.gradebook() as gradebook:
            timestamp: datetime | None = gradebook.find_submission(self.chapter, student).timestamp
            return timestamp == read_submission_time(self.course, self.chapter, student)

    def grades(self, student: str) -> tuple[dict[str, RecordedGrade], float]:
        """Return a submission's grades by cell, and its late penalty, from the gradebook.

        Raises:
            nbgrader.api.MissingEntry: if it has none.
            RecordError: as :meth:`gradebook` does.
        """
        with self.gradebook() as gradebook:
            notebook = gradebook.find_submission_notebook(self.chapter, self.chapter, student)
            rows = gradebook.db.execute(
                select(BaseCell.name, Grade.auto_score, Grade.max_score, Grade.needs_manual_grade)
                .join(BaseCell, BaseCell.id == Grade.cell_id)
                .where(Grade.notebook_id == notebook.id)
            )
            grades = {name: RecordedGrade(auto, float(best), bool(waits)) for name, auto, best, waits in rows}
            return grades, float(notebook.late_submission_penalty or 0.0)

    def add_student_fields(self, names: Mapping[str, Mapping[str, str]]) -> None:
        """Add missing names and other fields of students to the gradebook.

        Raises:
            RecordError: as :meth:`gradebook` does.
        """
        with self.gradebook() as gradebook:
            ids = sorted(names)
            for some in (ids[i : i + _AT_ONCE] for i in range(0, len(ids), _AT_ONCE)):
                for student in gradebook.db.scalars(select(Student).where(Student.id.in_(some))):
                    for field, value in names[student.id].items():
                        if value and not getattr(student, field):
                            setattr(student, field, value)
            gradebook.db.commit()


def refresh_penalties(course: Course, chapters: Sequence[str], config: Config) -> list[str]:
    """Update the due dates and penalties of outdated chapters, and return those chapters.

    The course is locked only if there is something to write, so that a report can be made while others grade.

    Raises:
        CourseError: if ``course.toml`` or the gradebook cannot be read, or somebody else is at work and a penalty is stale.
    """
    stale = [chapter for chapter in chapters if are_penalties_stale(course, chapter, config)]
    if stale:
        with course_lock(course):
            for chapter in stale:
                with GradebookWriter(course, chapter, config) as books:
                    update_penalties(course, chapter, config, books.gradebook())
    return stale


def _select_by_cell(kind: Any) -> Any:
    return select(BaseCell.name, kind).join(BaseCell, BaseCell.id == kind.cell_id)


def _set_to_zero(notebook: Any) -> None:
    for grade in notebook.grades:
        grade.auto_score, grade.needs_manual_grade = 0, False


def _is_link(folder: Path) -> bool:
    return folder.is_symlink() or folder.parent.is_symlink()
