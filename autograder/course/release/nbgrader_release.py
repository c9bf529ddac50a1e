"""Run nbgrader's release step as a library: remove solutions and hidden tests, add checksums and gradebook entries."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.converters import GenerateAssignment
from nbgrader.converters import generate_assignment as converter
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import savecells
from sqlalchemy.engine import URL, make_url
from traitlets.config import Config

from autograder.course.authoring.chapter import Chapter
from autograder.course.authoring.myst import write_notebook
from autograder.course.authoring.solution_notebook import source_notebook
from autograder.course.gradebook.nbgrader_log import capture_log, silence_warnings
from autograder.course.gradebook.reader import sqlite_file, sqlite_sidecar_files
from autograder.course.gradebook.transactions import TransactionalGradebook
from autograder.course.known_errors import explain_general_error
from autograder.errors import CourseError


def released_notebook(chapter: Chapter, config: Config | None = None) -> bytes:
    """Create a chapter's student notebook with nbgrader in a temporary folder, without a gradebook.

    Args:
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

    Raises:
        CourseError: with nbgrader's reason, or the disk's.
    """
    settings = Config()
    settings.merge(config)
    settings.CourseDirectory.assignment_id = chapter
    log, errors = capture_log()
    with _extend_path(), silence_warnings():
        try:
            directory = CourseDirectory(config=settings, log=log)
            if settings.GenerateAssignment.get("no_database"):
                _run_conversion(GenerateAssignment(coursedir=directory, config=settings, log=log))
            else:
                _make_gradebook(directory)
                _convert_in_transaction(directory, settings, log)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if full := explain_general_error(error, settings.CourseDirectory.root):
                raise full from error
            raise CourseError(
                f"nbgrader could not release {chapter}: {errors.cause(error)}",
                where=settings.CourseDirectory.root,
                do=_find_advice(errors.text),
            ) from error


def _run_conversion(release: GenerateAssignment) -> None:
    release.force = True
    release.create_assignment = True
    release.start()


def _convert_in_transaction(directory: CourseDirectory, settings: Config, log: logging.Logger) -> None:
    """Release a chapter and add its cells to the gradebook in one transaction, so that it is never partial."""
    gradebook = TransactionalGradebook(directory.db_url, directory.course_id)
    try:
        with gradebook, _inject_gradebook(gradebook):
            _run_conversion(GenerateAssignment(coursedir=directory, config=settings, log=log))
    finally:
        gradebook.dispose()


@contextmanager
def _inject_gradebook(gradebook: TransactionalGradebook) -> Iterator[None]:
    """Make nbgrader's converter use this gradebook instead of opening one."""
    modules = (converter, savecells)
    for module in modules:
        module.Gradebook = lambda *_, **__: gradebook
    try:
        yield
    finally:
        for module in modules:
            module.Gradebook = Gradebook


def _make_gradebook(directory: CourseDirectory) -> None:
    """Create a gradebook under a temporary name and rename it, because nbgrader creates its tables one by one."""
    path = sqlite_file(make_url(directory.db_url))
    if path is None or (path.exists() and path.stat().st_size):
        return
    half = path.with_name(f"{path.name}.new")
    # SQLite would apply the journal of a gradebook that was moved away to this one.
    for leftover in (half, *sqlite_sidecar_files(half), *sqlite_sidecar_files(path)):
        leftover.unlink(missing_ok=True)
    Gradebook(URL.create("sqlite", database=str(half)), directory.course_id).close()
    half.replace(path)


@contextmanager
def _extend_path() -> Iterator[None]:
    """Extend PATH so that nbgrader finds the programs that it calls in an environment that is not activated."""
    before = os.environ.get("PATH", os.defpath)
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), before])
    try:
        yield
    finally:
        os.environ["PATH"] = before


def _find_advice(log: str) -> str:
    if "there are submissions associated with it" in log:
        return (
            "Students have handed this chapter in, and its exercises or questions have changed since. "
            "Grade what was handed in with the old version, or release the changed one in a new course folder (--course)."
        )
    if "database" in log or "sqlalchemy" in log:
        return "Is the gradebook open elsewhere, or was it made by another version of nbgrader? See `tfcourse doctor`."
    return "Fix the cell named above, then run the command again."
