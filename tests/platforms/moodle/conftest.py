"""A course whose students hand in on Moodle, and where Moodle's files lie."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autograder.course.folder import Course
from autograder.course.release import student_build
from autograder.intake.people.enrol import enrol
from tests.corpus.conftest import release

FILES = Path(__file__).parent
CHAPTER = "03_scaled_dot_product"


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course in which the chapter is released. Do not write into it."""
    root = tmp_path_factory.mktemp("moodle") / "course"
    with pytest.MonkeyPatch.context() as patch:
        # Recorded answers are for checks at home and take half a minute per chapter.
        patch.setattr(student_build, "_read_recordings", lambda root, chapter: {})
        release(root, {CHAPTER: ("soft_lookup", "causal_mask", "padding_mask")})
    return root


@pytest.fixture
def course(pristine: Path, tmp_path: Path) -> Course:
    """A course of one's own, with Moodle's list of participants."""
    course = Course.open(Path(shutil.copytree(pristine, tmp_path / "course")))
    enrol(course, FILES / "participants_en.csv")
    return course
