"""nbgrader's own release step, run as a library: solutions and hidden tests go, checksums and the gradebook's entries come."""

from __future__ import annotations

import io
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from sqlalchemy.engine import URL, make_url
from traitlets.config import Config

from autograder.authoring.chapter import Chapter
from autograder.authoring.myst import write_notebook
from autograder.authoring.solution_notebook import source_notebook
from autograder.course.known_errors import explained_for_all
from autograder.errors import CourseError
from autograder.gradebook.reader import sqlite_file, sqlite_sidecar_files
from autograder.gradebook.transactions import TransactionalGradebook, import_steps, with_shared_gradebook


def released_notebook(chapter: Chapter, config: Config | None = None) -> bytes:
    """Return a chapter's notebook as students get it, made by nbgrader in a folder of its own. No gradebook is touched.

    Args:
        chapter: the chapter.
        config: the course's nbgrader configuration, if it has one.

    Raises:
        CourseError: if nbgrader refuses.
    """
    with tempfile.TemporaryDirectory() as folder:
        scratch = Config()
        if config is not None:
            scratch.merge(config)
        root = Path(folder).resolve()
        scratch.CourseDirectory.root = str(root)
        scratch.GenerateAssignment.no_database = True
        scratch.SaveCells.enabled = False
        source = root / "source" / chapter.name / f"{chapter.name}.ipynb"
        source.parent.mkdir(parents=True)
        source.write_bytes(write_notebook(source_notebook(chapter)))
        generate_assignment(scratch, chapter.name)
        return (root / "release" / chapter.name / source.name).read_bytes()


def generate_assignment(config: Config, chapter: str) -> None:
    """Run nbgrader's ``generate_assignment --force --create`` for a chapter, quietly.

    Args:
        config: an nbgrader configuration that names the course's root.
        chapter: the assignment.

    Raises:
        CourseError: with nbgrader's reason, or the disk's.
    """
    settings = Config()
    settings.merge(config)
    settings.CourseDirectory.assignment_id = chapter
    with _captured_log() as (log, written), _programs_found(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            directory = CourseDirectory(config=settings, log=log)
            if settings.GenerateAssignment.get("no_database"):
                _convert(GenerateAssignment(coursedir=directory, config=settings, log=log))
            else:
                _make_gradebook(directory)
                _convert_as_one(directory, settings, log)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if full := explained_for_all(error, settings.CourseDirectory.root):
                raise full from error
            raise CourseError(
                f"nbgrader could not release {chapter}: {_reason(written.getvalue(), error)}",
                where=settings.CourseDirectory.root,
                do=_advice(written.getvalue()),
            ) from error


def _convert(converter: GenerateAssignment) -> None:
    converter.force = True
    converter.create_assignment = True
    converter.start()


def _convert_as_one(directory: CourseDirectory, settings: Config, log: logging.Logger) -> None:
    """Release a chapter, with all of its cells entered at once: one that is half there would be graded by that half."""
    gradebook = TransactionalGradebook(directory.db_url, directory.course_id)
    try:
        converter = with_shared_gradebook(GenerateAssignment, lambda: gradebook)(
            coursedir=directory, config=settings, log=log
        )
        converter.preprocessors = [
            with_shared_gradebook(step, lambda: gradebook) for step in import_steps(converter.preprocessors)
        ]
        with gradebook:
            _convert(converter)
    finally:
        gradebook.dispose()


def _make_gradebook(directory: CourseDirectory) -> None:
    """Make a gradebook beside its place and move it there; nbgrader makes it table by table, and one half made would not be read again."""
    path = sqlite_file(make_url(directory.db_url))
    if path is None or (path.exists() and path.stat().st_size):
        return
    half = path.with_name(f"{path.name}.new")
    # What SQLite left beside a gradebook that was moved away would be played into this one.
    for leftover in (half, *sqlite_sidecar_files(half), *sqlite_sidecar_files(path)):
        leftover.unlink(missing_ok=True)
    Gradebook(URL.create("sqlite", database=str(half)), directory.course_id).close()
    half.replace(path)


@contextmanager
def _captured_log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    buffer = io.StringIO()
    log = logging.Logger("tfcourse.release", level=logging.INFO)
    handler = logging.StreamHandler(buffer)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
    log.propagate = False
    try:
        yield log, buffer
    finally:
        handler.close()


@contextmanager
def _programs_found() -> Iterator[None]:
    """Let nbgrader find what it calls by name (alembic, for a new gradebook) also where the environment is not activated."""
    before = os.environ.get("PATH", os.defpath)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before


def _reason(log: str, error: BaseException) -> str:
    """Return what nbgrader said: the last exception in its log, which its own exception only points to."""
    named = [line for line in log.splitlines() if _looks_like_exception(line)]
    return named[-1] if named else f"{type(error).__name__}: {error}"


def _looks_like_exception(line: str) -> bool:
    name, colon, rest = line.partition(": ")
    return (
        bool(colon and rest)
        and name.replace(".", "").replace("_", "").isalnum()
        and name.endswith(("Error", "Exception"))
    )


def _advice(log: str) -> str:
    if "there are submissions associated with it" in log:
        return (
            "Students have handed this chapter in, and its exercises or questions have changed since. "
            "Grade what was handed in with the old version, or release the changed one in a new course folder (--course)."
        )
    if "database" in log or "sqlalchemy" in log:
        return "Is the gradebook open elsewhere, or was it made by another version of nbgrader? See `tfcourse doctor`."
    return "Mend the cell that is named, then run the command again."
