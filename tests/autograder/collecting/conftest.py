"""A course with two small chapters in it, released by nbgrader into a temporary folder, and notebooks to hand in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from autograder.course.folder import Course
from tests.corpus.conftest import plain, release
from tests.corpus.material import CHAPTER, EXERCISES, OTHER, Work


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course in which two chapters are released and nothing is handed in. Do not write into it."""
    root = tmp_path_factory.mktemp("collecting") / "course"
    release(root, EXERCISES, wheels=False)
    return root


@pytest.fixture
def course(pristine: Path, tmp_path: Path) -> Course:
    """A course of one's own."""
    return Course.open(Path(shutil.copytree(pristine, tmp_path / "course")))


@pytest.fixture(scope="session")
def contents(pristine: Path) -> dict[str, bytes]:
    """What files hold, by the names that the table of downloads uses."""
    released = {name: pristine / "release" / name / f"{name}.ipynb" for name in EXERCISES}
    one = Work.done(plain(released[CHAPTER])).json()
    return {
        "one": one,
        "two": one.replace(b"return ", b"return +"),
        "three": one.replace(b"return ", b"return ++"),
        "cut": one[:300],
        "blank": released[CHAPTER].read_bytes(),
        "other": Work.done(plain(released[OTHER])).json(),
        "pdf": b"%PDF-1.4",
        "text": b"print()",
        "early": b"2020-01-01 00:00:00 UTC",
        "time": b"2026-03-01 10:00:00 UTC",
        "gradescope": (Path(__file__).parent / "submission_metadata.yml").read_bytes(),
    }
