"""What the tests of lessons on students' machines share."""

import fcntl
from pathlib import Path

import pytest

from autograder.course.authoring.chapter import load_chapters
from autograder.course.release.lesson_notebook import lesson_notebooks

from .own_code import ROOT


@pytest.fixture(scope="session")
def lessons(shared_folder: Path) -> dict[str, bytes]:
    """The lesson notebooks of all chapters; where no test has left their outputs, one process executes them, and the others wait."""
    with (shared_folder / "lessons.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lesson_notebooks(load_chapters(ROOT))
