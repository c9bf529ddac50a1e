"""Open a course's gradebook without creating it and, for reading, without changing it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from nbgrader.api import Base, Gradebook
from sqlalchemy import create_engine, inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.event import listen
from sqlalchemy.exc import SQLAlchemyError

from autograder.course.chapter_names import resolve_chapter
from autograder.course.course_rules import drop_vivas
from autograder.course.folder import Course
from autograder.course.known_errors import as_course_error
from autograder.course.paths import shell_command
from autograder.errors import CourseError


class NoGradebookError(CourseError):
    """The gradebook does not exist yet."""


@contextmanager
def open_gradebook(course: Course, *, for_changes: bool = False) -> Iterator[Gradebook]:
    """Yield a course's open gradebook.

    Args:
        course: the course.
        for_changes: whether it may be changed.

    Raises:
        CourseError: if there is no gradebook yet, or it cannot be read.
    """
    try:
        with existing_gradebook(course.gradebook_url, for_changes=for_changes) as gradebook:
            yield gradebook
    except NoGradebookError as error:
        do = f"Release a chapter first: {shell_command(course, 'assign', 'CHAPTER')}"
        raise NoGradebookError(error.what, where=error.where, do=do) from None


@contextmanager
def existing_gradebook(db_url: str, *, for_changes: bool = False) -> Iterator[Gradebook]:
    """Yield an existing gradebook, read-only by default.

    nbgrader creates a missing gradebook, adds missing tables to another program's database, and adds a course to a gradebook
    that does not have it; a query must do none of these. So every connection is read-only in SQL. The file itself is opened for
    writing: if a writer was killed during a commit, SQLite must be able to roll the commit back.

    Args:
        db_url: its address, as nbgrader has it.
        for_changes: whether it may be changed all the same.

    Raises:
        CourseError: if there is no gradebook yet, or it cannot be read.
    """
    url = make_url(db_url)
    path = sqlite_file(url)
    where = path or url.render_as_string(hide_password=True)
    if path is not None:
        if path.is_dir():
            problem = "a folder stands where the gradebook should be"
            raise CourseError(problem, where=path, do="Put the gradebook in its place, or move the folder away.")
        if not (path.is_file() and path.stat().st_size):
            raise _no_gradebook_error(path)
        url = _existing_url(path)
    try:
        _require_tables(url, where)
        # Without a course's id nbgrader adds none.
        with Gradebook(url, course_id="") as gradebook:
            if not for_changes:
                _forbid_changes(gradebook)
            yield gradebook
    except SQLAlchemyError as error:
        raise as_course_error(error, where) or error from error


def _require_tables(url: URL, where: object) -> None:
    engine = create_engine(url)
    try:
        tables = set(inspect(engine).get_table_names())
    finally:
        engine.dispose()
    if not tables:
        raise _no_gradebook_error(where)
    if not set(Base.metadata.tables) <= tables:
        raise CourseError(
            "this database is not an nbgrader gradebook", where=where, do="Check db_url in nbgrader_config.py."
        )


def _forbid_changes(gradebook: Gradebook) -> None:
    gradebook.db.remove()
    if gradebook.engine.name == "postgresql":
        gradebook.db.configure(bind=gradebook.engine.execution_options(postgresql_readonly=True))
    elif gradebook.engine.name == "sqlite":
        # Connections that are open already were not told.
        gradebook.engine.dispose()
        listen(gradebook.engine, "connect", lambda connection, _: connection.execute("PRAGMA query_only = ON"))


def _no_gradebook_error(where: object) -> NoGradebookError:
    return NoGradebookError("there is no gradebook yet", where=where, do="Release a chapter first.")


def _existing_url(path: Path) -> URL:
    # An object and no text: in a text SQLAlchemy would take the quotation of odd signs in the path away again.
    return URL.create("sqlite", database=f"file:{quote(str(path))}", query={"mode": "rw", "uri": "true"})


def sqlite_file(url: URL) -> Path | None:
    """Return the file of an SQLite database; None for another database."""
    if not url.drivername.startswith("sqlite") or not url.database or url.database == ":memory:":
        return None
    return Path(url.database).resolve()


def sqlite_sidecar_files(database: Path) -> list[Path]:
    """Return the paths of the journal files that SQLite may keep next to a database and apply when it is opened."""
    return [database.with_name(f"{database.name}-{kind}") for kind in ("journal", "wal", "shm")]


def released_chapters(course: Course, typed: Sequence[str] = ()) -> list[str]:
    """Return the released chapters that typed names match; all of them by default.

    Args:
        typed: what was typed; nothing means every chapter.

    Returns:
        Full names, in the order in which they were typed, each once.

    Raises:
        CourseError: if nothing is released, or a name means no chapter or more than one.
    """
    with open_gradebook(course) as gradebook:
        chapters = drop_vivas([assignment.name for assignment in gradebook.assignments])
    if not chapters:
        raise CourseError(
            "no chapter has been released here yet",
            where=course.root,
            do=f"Release one: {shell_command(course, 'assign', 'CHAPTER')}",
        )
    problem = f" in this course; it has released: {', '.join(chapters)}"
    do = f"Name one of those, or release it first: {shell_command(course, 'assign', 'CHAPTER')}"
    named = (resolve_chapter(name, chapters, problem, do=do, where=course.root) for name in typed)
    return list(dict.fromkeys(named)) or chapters
