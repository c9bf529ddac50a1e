"""The pages on own exercises and on JupyterHub, followed word for word: their notebook, their commands, what they promise."""

from __future__ import annotations

import csv
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from click.testing import Result
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.apps import NbGraderApp

from autograder.course.folder import Course
from autograder.course.gradebook.nbgrader_log import silence_warnings

BOOK = Path(__file__).parents[2] / "book"
NAME = "homework"
EXCHANGE = "/srv/nbgrader/exchange"


def blocks(page: str, language: str) -> list[str]:
    """Return the blocks of code of a page."""
    text = (BOOK / f"{page}.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def commands(page: str, program: str) -> list[list[str]]:
    """Return the words of a page's command lines for a program, without its name."""
    lines = [line for block in blocks(page, "shell") for line in block.splitlines()]
    return [line.split()[1:] for line in lines if line.split()[0] == program]


def nbgrader(*words: str) -> None:
    """Run a command of nbgrader in this process, as its own tests do."""
    with silence_warnings():
        app = NbGraderApp.subcommands[words[0]][0]()
        app.initialize(list(words[1:]))
        app.start()


def cell(name: str, source: str, **flags: object) -> object:
    plain = {"grade": False, "locked": False, "solution": False, "task": False, "schema_version": 3, "grade_id": name}
    return new_code_cell(source, metadata={"nbgrader": plain | flags})


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A course folder with the page's notebook; it is the current folder, and nbgrader has an exchange."""
    config = tmp_path / "jupyter"
    config.mkdir()
    settings, *_ = blocks("jupyterhub", "python")
    (config / "nbgrader_config.py").write_text(settings.replace(EXCHANGE, str(tmp_path / "exchange")))
    (tmp_path / "exchange").mkdir()
    (tmp_path / "exchange").chmod(0o777)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(config))
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    made = Course.open(tmp_path / "course", create=True)
    solution, test = blocks("own-exercises", "python")
    path = made.folder("source", chapter=NAME) / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True)
    tests = cell("test_count_tokens", test, grade=True, locked=True, points=3)
    nbformat.write(new_notebook(cells=[cell("count_tokens", solution, solution=True), tests]), path)
    monkeypatch.chdir(made.root)
    for words in commands("own-exercises", "nbgrader"):
        nbgrader(*words)
    return made


def answer(path: Path, code: str) -> None:
    """Write a function into a student's copy of the notebook."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[0].source = code
    nbformat.write(notebook, path)


def test_an_own_assignment_is_graded_reported_and_exported(course: Course, run: Callable[..., Result]) -> None:
    released = course.root / "release" / NAME / f"{NAME}.ipynb"
    assert "text.split()" not in released.read_text(encoding="utf-8")
    solutions = {"ada": "len(text.split())", "bo": "text.count(' ') + 1"}
    for student, value in solutions.items():
        path = course.folder("submitted", student, NAME) / f"{NAME}.ipynb"
        path.parent.mkdir(parents=True)
        shutil.copyfile(released, path)
        answer(path, f"def count_tokens(text):\n    return {value}")
    for words in commands("own-exercises", "tfcourse"):
        result = run(*words)
        assert result.exit_code == 0, result.output
        assert ("test_count_tokens" in result.output) == (words[0] == "autograde"), "it says which tests can be forged"
    with (course.root / "export" / "grades.csv").open(encoding="utf-8-sig") as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file) if row["assignment"] == NAME}
    assert scores == {"ada": 3, "bo": 0}
    assert (course.root / "feedback" / "bo" / NAME / f"{NAME}.html").is_file()
    assert NAME in (course.root / "report.html").read_text(encoding="utf-8")


def test_the_exchange_carries_notebooks_there_and_back(
    course: Course, tmp_path: Path, run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    lines = [line.split() for block in blocks("jupyterhub", "shell") for line in block.splitlines()]
    steps = [words for words in lines if words[0] in ("nbgrader", "tfcourse")]
    for program, verb, *words in steps:
        monkeypatch.chdir(home if verb in ("fetch_assignment", "submit", "fetch_feedback") else course.root)
        if verb == "submit":
            answer(home / NAME / f"{NAME}.ipynb", "def count_tokens(text):\n    return len(text.split())")
        words = [NAME if word.startswith("03") else word for word in words]
        if program == "nbgrader":
            nbgrader(verb, *words)
        else:
            assert run(verb, *words).exit_code == 0
    assert {verb for _, verb, *_ in steps} >= {"release_assignment", "collect", "autograde", "release_feedback"}
    (submitted,) = (course.root / "submitted").iterdir()
    assert (submitted / NAME / "timestamp.txt").is_file()
    (page,) = (home / NAME / "feedback").rglob("*.html")
    assert "<strong>3</strong> of 3 points" in page.read_text(encoding="utf-8")
