"""An empty course folder for the tests of collecting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest

from autograder.course.folder import Course
from autograder.intake.downloads.archive import Entry
from autograder.intake.downloads.uploads import Upload
from autograder.intake.people.enrol import Enrolment, enrol

Enrol = Callable[..., Enrolment]


def moodle(owner: str, number: str) -> Upload:
    """Return a file as Moodle's download has it."""
    entry = Entry(PurePosixPath(f"{owner}_{number}_assignsubmission_file/a.ipynb"), None, bytes)
    return Upload(entry, owner, "moodle", upload=number)


@pytest.fixture(scope="session")
def empty_course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A course folder without anything in it. Tests give it a root of their own."""
    return Course.open(tmp_path_factory.mktemp("enrolment") / "course", create=True)


@pytest.fixture
def course(empty_course: Course, tmp_path: Path) -> Course:
    """An empty course of one's own."""
    root = tmp_path / "course"
    root.mkdir()
    (root / "nbgrader_config.py").write_bytes((empty_course.root / "nbgrader_config.py").read_bytes())
    return Course.open(root)


@pytest.fixture
def enrolled(course: Course, tmp_path: Path) -> Enrol:
    """Return a function that reads a class list into the course."""

    def read(text: str | bytes, name: str = "class.csv", **options: bool) -> Enrolment:
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return enrol(course, path, **options)

    return read


@pytest.fixture
def hand_in(course: Course) -> Callable[..., None]:
    """Return a function that makes a student's folder of a chapter, as a collection does."""

    def make(student: str, chapter: str = "03_scaled_dot_product") -> None:
        course.folder("submitted", student, chapter).mkdir(parents=True)

    return make
