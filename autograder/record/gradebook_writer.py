"""Writing grades, through nbgrader's own converter: late penalties, comments, checksums and missing files are as nbgrader has them."""

from __future__ import annotations

import glob
import hashlib
import logging
import os
import shutil
import stat
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Any

from nbformat import reader
from nbgrader.api import BaseCell, Grade, InvalidEntry, MissingEntry, Student
from nbgrader.converters import Autograde
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import AssignLatePenalties, Execute, NbGraderPreprocessor
from sqlalchemy import select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from traitlets import Any as AnyTrait
from traitlets.config import Config

from autograder.course.folder import CONFIG_NAME, Course
from autograder.course.known_errors import explained_for_all
from autograder.errors import CourseError
from autograder.gradebook.nbgrader_log import capture_log, silence_warnings
from autograder.gradebook.reader import sqlite_file
from autograder.gradebook.transactions import CachedGradebook, import_steps, with_shared_gradebook
from autograder.submission.attached_files import MAX_FILES, file_names
from autograder.submission.manifest import Manifest, NotReleasedError, cell_order, read_manifest
from autograder.submission.notebook_reader import UnreadableError
from autograder.submission.problem import METADATA_KEY
from autograder.submission.timestamp import read_timestamp

# Sanitised notebooks that wait for being recorded; what falls out is sanitised once more.
KEPT = 512
# Databases limit how many values a question may name.
_AT_ONCE = 500
# Where the exporter leaves the notebook of which it has made a text, for whoever would read that again.
EXPORTED = "tfcourse_notebook"


class RecordError(Exception):
    """nbgrader could not read or record a submission.

    Args:
        reason: nbgrader's own last word on it.
        by_submission: whether what is in the submission may be the cause. A database that is locked is nobody's, nor is a full disk.
    """

    def __init__(self, reason: str, *, by_submission: bool = False) -> None:
        self.by_submission = by_submission
        super().__init__(reason)

    @classmethod
    def of(cls, error: Exception) -> RecordError:
        """Return what an exception at one submission amounts to."""
        return cls(f"{type(error).__name__}: {error}", by_submission=not isinstance(error, _OF_THE_MACHINE))


# What says nothing about the submission at which it happens.
_OF_THE_MACHINE = (SQLAlchemyError, InvalidEntry, OSError, MemoryError)


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


@dataclass(frozen=True)
class Recorded:
    """A submission as it was recorded.

    Attributes:
        notebook: the graded notebook, as nbgrader keeps it.
        grades: its grades, by cell.
        late_penalty: the points that it loses for being late.
    """

    notebook: Any
    grades: Mapping[str, RecordedGrade]
    late_penalty: float


