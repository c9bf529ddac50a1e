"""Looking into a course's gradebook: nothing is made, and nothing is changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from nbgrader.api import Base, Gradebook
from sqlalchemy import create_engine, inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import SQLAlchemyError

from autograder.course import Course
from autograder.errors import CourseError
from autograder.remedies import explained


class NoGradebookError(CourseError):
    """There is no gradebook yet."""


@contextmanager
def open_gradebook(course: Course) -> Iterator[Gradebook]:
    """Yield a course's gradebook for reading.

    Raises:
        CourseError: if there is no gradebook yet, or it cannot be read.
    """
    with read_only(course.gradebook_url) as gradebook:
        yield gradebook


@contextmanager
def read_only(db_url: str) -> Iterator[Gradebook]:
    """Yield a gradebook for reading.

    nbgrader makes a gradebook where there is none, and adds a course to one that does not have it; a question must do neither. An
    SQLite file is therefore opened read-only, and so is every transaction on a server.

    Args:
        db_url: its address, as nbgrader has it.

    Raises:
        CourseError: if there is no gradebook yet, or it cannot be read.
    """
    url = make_url(db_url)
    path = _sqlite_file(url)
    where = path or url.render_as_string(hide_password=True)
    try:
        gradebook = _opened_on_server(url, where) if path is None else _opened_file(path)
        try:
            yield gradebook
        finally:
            gradebook.close()
    except SQLAlchemyError as error:
        if path is not None and "readonly" in str(error):
            # It was opened for reading, so this is nbgrader making the tables that it misses.
            raise _foreign(where) from error
        raise explained(error, where) or error from error


def _opened_file(path: Path) -> Gradebook:
    if not (path.is_file() and path.stat().st_size):
        raise _missing(path)
    # Without a course's id nbgrader adds none.
    return Gradebook(_read_only(path), course_id="")


def _opened_on_server(url: URL, where: object) -> Gradebook:
    engine = create_engine(url)
    try:
        there = set(inspect(engine).get_table_names())
    finally:
        engine.dispose()
    if not there:
        raise _missing(where)
    if not set(Base.metadata.tables) <= there:
        raise _foreign(where)
    gradebook = Gradebook(url, course_id="")
    gradebook.db.remove()
    if url.get_backend_name() == "postgresql":
        gradebook.db.configure(bind=gradebook.engine.execution_options(postgresql_readonly=True))
    return gradebook


def _missing(where: object) -> NoGradebookError:
    return NoGradebookError(
        "there is no gradebook yet", where=where, do="Release a chapter first: tfcourse assign CHAPTER"
    )


def _foreign(where: object) -> CourseError:
    return CourseError(
        "this database is not an nbgrader gradebook", where=where, do="Check db_url in nbgrader_config.py."
    )


def _read_only(path: Path) -> URL:
    # An object and no text: in a text SQLAlchemy would take the quotation of odd signs in the path away again.
    return URL.create("sqlite", database=f"file:{quote(str(path))}", query={"mode": "ro", "uri": "true"})


def _sqlite_file(url: URL) -> Path | None:
    if not url.drivername.startswith("sqlite") or not url.database or url.database == ":memory:":
        return None
    return Path(url.database).resolve()


def released_chapters(course: Course, wanted: Sequence[str] = ()) -> list[str]:
    """Return the chapters that a course has released, by the names or the beginnings of names that were typed.

    Args:
        course: the course.
        wanted: what was typed; nothing means every chapter.

    Returns:
        Full names, in the order in which they were typed, each once.

    Raises:
        CourseError: if nothing is released, or a name means no chapter or more than one.
    """
    with open_gradebook(course) as gradebook:
        known = sorted(assignment.name for assignment in gradebook.assignments)
    if not known:
        raise CourseError(
            "no chapter has been released here yet", where=course.root, do="Release one: tfcourse assign CHAPTER"
        )
    return list(dict.fromkeys(_released(course, known, name) for name in wanted)) if wanted else known


def _released(course: Course, known: Sequence[str], typed: str) -> str:
    name = typed.strip().rstrip("/")
    matches = [chapter for chapter in known if chapter == name] or [
        chapter for chapter in known if name and chapter.startswith(name)
    ]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise CourseError(
            f"{typed!r} is the beginning of several chapters: {', '.join(matches)}", do="Write more of it."
        )
    raise CourseError(
        f"there is no chapter {typed!r} in this course; it has released: {', '.join(known)}",
        where=course.root,
        do="Name one of those, or release it first: tfcourse assign CHAPTER",
    )
