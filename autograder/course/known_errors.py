"""Translate library exceptions to messages for the user, if the user can fix the cause.

An exception that is not here is a mistake in this program, and keeps its traceback.
"""

from __future__ import annotations

import errno
import sqlite3
import sys
from pathlib import Path
from traceback import walk_tb

from autograder.course.folder import CONFIG_NAME
from autograder.errors import CourseError

_DISK = {
    errno.EACCES: "Check who may write there, or name another place.",
    errno.EPERM: "Check who may write there, or name another place.",
    errno.EROFS: "The disk is read-only: name another place.",
    errno.ENOSPC: "Free some space and run the command again.",
    errno.EDQUOT: "Free some space and run the command again.",
    errno.ENOTDIR: "A file stands where a folder is needed: move it away, or name another place.",
    errno.EISDIR: "A folder stands where a file is needed: move it away, or name another place.",
    errno.EEXIST: "Something else has that name: move it away, or name another place.",
    errno.ENAMETOOLONG: "Use a shorter name or a shorter path.",
    errno.EMFILE: "Too many files are open: use fewer --jobs, or raise the limit (ulimit -n).",
    errno.ENOMEM: "The memory is full: use fewer --jobs.",
    errno.EIO: "The disk reports an error: check it before you go on.",
}
_DATABASE = {
    "locked": ("is in use", "Let the other command finish or close the formgrader, and run the command again."),
    "readonly": ("cannot be written", "Check who may write the file and its folder."),
    "unable to open": ("cannot be opened", "Check that its folder is there, and who may write it."),
    "not a database": ("is damaged", "Put a copy in its place; or move it away, then assign and autograde again."),
    "malformed": ("is damaged", "Put a copy in its place; or move it away, then assign and autograde again."),
    "disk is full": ("cannot be written", "Free some space and run the command again."),
    "disk i/o": ("cannot be read", "Check the disk before you go on."),
    "no such table": ("is not nbgrader's, or of another version", "Run `nbgrader db upgrade` in the course folder."),
    "has no column named": ("is of another version of nbgrader", "Run `nbgrader db upgrade` in the course folder."),
    "no such column": ("is of another version of nbgrader", "Run `nbgrader db upgrade` in the course folder."),
}
# With one of these nothing more can be written at all.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
# With one of these no submission can be recorded, whoever's it is.
_UNUSABLE_DATABASE = (
    "readonly",
    "disk is full",
    "disk i/o",
    "not a database",
    "malformed",
    "no such table",
    "has no column named",
    "no such column",
)
# The packages that an extra brings; a missing module of any other name is a mistake of ours.
_EXTRAS = {
    "grading": ("IPython", "ipykernel", "jinja2", "jupytext", "matplotlib", "nbclient", "nbconvert", "msgpack", "nbformat", "nbgrader",
                "rich", "sqlalchemy", "traitlets", "yaml"),
    "pretrained": ("safetensors", "tokenizers"),
    "scale": ("distributed", "psycopg"),
    "book": ("jupyter_book", "sphinx", "sphinx_mathjax_offline"),
}  # fmt: skip


def as_course_error(error: BaseException, where: object = None) -> CourseError | None:
    """Translate an exception, perhaps about the gradebook ``where``; None if only a programmer can fix it."""
    if isinstance(error, CourseError):
        return error
    return _explain_configuration(error) or _explain_database(error, where) or _explain_machine(error)


def explain_general_error(error: BaseException, where: object = None) -> CourseError | None:
    """Translate an exception that would affect every submission, such as a full disk or a damaged gradebook.

    Args:
        error: the exception, or one that was raised because of it.
        where: the gradebook or its course.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _FULL:
            return _explain_machine(cause)
        if _is_database_error(cause) and any(phrase in str(cause).lower() for phrase in _UNUSABLE_DATABASE):
            return _explain_database(cause, where)
        cause = cause.__cause__ or cause.__context__
    return None


def _explain_configuration(error: BaseException) -> CourseError | None:
    """Explain an exception of a course's ``nbgrader_config.py``, or of a value that it sets."""
    advice = f"Fix {CONFIG_NAME}, or move it away: tfcourse assign makes a new one."
    if isinstance(error, SyntaxError) and Path(error.filename or "").name == CONFIG_NAME:
        return CourseError(f"line {error.lineno} is not Python: {error.msg}", where=error.filename, do=advice)
    for frame, line in walk_tb(error.__traceback__):
        if Path(frame.f_code.co_filename).name == CONFIG_NAME:
            problem = f"line {line} raised {type(error).__name__}: {error}"
            return CourseError(problem, where=frame.f_code.co_filename, do=advice)
    traitlets = sys.modules.get("traitlets")
    if traitlets is not None and isinstance(error, traitlets.TraitError):
        return CourseError(f"a setting in {CONFIG_NAME} has a value that it cannot have: {error}", do=advice)
    return None


def _explain_database(error: BaseException, where: object) -> CourseError | None:
    if not _is_database_error(error):
        return None
    reason = str(getattr(error, "orig", None) or error).strip()
    for phrase, (state, remedy) in _DATABASE.items():
        if phrase in reason.lower():
            return CourseError(f"the gradebook {state} ({reason})", where=where, do=remedy)
    remedy = f"Check db_url in {CONFIG_NAME}, and that the database runs."
    return CourseError(f"the gradebook cannot be used ({reason})", where=where, do=remedy)


def _is_database_error(error: BaseException) -> bool:
    """Return whether the database is at fault, not the SQL or a constraint, whose errors are subclasses."""
    kinds: list[type[BaseException]] = [sqlite3.OperationalError]
    plain: list[type[BaseException]] = [sqlite3.DatabaseError]
    exceptions = sys.modules.get("sqlalchemy.exc")
    if exceptions is not None:
        kinds += [exceptions.OperationalError, exceptions.ArgumentError, exceptions.NoSuchModuleError]
        plain += [exceptions.DatabaseError]
    return isinstance(error, tuple(kinds)) or type(error) in plain


def _explain_machine(error: BaseException) -> CourseError | None:
    if isinstance(error, OSError) and error.errno in _DISK:
        reason = (error.strerror or str(error)).lower()
        return CourseError(reason, where=error.filename, do=_DISK[error.errno])
    if isinstance(error, MemoryError):
        return CourseError("the memory is full", do="Close other programs, or use fewer --jobs.")
    if isinstance(error, ModuleNotFoundError):
        top = (error.name or "").partition(".")[0]
        for extra, names in _EXTRAS.items():
            if top in names:
                problem = f"the package {top} is not installed in this environment"
                return CourseError(problem, do=f"Install it: pip install 'tfcourse[{extra}]'")
    return None
