"""Erase a student from a course folder: submissions, grades, pages, journals and the entry in the class list."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import tomlkit
from nbgrader.api import Gradebook, MissingEntry
from sqlalchemy.engine import make_url

from autograder.atomic_files import write_atomically
from autograder.course.course_file import course_file_path
from autograder.course.folder import Course
from autograder.course.gradebook.reader import sqlite_file
from autograder.grading.reports.moodle import forget_exported
from autograder.intake.roster import Student, read_roster, write_roster

# The folders in which a student has folders and files of their own.
_OF_STUDENTS = ("submitted", "autograded", "feedback", "replaced", "uncounted", "results", "journal", "viva")
# The folders with JSON about several students.
_OF_CLASS = ("journal", "marks", "viva")
# What commands write again from the rest; archives cannot be searched.
_REGENERATED = ("export", "report.html", "viva/*/*.html")
# What students receive, and where it comes from: nobody is named there.
_WITHOUT_PEOPLE = ("source", "release", "student")


def erase(course: Course, student: str) -> tuple[list[str], list[str]]:
    """Erase a student from the course folder.

    Args:
        course: the course; the caller holds its lock.
        student: the exact id.

    Returns:
        The top folders and files from which something was removed, and the files that still name the student.
    """
    root, roster = course.root.resolve(), read_roster(course)
    entry = roster.pop(student, Student(student))
    is_named = _make_name_finder({student, *filter(None, (entry.name, entry.email, entry.login, entry.number))})
    touched = {"gradebook.db"} if _erase_from_gradebook(course, student) else set()
    for path in [*_owned_paths(root, student), *(path for pattern in _REGENERATED for path in root.glob(pattern))]:
        if path.exists():
            (shutil.rmtree if path.is_dir() else Path.unlink)(path)
            touched.add(path.relative_to(root).parts[0])
    for path in (path for top in _OF_CLASS for path in sorted((root / top).rglob("*.json*"))):
        before = path.read_text(encoding="utf-8")
        lines = before.splitlines() if path.suffix == ".jsonl" else [before]
        texts = [_erase_from_line(line, student, is_named) if is_named(line.encode()) else line for line in lines]
        if texts != lines:
            data = "".join(f"{text}\n" for text in texts if text).encode()
            write_atomically(path, data, mode=path.stat().st_mode & 0o777)
            touched.add(path.relative_to(root).parts[0])
    forget_exported(course, entry)
    if _erase_from_course_file(root, student):
        touched.add(course_file_path(root).name)
    write_roster(course, roster)
    remaining = [
        path.relative_to(root).as_posix()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in _WITHOUT_PEOPLE and is_named(path.read_bytes())
    ]
    return sorted({*touched, "students.json"}), remaining


def _owned_paths(root: Path, student: str) -> Iterator[Path]:
    """Yield the folders and files that belong to this student alone."""
    for top in _OF_STUDENTS:
        for path in sorted((root / top).rglob("*")):
            if path.name == student or (path.stem == student and path.suffix == ".json"):
                yield path


def _make_name_finder(names: set[str]) -> Callable[[bytes], bool]:
    """Return a function that searches bytes for any of some names as a word, also in JSON's escaped form."""
    spelled = {text for name in names for text in (name, json.dumps(name)[1:-1])}
    pattern = "|".join(re.escape(text) for text in sorted(spelled))
    mention = re.compile(rb"(?<![\w@.-])(?:" + pattern.encode() + rb")(?![\w@-])")
    return lambda data: mention.search(data) is not None


def _erase_from_line(line: str, student: str, is_named: Callable[[bytes], bool]) -> str:
    """Return a JSON line without the entries about a student; an invalid, truncated line becomes empty."""
    try:
        remaining = _erase_from_json(json.loads(line), student, is_named)
    except ValueError:
        return ""
    return "" if remaining is None else json.dumps(remaining)


def _erase_from_json(value: Any, student: str, is_named: Callable[[bytes], bool]) -> Any:
    """Return a JSON value without the entries about a student; None if it is entirely about the student."""
    if isinstance(value, dict):
        if value.get("student") == student:
            return None
        return {name: _erase_from_json(other, student, is_named) for name, other in value.items() if name != student}
    if isinstance(value, list):
        texts = [other for other in value if not (isinstance(other, str) and is_named(other.encode()))]
        pruned = [_erase_from_json(other, student, is_named) for other in texts]
        return [other for other, before in zip(pruned, texts, strict=True) if other is not None or before is None]
    return value


def _erase_from_gradebook(course: Course, student: str) -> bool:
    """Delete a student's rows, and make SQLite overwrite the deleted data."""
    with Gradebook(course.gradebook_url, str(course.config().CourseDirectory.get("course_id", ""))) as gradebook:
        try:
            gradebook.remove_student(student)
        except MissingEntry:
            return False
    if (path := sqlite_file(make_url(course.gradebook_url))) is not None:
        with closing(sqlite3.connect(path)) as database:
            database.execute("VACUUM")
    return True


def _erase_from_course_file(root: Path, student: str) -> bool:
    """Delete a student's dates from ``course.toml``."""
    path = course_file_path(root)
    document = tomlkit.parse(path.read_text(encoding="utf-8")) if path.exists() else tomlkit.document()
    removed = [document[table].pop(student, None) for table in ("extensions", "deadlines") if table in document]
    if any(dates is not None for dates in removed):
        write_atomically(path, tomlkit.dumps(document).encode())
        return True
    return False
