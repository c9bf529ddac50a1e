"""Writing grades, through nbgrader's own converter: late penalties, comments, checksums and missing files are as nbgrader has them."""

from __future__ import annotations

import glob
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbgrader.api import Grade, Gradebook, MissingEntry
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import Execute, NbGraderPreprocessor
from sqlalchemy import select
from sqlalchemy.orm import selectinload
from traitlets import Any as AnyTrait
from traitlets.utils.importstring import import_item

from autograder.course import Course
from autograder.grading.intake import MARK
from autograder.grading.plugin import configure
from autograder.grading.quiet import quiet_log, without_remarks


class RecordError(Exception):
    """nbgrader could not record a submission; the text is nbgrader's own last word on it."""


@dataclass(frozen=True)
class RecordedGrade:
    """A grade as it stands in the gradebook.

    Attributes:
        auto_score: points given by the machine; None where a person has to look.
        max_score: points that could be given.
        needs_manual_grade: whether a person has to look.
    """

    auto_score: float | None
    max_score: float
    needs_manual_grade: bool


class Replay(NbGraderPreprocessor):  # type: ignore[misc]
    """Stands where nbgrader executes: gives a notebook the outputs that a worker has already brought."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Copy outputs and problems from the executed notebook, which must be the same notebook."""
        executed = self.parent.parent.executed
        if [cell.source for cell in nb.cells] != [cell.source for cell in executed.cells]:
            raise ValueError("the notebook that was run is not the one to be recorded; was it replaced meanwhile?")
        for cell, done in zip(nb.cells, executed.cells, strict=True):
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = done.outputs, done.execution_count
        nb.metadata[MARK] = executed.metadata.get(MARK, {})
        return nb, resources


class Recorder(Autograde):  # type: ignore[misc]
    """nbgrader's Autograde for one submission that has been run elsewhere."""

    executed = AnyTrait(help="The executed notebook.")

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        named: list[Any] = self.autograde_preprocessors  # type: ignore[has-type]
        steps = [import_item(step) if isinstance(step, str) else step for step in named]
        self.autograde_preprocessors = [Replay if issubclass(step, Execute) else step for step in steps]


@dataclass(frozen=True)
class Books:
    """The gradebook of a course, and nbgrader's way into it. Only one process may hold it.

    Attributes:
        course: the course.
        chapter: the chapter that is graded.
    """

    course: Course
    chapter: str

    def _recorder(self, student: str, log: logging.Logger, executed: Any = None) -> Recorder:
        config = self.course.config()
        configure(config)
        # nbgrader takes the id for a glob pattern.
        coursedir = CourseDirectory(config=config, assignment_id=self.chapter, student_id=glob.escape(student))
        return Recorder(coursedir=coursedir, config=config, force=True, executed=executed, log=log)

    def gradebook(self) -> Any:
        """Return an open gradebook, a context manager."""
        course_id = str(self.course.config().CourseDirectory.get("course_id", ""))
        return Gradebook(self.course.gradebook_url, course_id)

    def sanitise(self, student: str, path: Path) -> str:
        """Return a submission as nbgrader's sanitising preprocessors leave it, as JSON; nothing is written."""
        log, _ = quiet_log()
        recorder = self._recorder(student, log)
        recorder.exporter = recorder.exporter_class(parent=recorder, config=recorder.config)
        recorder._init_preprocessors()
        try:
            resources = recorder.init_single_notebook_resources(str(path))
            with without_remarks():
                notebook, _ = recorder.exporter.from_filename(str(path), resources=resources)
        except Exception as error:
            raise RecordError(f"{type(error).__name__}: {error}") from error
        return str(notebook)

    def record(self, student: str, executed: str) -> Any:
        """Record an executed notebook and return it as nbgrader keeps it.

        Raises:
            RecordError: if nbgrader would not.
        """
        log, heard = quiet_log()
        recorder = self._recorder(student, log, nbformat.reads(executed, as_version=4))
        try:
            with without_remarks():
                recorder.start()
        except Exception as error:
            raise RecordError(heard.cause(error)) from error
        return nbformat.read(
            self.course.folder("autograded", student, self.chapter) / f"{self.chapter}.ipynb", as_version=4
        )

    def record_zero(self, student: str) -> None:
        """Record a submission without a notebook as nbgrader records a missing file: 0 points, nothing to be looked at."""
        with self.gradebook() as gradebook, without_remarks():
            gradebook.update_or_create_student(student)
            gradebook.update_or_create_submission(self.chapter, student)
            for grade in gradebook.find_submission_notebook(self.chapter, self.chapter, student).grades:
                grade.auto_score, grade.needs_manual_grade = 0, False
            gradebook.db.commit()

    def grades(self, student: str) -> tuple[dict[str, RecordedGrade], float]:
        """Return what the gradebook says about a submission: grades by cell, and the late penalty."""
        with self.gradebook() as gradebook:
            notebook = gradebook.find_submission_notebook(self.chapter, self.chapter, student)
            rows = gradebook.db.scalars(
                select(Grade).where(Grade.notebook_id == notebook.id).options(selectinload(Grade.cell))
            )
            grades = {
                row.cell.name: RecordedGrade(row.auto_score, float(row.max_score), bool(row.needs_manual_grade))
                for row in rows
            }
            return grades, float(notebook.late_submission_penalty or 0.0)

    def name_students(self, names: dict[str, dict[str, str]]) -> None:
        """Write the names of students into the gradebook, where it does not have them yet."""
        with self.gradebook() as gradebook:
            for student, about in names.items():
                try:
                    known = gradebook.find_student(student)
                except MissingEntry:
                    continue
                for field, value in about.items():
                    if value and not getattr(known, field):
                        setattr(known, field, value)
            gradebook.db.commit()
