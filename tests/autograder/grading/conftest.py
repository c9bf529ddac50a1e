"""A small course: a few real exercises of two chapters and one question each, released by nbgrader into a temporary folder."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.checks import exercise
from autograder.course.authoring.chapter import find_chapter
from autograder.course.authoring.exercise_source import solution_source, standalone_source
from autograder.course.folder import Course
from autograder.course.release.nbgrader_release import generate_assignment
from autograder.course.release.student_build import build_student_wheel

PROJECT = Path(__file__).resolve().parents[3]
CHAPTER = "03_scaled_dot_product"
OTHER = "04_multi_head"
EXERCISES = {CHAPTER: ("causal_mask", "merge_query_key", "soft_lookup"), OTHER: ("split_heads",)}
SETUP = "import math\n\nimport torch\nfrom torch import Tensor, nn\n\nfrom tfcourse import check\n"
PROMPT = "## Why is there a square root?\n\nExplain in two sentences why the scores are divided by $\\sqrt{D_h}$."
Fill = Callable[..., Any]
HandIn = Callable[..., Path]
Snapshot = Callable[[Path], dict[str, str]]
HIDDEN = "\n### BEGIN HIDDEN TESTS\ncheck({name}, hidden=True)\n### END HIDDEN TESTS"


def mark(name: str, **flags: Any) -> dict[str, Any]:
    """Return nbgrader metadata."""
    plain = {"grade": False, "locked": False, "solution": False, "task": False, "schema_version": 3, "grade_id": name}
    return {"nbgrader": plain | flags}


def source_notebook(chapter: str) -> Any:
    """Return a source notebook as ``tfcourse assign`` makes it, with fewer exercises."""
    cells = [
        new_markdown_cell(f"# Exercises of {chapter}"),
        new_code_cell(SETUP, metadata=mark("setup", locked=True)),
    ]
    for name in EXERCISES[chapter]:
        about = exercise(name)
        test = f"check({name}){HIDDEN.format(name=name)}"
        cells += [
            new_markdown_cell(f"## {name.replace('_', ' ').capitalize()}\n\nWrite `{name}`."),
            new_code_cell(solution_source(about), metadata=mark(name, solution=True)),
            new_code_cell(test, metadata=mark(f"test_{name}", grade=True, locked=True, points=about.points)),
        ]
    answer = "### BEGIN SOLUTION\nBecause of the variance.\n### END SOLUTION"
    cells += [
        new_markdown_cell(PROMPT, metadata=mark("prompt_root", locked=True)),
        new_markdown_cell(answer, metadata=mark("question_root", grade=True, solution=True, points=4)),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"source-{number}"
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


@pytest.fixture(scope="session", autouse=True)
def _tools_on_the_path() -> None:
    """The gradebook calls alembic by its name when it makes a gradebook; it lies beside this Python."""
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course in which both chapters are released and nothing is handed in. Do not write into it."""
    root = tmp_path_factory.mktemp("pristine") / "course"
    course = Course.open(root, create=True)
    for chapter in EXERCISES:
        path = root / "source" / chapter / f"{chapter}.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(source_notebook(chapter), path)
        generate_assignment(course.config(), chapter)
        # What students have installed is what their code finds when it is graded.
        build_student_wheel(PROJECT, find_chapter(PROJECT, chapter), root / "student" / chapter)
    return root


@pytest.fixture
def course(pristine: Path, tmp_path: Path) -> Course:
    """A course of one's own."""
    root = tmp_path / "course"
    shutil.copytree(pristine, root)
    return Course.open(root)


@pytest.fixture(scope="session")
def right() -> dict[str, str]:
    """The right solution of each exercise, as a student would write it."""
    names = [name for chapter in EXERCISES.values() for name in chapter]
    return {name: standalone_source(exercise(name).reference, rename=name) for name in names}


@pytest.fixture(scope="session")
def filled(pristine: Path) -> Callable[..., Any]:
    """Make a student's notebook of the released one."""

    def fill(chapter: str = CHAPTER, answer: str | None = None, **code: str) -> Any:
        path = pristine / "release" / chapter / f"{chapter}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name in code:
                cell.source = code[name]
            if name == "question_root" and answer is not None:
                cell.source = answer
        return notebook

    return fill


def put(course: Course, student: str, what: Any, chapter: str = CHAPTER) -> Path:
    """Put a notebook, or whatever else, where a submission goes."""
    path = course.root / "submitted" / student / chapter / f"{chapter}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(what, bytes):
        path.write_bytes(what)
    else:
        nbformat.write(what, path)
    return path


@pytest.fixture
def hand_in(course: Course) -> Callable[..., Path]:
    """Put a notebook, or whatever else, where a submission goes."""
    return partial(put, course)