class CopyOutputs(NbGraderPreprocessor):  # type: ignore[misc]
    """Stands where nbgrader executes: gives a notebook the outputs that a worker has already brought."""

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Copy outputs and problems from the executed notebook, which must be the same notebook."""
        executed = self.parent.parent.executed
        if [cell.source for cell in nb.cells] != [cell.source for cell in executed.cells]:
            raise ValueError("the notebook that was run is not the one to be recorded; was it replaced meanwhile?")
        for cell, done in zip(nb.cells, executed.cells, strict=True):
            if cell.cell_type == "code":
                cell.outputs, cell.execution_count = done.outputs, done.execution_count
        nb.metadata[METADATA_KEY] = executed.metadata.get(METADATA_KEY, {})
        return nb, resources


@dataclass(frozen=True)
class Sanitised:
    """A submission as it was sanitised, until it is recorded.

    Attributes:
        path: the submitted file.
        digest: a hash of it; another one means that the file has been replaced since.
        notebook: the sanitised notebook, as JSON.
        resources: what nbconvert says along with it.
    """

    path: Path
    digest: bytes
    notebook: str
    resources: Any

    def is_of(self, path: str) -> bool:
        """Whether this is what sanitising a file would give now."""
        return self.path == Path(path) and self.digest == _digest(self.path)


class _Folders(CourseDirectory):  # type: ignore[misc]
    """nbgrader's folders, where a time stamp is read as any file of a student's is: no link, no pipe, and what is no time is none."""

    def get_existing_timestamp(self, dest_path: str) -> datetime | None:
        try:
            return read_timestamp(Path(dest_path))
        except UnreadableError:
            return None


class _SanitiseOnce(BaseConverter):  # type: ignore[misc]
    """Stands between Autograde and its base: what was sanitised before the run is not sanitised again after it."""

    sanitised = AnyTrait(None, allow_none=True, help="The submission as it was sanitised, or None.")
    written = AnyTrait(help="The notebook that was written last.")

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        """Copy what lies beside a notebook, but no link, pipe or device: nbgrader would follow the one and wait for the others."""
        source, target = (Path(form(assignment_id, student_id)) for form in (self._format_source, self._format_dest))
        if source.is_symlink() or source.parent.is_symlink():
            return
        # nbgrader lists a file's folder anew for every file and pattern.
        for name in file_names(source, self._is_ignored)[0][:MAX_FILES]:
            path = source / name
            if stat.S_ISREG(path.lstat().st_mode):
                copy = target / name
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.unlink(missing_ok=True)
                shutil.copy(path, copy, follow_symlinks=False)

    def _is_ignored(self, name: str) -> bool:
        # As a shell and nbgrader have it, a pattern finds no hidden file but by its dot.
        patterns = [pattern for pattern in (*self.coursedir.ignore, "*.ipynb") if name[0] != "." or pattern[:1] == "."]
        return any(fnmatch(name, pattern) for pattern in patterns)

    def convert_single_notebook(self, notebook_filename: str) -> None:
        if self._sanitizing and self.sanitised:
            if self.sanitised.is_of(notebook_filename):
                self.write_single_notebook(self.sanitised.notebook, self.sanitised.resources)
                return
            self.sanitised = None
            self._init_preprocessors()
        super().convert_single_notebook(notebook_filename)

    def write_single_notebook(self, output: str, resources: Any) -> None:
        exported = resources.pop(EXPORTED, None)
        super().write_single_notebook(output, resources)
        if not self._sanitizing:
            # The journal will say that it is there, also after a power cut.
            with Path(self.writer.build_directory, f"{resources['unique_key']}.ipynb").open("rb") as file:
                os.fsync(file.fileno())
        self.written = reader.reads(output) if exported is None and not self._sanitizing else exported


class SubmissionRecorder(Autograde, _SanitiseOnce):  # type: ignore[misc]
    """nbgrader's Autograde for one submission that has been run elsewhere."""

    executed = AnyTrait(help="The executed notebook.")
    manifest = AnyTrait(help="The chapter's cells, for the step that restores them.")
    variant = AnyTrait(help="Returns the class of a step that uses the shared gradebook.")

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sanitize_preprocessors = self._steps(self.sanitize_preprocessors)  # type: ignore[has-type]
        self.autograde_preprocessors = self._steps(self.autograde_preprocessors)  # type: ignore[has-type]

    def _init_preprocessors(self) -> None:
        if not (self._sanitizing and self.sanitised):
            super()._init_preprocessors()

    def run_post_convert_hook(self) -> None:
        """Leave the course's own hook for :meth:`tell`: it may want the gradebook, where now another unit is being written."""

    def tell(self) -> None:
        """Run the course's own hook, if there is one."""
        super().run_post_convert_hook()

    def _steps(self, named: Sequence[Any]) -> list[type]:
        return [self.variant(CopyOutputs if issubclass(step, Execute) else step) for step in import_steps(named)]


