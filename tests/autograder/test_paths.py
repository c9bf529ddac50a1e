"""Which folders a command works on."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from autograder.course.folder import Course
from autograder.course.lock import InUseError, course_lock
from autograder.course.paths import course_folder, create_or_open_course, project_root, require_writable, shell_command
from autograder.errors import CourseError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a folder deep inside it."""
    root = tmp_path / "project"
    (root / "chapters" / "03" / "deep").mkdir(parents=True)
    (root / "_config.yml").touch()
    return root


def test_the_project_is_the_nearest_folder_upwards(project: Path) -> None:
    assert project_root(project / "chapters" / "03" / "deep") == project
    assert project_root(project) == project


def test_a_folder_without_a_project_above_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="project"):
        project_root(tmp_path)


def test_the_course_is_the_one_named_else_the_one_around_else_the_projects(project: Path, tmp_path: Path) -> None:
    named = tmp_path / "elsewhere"
    assert course_folder(named, project) == named
    assert course_folder(None, project / "chapters") == project / "course"
    inside = project / "autumn" / "submitted" / "ada"
    inside.mkdir(parents=True)
    (project / "autumn" / "nbgrader_config.py").touch()
    assert course_folder(None, inside) == project / "autumn"
    assert course_folder(None, project) == project / "course"


def fail_after_making(course: Path, name: str) -> None:
    """Begin a new course, make one thing in it, and fail."""
    with create_or_open_course(course) as made:
        (made.root / name).mkdir()
        raise KeyError(name)


def test_a_new_course_goes_with_the_folders_that_were_made_for_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CourseError), create_or_open_course(tmp_path / "a" / "course"):
        require_writable(tmp_path / "file", "Name another.")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_new_course_belongs_to_one_until_it_is_made(tmp_path: Path) -> None:
    with create_or_open_course(tmp_path / "course") as course:
        with pytest.raises(InUseError, match="is running"):
            fail_after_making(course.root, "never")
        assert [path.name for path in course.root.iterdir() if path.is_file()] == ["nbgrader_config.py"]


def test_a_command_names_the_course_unless_it_is_the_one_that_is_meant_here(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, other = Course(project / "course"), Course(tmp_path / "autumn term")
    monkeypatch.chdir(project / "chapters")
    assert "--course" not in shell_command(own, "report")
    assert shell_command(other, "report").endswith(f"--course '{tmp_path}/autumn term'")
    monkeypatch.chdir(tmp_path)
    assert shell_command(own, "report").endswith(f"--course {project}/course")


def test_what_was_finished_before_the_failure_is_kept(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        fail_after_making(tmp_path / "course", "release")
    assert (tmp_path / "course" / "nbgrader_config.py").is_file()


def test_a_place_below_a_file_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    require_writable(tmp_path / "new" / "folder", "Name another.")
    for place in (tmp_path / "file", tmp_path / "file" / "folder" / "folder"):
        with pytest.raises(CourseError, match="not a folder\nName another"):
            require_writable(place, "Name another.")


def test_a_file_system_without_locks_is_told_in_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    course = Course.open(tmp_path, create=True)
    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(CourseError) as error, course_lock(course):
        pytest.fail("not locked")
    assert "No locks" in error.value.what
    assert error.value.do
