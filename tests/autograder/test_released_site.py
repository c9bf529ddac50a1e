"""A course's own site offers what the course has released, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.commands.released_site import read_released_site
from autograder.course.folder import Course
from autograder.errors import CourseError

TOML = """\
title = "Attention, winter"
[chapters.03_scaled_dot_product]
due = 2026-10-24T20:00:00
"""


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course that has released two chapters."""
    Course.open(tmp_path / "course", create=True)
    for chapter in ("03_scaled_dot_product", "07_decoding"):
        folder = tmp_path / "course" / "student" / chapter
        folder.mkdir(parents=True)
        for name in (
            f"{chapter}.ipynb",
            f"{chapter[:2]}_lesson.ipynb",
            "tfcourse-0.4.0-py3-none-any.whl",
            "README.txt",
        ):
            (folder / name).write_text(chapter)
    (tmp_path / "course" / "course.toml").write_text(TOML, encoding="utf-8")
    return tmp_path / "course"


def test_the_files_title_and_deadlines_are_the_courses(course: Path) -> None:
    site = read_released_site(course)
    assert {chapter: [path.name for path in paths] for chapter, paths in site.files.items()} == {
        chapter: [f"{chapter[:2]}_lesson.ipynb", f"{chapter}.ipynb", "tfcourse-0.4.0-py3-none-any.whl"]
        if f"{chapter[:2]}_lesson" < chapter
        else [f"{chapter}.ipynb", f"{chapter[:2]}_lesson.ipynb", "tfcourse-0.4.0-py3-none-any.whl"]
        for chapter in ("03_scaled_dot_product", "07_decoding")
    }
    assert site.course.title == "Attention, winter"
    assert list(site.course.dates) == ["03_scaled_dot_product"]
    assert site.course.dates["03_scaled_dot_product"].startswith("Due on Saturday, 24 October 2026, 20:00 (UTC).")
    assert list(read_released_site(course, ["07_decoding"]).files) == ["07_decoding"]


def test_another_file_is_another_site(course: Path) -> None:
    before = read_released_site(course).key()
    assert read_released_site(course).key() == before
    (course / "student" / "07_decoding" / "07_decoding.ipynb").write_text("other exercises")
    assert read_released_site(course).key() != before


def test_a_course_that_has_released_nothing_is_refused(tmp_path: Path) -> None:
    Course.open(tmp_path / "course", create=True)
    with pytest.raises(CourseError, match="released"):
        read_released_site(tmp_path / "course")
