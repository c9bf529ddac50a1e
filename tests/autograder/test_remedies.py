"""What a library raises is explained where a person can put it right, and left alone where it is a mistake of ours."""

from __future__ import annotations

import errno
import sqlite3
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError
from traitlets import HasTraits, Integer

from autograder.course.known_errors import as_course_error, explain_general_error
from autograder.errors import CourseError


def explained(*about: Any) -> CourseError:
    """Return the explanation of an error that has one."""
    known = as_course_error(*about)
    assert known is not None
    return known


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("database is locked", "in use"),
        ("attempt to write a readonly database", "written"),
        ("unable to open database file", "opened"),
        ("database disk image is malformed", "damaged"),
        ("no such column: student.lms_user_id", "version"),
        ("connection refused", "used"),
    ],
)
def test_a_gradebook_that_cannot_be_used_is_explained(said: str, words: str) -> None:
    for error in (sqlite3.OperationalError(said), OperationalError("SELECT 1", {}, sqlite3.OperationalError(said))):
        known = explained(error, "gradebook.db")
        assert words in known.what
        assert said in known.what
        assert known.where == "gradebook.db"
        assert known.do


def test_a_file_that_is_no_database_is_explained(tmp_path: Path) -> None:
    (tmp_path / "gradebook.db").write_bytes(b"not a database at all" * 100)
    with (
        pytest.raises(Exception, match="database") as caught,
        create_engine(f"sqlite:///{tmp_path}/gradebook.db").connect() as db,
    ):
        db.execute(text("SELECT 1 FROM sqlite_master"))
    known = explained(caught.value)
    assert "damaged" in known.what


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC, errno.ENOTDIR, errno.EEXIST])
def test_a_disk_that_refuses_is_explained_with_the_place(number: int) -> None:
    known = explained(OSError(number, "refused", "some/file"))
    assert (known.where, bool(known.do)) == ("some/file", True)


def raised_from(*errors: Exception) -> Exception:
    """Return the last of some exceptions, each raised while the one before was handled."""
    for before, error in pairwise(errors):
        error.__context__ = before
    return errors[-1]


def test_what_ends_a_run_is_found_behind_what_was_made_of_it() -> None:
    full = OperationalError("COMMIT", {}, sqlite3.OperationalError("database or disk is full"))
    for error in (raised_from(full, ValueError("see above")), raised_from(OSError(errno.ENOSPC, "full"), KeyError())):
        known = explain_general_error(error)
        assert known is not None
        assert "space" in known.do
    locked = OperationalError("COMMIT", {}, sqlite3.OperationalError("database is locked"))
    for error in (raised_from(locked, ValueError()), OSError(errno.EACCES, "no"), ValueError()):
        assert explain_general_error(error) is None


def test_a_setting_that_cannot_be_is_explained() -> None:
    class Settings(HasTraits):
        timeout = Integer()

    with pytest.raises(Exception, match="timeout") as caught:
        Settings(timeout="sixty")
    known = explained(caught.value)
    assert "nbgrader_config.py" in known.what


def test_a_package_that_is_not_installed_is_explained_by_the_extra_that_brings_it() -> None:
    known = explained(ModuleNotFoundError("No module named 'nbgrader.api'", name="nbgrader.api"))
    assert "pip install 'tfcourse[grading]'" in known.do


def test_an_error_that_is_explained_already_stays_what_it_is() -> None:
    error = CourseError("so", where="here", do="that")
    assert as_course_error(error) is error


@pytest.mark.parametrize(
    "error",
    [
        FileNotFoundError(errno.ENOENT, "No such file or directory", "template.html"),
        KeyError("student"),
        ModuleNotFoundError("No module named 'autograder.reprots'", name="autograder.reprots"),
        IntegrityError("INSERT", {}, sqlite3.IntegrityError("UNIQUE constraint failed")),
        ProgrammingError("SELEKT", {}, sqlite3.ProgrammingError("wrong number of bindings")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_mistake_of_ours_is_not_explained_away(error: BaseException) -> None:
    assert as_course_error(error) is None
