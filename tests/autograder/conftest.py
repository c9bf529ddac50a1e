"""What the tests of commands share: a small course that nbgrader has released, and a way to see that nothing changed."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner, Result
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from autograder.checks import exercise
from autograder.commands.main import main
from autograder.course.authoring.chapter import find_chapter, load_chapters
from autograder.course.authoring.exercise_source import solution_source
from autograder.course.folder import Course
from autograder.course.known_names import store_project_chapters
from autograder.course.release import student_build
from autograder.course.release.nbgrader_release import generate_assignment
from tests.autograder.made_once import made_once
from tests.corpus.material import mark

PROJECT = Path(__file__).resolve().parents[2]
# Two chapters, for a notebook may belong to the other one; one exercise each, so that nbgrader has little to do.
RELEASED = {"03_scaled_dot_product": "causal_mask", "04_multi_head": "split_heads"}


@pytest.fixture
def run() -> Callable[..., Result]:
    """Return a function that runs a command in this process."""
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def snapshot() -> Callable[[Path], dict[str, str]]:
    """Return a function that describes a folder: every name in it, and a hash of every file."""

    def describe(folder: Path) -> dict[str, str]:
        return {
            str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
            for path in sorted(folder.rglob("*"))
        }

    return describe


@pytest.fixture(scope="session")
def released(shared_folder: Path) -> Path:
    """A course folder in which two chapters are released. Do not write into it."""
    return made_once(shared_folder / "released", _release)


def _release(root: Path) -> None:
    """Make a course folder in which two chapters are released."""
    course = Course.open(root, create=True)
    for chapter, name in RELEASED.items():
        source = root / "source" / chapter / f"{chapter}.ipynb"
        source.parent.mkdir(parents=True)
        nbformat.write(_source(chapter, name), source)
        generate_assignment(course.config(), chapter)
        # What students have installed is what their code finds when it is graded.
        student_build.build_student_wheel(PROJECT, find_chapter(PROJECT, chapter), root / "student" / chapter)
    store_project_chapters(root, (chapter.name for chapter in load_chapters(PROJECT)))


@pytest.fixture
def course_dir(released: Path, tmp_path: Path) -> Path:
    """A course folder of one's own in which two chapters are released."""
    return Path(shutil.copytree(released, tmp_path / "mine" / "course"))


@pytest.fixture
def graded_dir(course_dir: Path) -> Path:
    """A course with a student who has a grade."""
    with Gradebook(Course.open(course_dir).gradebook_url, "tfcourse") as gradebook:
        gradebook.add_student("ada", first_name="Ada", last_name="Lovelace")
        gradebook.add_submission("04_multi_head", "ada")
    return course_dir


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with all chapters, without a course, a solution notebook or a package of its own; it is the current folder."""
    root = tmp_path / "project"
    shutil.copytree(PROJECT / "chapters", root / "chapters")
    (root / "_config.yml").write_text("title: A course\n", encoding="utf-8")
    monkeypatch.chdir(root)
    return root


def refused(result: Result, *words: str) -> None:
    """Assert that a command was refused: exit code 2, a message with these words, nothing on standard output, no traceback."""
    assert isinstance(result.exception, SystemExit), result.exception
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert result.stderr.startswith(("tfcourse: ", "Usage: "))
    assert "Traceback" not in result.stderr
    assert [word for word in words if word not in result.stderr] == [], result.stderr


@pytest.fixture
def notebook(released: Path) -> Callable[..., str]:
    """Return a function that makes a student's notebook of a chapter: solved, or as it was given out."""

    def make(chapter: str, *, solved: bool = True) -> str:
        found = nbformat.read(released / "release" / chapter / f"{chapter}.ipynb", as_version=4)
        for cell in found.cells:
            if solved and cell.metadata.get("nbgrader", {}).get("grade_id") == RELEASED[chapter]:
                cell.source = solution_source(exercise(RELEASED[chapter]))
        return str(nbformat.writes(found))

    return make


def _source(chapter: str, name: str) -> nbformat.NotebookNode:
    about = exercise(name)
    setup = "import math\n\nimport torch\nfrom torch import Tensor, nn\n\nfrom tfcourse import check\n"
    test = f"check({name})\n### BEGIN HIDDEN TESTS\ncheck({name}, hidden=True)\n### END HIDDEN TESTS"
    cells = [
        new_markdown_cell(f"# {chapter}", id="title"),
        new_code_cell(setup, id="setup", metadata=mark("setup", locked=True)),
        new_code_cell(solution_source(about), id=name.replace("_", "-"), metadata=mark(name, solution=True)),
        new_code_cell(test, id="test", metadata=mark(f"test_{name}", grade=True, locked=True, points=about.points)),
    ]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


@pytest.fixture
def bound_by_permissions() -> Callable[[], AbstractContextManager[None]]:
    """Return what makes a block one of somebody to whom permissions apply."""
    return _bound_by_permissions


@contextmanager
def _bound_by_permissions() -> Iterator[None]:
    """Be somebody to whom permissions apply. Root puts aside, for this thread, the two capabilities that make it ignore them."""
    if os.geteuid() != 0:
        yield
        return
    before = _capabilities()
    _set_capabilities([before[0] & ~DAC, *before[1:]])
    try:
        yield
    finally:
        _set_capabilities(before)


# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH; the header of capget and capset, version 3, for the calling thread.
DAC = 0b110
HEADER = (ctypes.c_uint32 * 2)(0x20080522, 0)


def _capabilities() -> list[int]:
    """Return this thread's capabilities: effective, permitted, inheritable, and their upper halves."""
    data = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None, use_errno=True).capget(HEADER, data) == 0, os.strerror(ctypes.get_errno())
    return list(data)


def _set_capabilities(values: list[int]) -> None:
    """Set this thread's capabilities."""
    data = (ctypes.c_uint32 * 6)(*values)
    assert ctypes.CDLL(None, use_errno=True).capset(HEADER, data) == 0, os.strerror(ctypes.get_errno())
