"""Looking into a gradebook makes nothing and changes nothing, and says what is wrong with it."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook, released_chapters
from autograder.errors import CourseError


def test_chapters_are_found_by_name_and_by_beginning_each_once(course_dir: Path) -> None:
    course = Course.open(course_dir)
    assert released_chapters(course) == ["03_scaled_dot_product", "04_multi_head"]
    assert released_chapters(course, ["04", "04_multi_head/", "03_s"]) == ["04_multi_head", "03_scaled_dot_product"]


def test_reading_leaves_every_byte_and_makes_no_file(
    course_dir: Path, snapshot: Callable[[Path], dict[str, str]]
) -> None:
    before = snapshot(course_dir)
    with open_gradebook(Course.open(course_dir)) as gradebook:
        assert len(gradebook.assignments) == 2
    assert snapshot(course_dir) == before


@pytest.mark.parametrize("content", [None, b""], ids=["missing", "empty"])
def test_a_gradebook_that_is_not_there_yet_is_not_made(course_dir: Path, content: bytes | None) -> None:
    path = course_dir / "gradebook.db"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CourseError, match="no gradebook") as caught, open_gradebook(Course.open(course_dir)):
        pass
    assert caught.value.do.endswith(f"tfcourse assign CHAPTER --course {course_dir}")
    assert (path.read_bytes() if path.exists() else None) == content


def test_another_programs_database_is_told_apart_and_gets_no_tables(course_dir: Path) -> None:
    path = course_dir / "gradebook.db"
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(CourseError, match="nbgrader"), open_gradebook(Course.open(course_dir)):
        pass
    assert path.read_bytes() == before


def test_looking_cannot_change_anything(course_dir: Path) -> None:
    with open_gradebook(Course.open(course_dir)) as gradebook, pytest.raises(OperationalError, match="readonly"):
        gradebook.db.execute(text("DELETE FROM assignment"))


KILLED_WRITER = """
import os, signal, sqlite3, sys
gradebook = sqlite3.connect(sys.argv[1], isolation_level=None)
gradebook.execute("PRAGMA cache_size = 1")  # so that the file is written before the commit
gradebook.execute("BEGIN")
for number in range(200):
    gradebook.execute("INSERT INTO student (id, first_name) VALUES (?, ?)", (f"half {number}", "x" * 500))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_writer_left_that_was_killed_in_a_commit_is_taken_back(course_dir: Path) -> None:
    path = course_dir / "gradebook.db"
    before = path.read_bytes()
    assert subprocess.run([sys.executable, "-c", KILLED_WRITER, path]).returncode == -signal.SIGKILL
    assert path.read_bytes() != before
    assert (course_dir / "gradebook.db-journal").stat().st_size
    with open_gradebook(Course.open(course_dir)) as gradebook:
        assert gradebook.students == []
        assert len(gradebook.assignments) == 2
    assert path.read_bytes() == before


def test_a_course_whose_path_has_signs_of_an_address_in_it_is_read(course_dir: Path, tmp_path: Path) -> None:
    odd = course_dir.rename(tmp_path / "autumn 50% #1")
    assert len(released_chapters(Course.open(odd))) == 2
