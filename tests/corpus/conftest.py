"""A course with the corpus's small chapter in it, released by nbgrader into a temporary folder."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.course.authoring.chapter import find_chapter
from autograder.course.folder import Course
from autograder.course.release.nbgrader_release import generate_assignment
from autograder.course.release.student_build import build_student_wheel
from autograder.intake.notebook.manifest import Manifest, released_manifest

from .material import CHAPTER, EXERCISES, notebook, source_cells

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course in which two chapters are released and nothing is handed in. Do not write into it."""
    root = tmp_path_factory.mktemp("corpus") / "course"
    release(root, EXERCISES)
    return root


def release(root: Path, exercises: Mapping[str, Iterable[str]], *, wheels: bool = True) -> Course:
    """Make a course in which chapters are released, each with some exercises in it, and what students install, if it is asked for."""
    # The gradebook calls alembic by its name when it is made; it lies beside this Python.
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{path}"
    course = Course.open(root, create=True)
    for chapter, names in exercises.items():
        source = root / "source" / chapter / f"{chapter}.ipynb"
        source.parent.mkdir(parents=True)
        nbformat.write(nbformat.from_dict(notebook(source_cells(chapter, names))), source)
        generate_assignment(course.config(), chapter)
        # What students have installed is what their code finds when it is graded.
        if wheels:
            build_student_wheel(PROJECT, find_chapter(PROJECT, chapter), root / "student" / chapter)
    os.environ["PATH"] = path
    return course


def plain(path: Path) -> dict[str, Any]:
    """Return a notebook as plain data."""
    data: dict[str, Any] = json.loads(path.read_bytes())
    for cell in data["cells"]:
        cell["source"] = "".join(cell["source"])
    return data


@pytest.fixture
def course(pristine: Path, tmp_path: Path) -> Course:
    """A course of one's own."""
    return Course.open(Path(shutil.copytree(pristine, tmp_path / "mine" / "course")))


@pytest.fixture(scope="session")
def released(pristine: Path) -> dict[str, dict[str, Any]]:
    """The released notebooks as plain data, by chapter."""
    return {chapter: plain(pristine / "release" / chapter / f"{chapter}.ipynb") for chapter in EXERCISES}


@pytest.fixture(scope="session")
def manifest(pristine: Path) -> Manifest:
    """The chapter's cells."""
    return released_manifest(Course.open(pristine), CHAPTER)
