"""A chapter with one question and a few answers, written straight into a gradebook and graded notebooks: nothing is run."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.course.folder import Course

CHAPTER = "03_scaled_dot_product"
QUESTION = "question_root"
BLANK = "*Your answer.*"
ANSWERS = {
    "ada": "The variance grows with the width, so the **scores** are divided by its root.",
    "bob": "It looks nicer.",
    "cyd": "the variance grows with  the width, so the **Scores** are divided by its root.\n",
    "dan": BLANK,
    "eve": "Since the variance of the scores grows with the width.",
}


def _cells(answer: str) -> list[dict[str, Any]]:
    plain = {"grade": False, "locked": True, "solution": False, "task": False, "schema_version": 3}
    prompt = {"nbgrader": {**plain, "grade_id": "prompt_root", "cell_type": "markdown"}}
    own = {**plain, "grade": True, "locked": False, "solution": True, "grade_id": QUESTION, "points": 4}
    return [
        {"cell_type": "markdown", "id": "p", "metadata": prompt, "source": "## 9 · Why the root?\n\nSay why."},
        {"cell_type": "markdown", "id": "q", "metadata": {"nbgrader": own}, "source": answer},
    ]


def write_answer(course: Course, student: str, answer: str, step: str = "autograded") -> None:
    """Write a student's graded notebook; with the step ``release`` the chapter's own."""
    folder = course.folder(step, student, CHAPTER)
    folder.mkdir(parents=True, exist_ok=True)
    notebook = {"cells": _cells(answer), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / f"{CHAPTER}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


@pytest.fixture(scope="session")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A course in which one chapter is graded. Do not write into it."""
    # nbgrader calls alembic by its name when it makes a gradebook; it lies beside this Python.
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{path}"
    course = Course.open(tmp_path_factory.mktemp("graded") / "course", create=True)
    write_answer(course, ".", BLANK, "release")
    with Gradebook(course.gradebook_url, "tfcourse") as book:
        book.add_assignment(CHAPTER)
        book.add_notebook(CHAPTER, CHAPTER)
        about = CHAPTER, CHAPTER
        book.add_grade_cell(QUESTION, *about, max_score=4, cell_type="markdown")
        book.add_solution_cell(QUESTION, *about)
        book.add_source_cell(QUESTION, *about, cell_type="markdown", source=BLANK, locked=False)
        text = "## 9 · Why the root?\n\nSay why."
        book.add_source_cell("prompt_root", *about, cell_type="markdown", source=text, locked=True)
        for student, answer in ANSWERS.items():
            book.add_student(student)
            book.add_submission(CHAPTER, student)
            write_answer(course, student, answer)
            grade = book.find_grade(QUESTION, *about, student)
            grade.needs_manual_grade = answer != BLANK
            grade.auto_score = 0.0 if answer == BLANK else None
        book.db.commit()
    os.environ["PATH"] = path
    return course.root


@pytest.fixture
def course(graded: Path, tmp_path: Path) -> Course:
    """A course of one's own in which one chapter is graded."""
    return Course(Path(shutil.copytree(graded, tmp_path / "course")))


@pytest.fixture
def dump(course: Course) -> Callable[[], list[str]]:
    """Return a function that writes down everything in the gradebook."""

    def write() -> list[str]:
        connection = sqlite3.connect(course.root / "gradebook.db")
        try:
            return list(connection.iterdump())
        finally:
            connection.close()

    return write