@dataclass(frozen=True)
class GradebookWriter:
    """The gradebook of a course, and nbgrader's way into it. Only one process may hold it.

    Configuration, manifest and database are opened when they are first needed and kept until :meth:`close`, so that one object should
    serve a whole run; as a context manager it closes itself.

    Attributes:
        course: the course.
        chapter: the chapter that is graded.
        config: nbgrader's configuration, with the course's own steps in it.
    """

    course: Course
    chapter: str
    config: Config = field(repr=False, compare=False)

    def __enter__(self) -> GradebookWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database. What is asked for afterwards opens it again."""
        shared: CachedGradebook | None = self.__dict__.pop("_shared", None)
        if shared is not None:
            shared.dispose()
        self.__dict__.pop("_manifest", None)
        self._sanitised.clear()

    @cached_property
    def _shared(self) -> CachedGradebook:
        with silence_warnings():
            return CachedGradebook(self.course.gradebook_url, str(self.config.CourseDirectory.get("course_id", "")))

    @cached_property
    def _manifest(self) -> Manifest:
        order = cell_order(self.course.folder("source", ".", self.chapter) / f"{self.chapter}.ipynb")
        return read_manifest(self.course.gradebook_url, self.chapter, order)

    @cached_property
    def _sanitised(self) -> OrderedDict[str, Sanitised]:
        return OrderedDict()

    @cached_property
    def _variants(self) -> dict[type, type]:
        return {}

    def _variant(self, kind: type) -> type:
        if kind not in self._variants:
            self._variants[kind] = with_shared_gradebook(kind, lambda: self._shared)
        return self._variants[kind]

    def _recorder(self, student: str, log: logging.Logger) -> SubmissionRecorder:
        # nbgrader takes the id for a glob pattern.
        coursedir = _Folders(config=self.config, assignment_id=self.chapter, student_id=glob.escape(student))
        recorder: SubmissionRecorder = self._variant(SubmissionRecorder)(
            coursedir=coursedir,
            config=self.config,
            force=True,
            manifest=self._manifest,
            sanitised=self._sanitised.pop(student, None),
            variant=self._variant,
            log=log,
        )
        return recorder

    def refuse_unusable_steps(self) -> None:
        """Make each of nbgrader's steps once, as the course configures them: what fails here would fail for every submission.

        Raises:
            CourseError: if a step, or the class that decides about late penalties, cannot be imported or made.
        """
        try:
            recorder = self._recorder("nobody", capture_log()[0])
            for step in (*recorder.sanitize_preprocessors, *recorder.autograde_preprocessors):
                instance = step(parent=recorder)
                if isinstance(instance, AssignLatePenalties):
                    instance.init_plugin()
        except (CourseError, NotReleasedError, SQLAlchemyError):
            raise
        except Exception as error:
            message = f"a step of nbgrader's cannot be used as this configures it ({type(error).__name__}: {error})"
            do = f"Mend the class that it names, or {CONFIG_NAME}."
            raise CourseError(message, where=self.course.root / CONFIG_NAME, do=do) from error

    @contextmanager
    def gradebook(self) -> Iterator[CachedGradebook]:
        """Yield the gradebook. What is committed in the block is written at its end, all or none of it.

        Raises:
            RecordError: if the database does not do as it is told.
            CourseError: if it cannot for want of a disk that can be written, or of a gradebook that is whole.
        """
        try:
            with silence_warnings(), self._shared as gradebook:
                yield gradebook
        except (SQLAlchemyError, InvalidEntry) as error:
            raise self._as_error(error, f"{type(error).__name__}: {error}") from error

    def _as_error(self, error: BaseException, reason: str) -> RecordError | CourseError:
        """Return what to raise for an exception: what one submission suffers from, or what all of them would."""
        where = sqlite_file(make_url(self.course.gradebook_url)) or self.course.root
        by_submission = not isinstance(error, _OF_THE_MACHINE)
        return explained_for_all(error, where) or RecordError(reason, by_submission=by_submission)

    def sanitise(self, student: str, path: Path, *, instead: Path | None = None) -> str:
        """Return a submission as nbgrader's sanitising preprocessors leave it, as JSON; nothing is written.

        Args:
            student: whose it is.
            path: where the submission lies, or would lie.
            instead: another notebook that is to be read as if it were the submission; it cannot be recorded afterwards.

        Raises:
            RecordError: if nbgrader would not.
        """
        log, _ = capture_log()
        recorder = self._recorder(student, log)
        try:
            digest = _digest(instead or path)
            recorder.exporter = recorder.exporter_class(parent=recorder, config=recorder.config)
            recorder._init_preprocessors()
            resources = recorder.init_single_notebook_resources(str(path))
            with silence_warnings():
                notebook, resources = recorder.exporter.from_filename(str(instead or path), resources=resources)
        except Exception as error:
            raise RecordError.of(error) from error
        resources.pop(EXPORTED, None)
        if instead is not None:
            return str(notebook)
        self._sanitised[student] = Sanitised(path, digest, str(notebook), resources)
        if len(self._sanitised) > KEPT:
            self._sanitised.popitem(last=False)
        return str(notebook)

    def record(self, student: str, executed: str, manual: Collection[str] = ()) -> Recorded:
        """Record an executed notebook.

        Args:
            student: whose it is.
            executed: the notebook, as JSON.
            manual: the cells that a person has given points to and that wait for nobody, where nbgrader asks for another look.

        Returns:
            What is in the gradebook now.

        Raises:
            RecordError: if nbgrader would not.
            CourseError: if it cannot for want of a disk that can be written, or of a gradebook that is whole.
        """
        log, errors = capture_log()
        recorder = self._recorder(student, log)
        try:
            recorder.executed = reader.reads(executed)
            with silence_warnings(), self._shared as gradebook:
                recorder.start()
                for name in manual:
                    gradebook.find_grade(name, self.chapter, self.chapter, student).needs_manual_grade = False
                    gradebook.db.commit()
                grades, penalty = self.grades(student)
            recorder.tell()
        except Exception as error:
            # As nbgrader does it for what fails before the commit: no graded notebook stays whose grades are not in the gradebook.
            shutil.rmtree(self.course.folder("autograded", student, self.chapter), ignore_errors=True)
            cause = errors.error or error
            raise self._as_error(cause, errors.cause(error)) from cause
        return Recorded(recorder.written, grades, penalty)

    def record_zero(self, student: str) -> None:
        """Record a submission without a notebook as nbgrader records a missing file: 0 points, nothing to be looked at.

        What an earlier attempt left in ``autograded/`` goes, as it does whenever nbgrader grades again.

        Raises:
            RecordError: as :meth:`gradebook` does.
        """
        folder = self.course.folder("submitted", student, self.chapter)
        handed_in = _Folders(config=self.config).get_existing_timestamp(str(folder))
        when = {"timestamp": handed_in} if handed_in else {}
        with self.gradebook() as gradebook:
            gradebook.update_or_create_student(student)
            gradebook.update_or_create_submission(self.chapter, student, **when)
            for grade in gradebook.find_submission_notebook(self.chapter, self.chapter, student).grades:
                grade.auto_score, grade.needs_manual_grade = 0, False
            gradebook.db.commit()
        graded = self.course.folder("autograded", student, self.chapter)
        if graded.is_dir():
            shutil.rmtree(graded)

    def withdraw(self, student: str) -> None:
        """Take back the points of a submission that another file has replaced, where that could not be graded.

        What a person has given is kept, and waits for a person to look again.

        Raises:
            RecordError: as :meth:`gradebook` does.
        """
        with self.gradebook() as gradebook:
            try:
                notebook = gradebook.find_submission_notebook(self.chapter, self.chapter, student)
            except MissingEntry:
                return
            for grade in notebook.grades:
                grade.auto_score, grade.needs_manual_grade = 0, grade.manual_score is not None
            gradebook.db.commit()

    def grades(self, student: str) -> tuple[dict[str, RecordedGrade], float]:
        """Return what the gradebook says about a submission: grades by cell, and the late penalty.

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

    def name_students(self, names: Mapping[str, Mapping[str, str]]) -> None:
        """Write the names of students into the gradebook, where it does not have them yet.

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


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
