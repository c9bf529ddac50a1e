"""A chapter with an exercise, a question and a few answers, written straight into a gradebook and graded notebooks: nothing is run."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook
from tornado.httpclient import AsyncHTTPClient, HTTPResponse

from autograder.checking.verdict import Diagnosis, Finding, Verdict
from autograder.course.authoring.rubrics import Rubric
from autograder.course.folder import Course
from autograder.grading.record.marks_journal import MarksJournal
from autograder.grading.record.results import ExerciseResult, GradeResult, write_result
from autograder.marking import marks as marks_module
from autograder.marking.chapter_reader import ChapterReader
from autograder.marking.live_view import LiveApplication
from autograder.marking.local_server import LocalApplication
from autograder.marking.questions import Answer
from autograder.marking.server import MarkingApplication
from tests.autograder.made_once import made_once

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

EXERCISE = "causal_mask"
STUB = "def causal_mask(T, device=None):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
REFERENCE = "def causal_mask(T, device=None):\n    ### BEGIN SOLUTION\n    return lower(T)\n    ### END SOLUTION"
UPPER = Diagnosis("upper triangle", "The mask shows the future.", "causal-mask")
# Everybody's code; the first three behave alike, and eve's as the check says it.
CODE = {
    "ada": "def causal_mask(T, device=None):\n    return upper(T)",
    "bob": "def causal_mask(T, device=None):\n    mask = upper(T)\n    return mask",
    "cyd": "def causal_mask(T, device=None):\n    return upper(T)  # as in the lesson",
    "dan": STUB,
    "eve": "def causal_mask(T, device=None):\n    return lower(T).float()",
    "fay": "def causal_mask(T, device=None):\n    return lower(T)",
}


def verdict_of(student: str) -> Verdict:
    """Return what the check says about a student's code: 1 of 4 points, 3, or all."""
    upper, floating, right = student in ("ada", "bob", "cyd"), student == "eve", student == "fay"
    example = "causal_mask(2)\ngot       expected\n1 1       1 0\n0 1       1 1" if upper else ""
    message = "it shows the future" if upper else "as it should be"
    diagnosis = UPPER if upper else None
    return Verdict(
        EXERCISE,
        CHAPTER,
        (
            Finding("values", "The mask is right.", 3, floating or right, message, diagnosis, example=example),
            Finding("dtype", "The mask is boolean.", 1, upper or right, "it is float32" if floating else "bool"),
        ),
    )


def write_outcome(course: Course, student: str, verdict: Verdict | None, error: str = "") -> None:
    """Write what grading a student's code gave."""
    score = verdict.score if verdict else 0.0
    exercise = ExerciseResult(EXERCISE, score, 4.0, verdict, error)
    write_result(course, GradeResult(student, CHAPTER, "graded", exercises=(exercise,)))


def _cells(answer: str, code: str) -> list[dict[str, Any]]:
    plain = {"grade": False, "locked": True, "solution": False, "task": False, "schema_version": 3}
    prompt = {"nbgrader": {**plain, "grade_id": "prompt_root", "cell_type": "markdown"}}
    own = {**plain, "grade": True, "locked": False, "solution": True, "grade_id": QUESTION, "points": 4}
    stub = {"nbgrader": {**plain, "solution": True, "locked": False, "grade_id": EXERCISE, "cell_type": "code"}}
    return [
        {
            "cell_type": "markdown",
            "id": "h",
            "metadata": {},
            "source": "## 1 · Causal mask: `causal_mask`\n\nWrite it.",
        },
        {"cell_type": "code", "id": "s", "metadata": stub, "source": code, "outputs": [], "execution_count": None},
        {"cell_type": "markdown", "id": "p", "metadata": prompt, "source": "## 9 · Why the root?\n\nSay why."},
        {"cell_type": "markdown", "id": "q", "metadata": {"nbgrader": own}, "source": answer},
    ]


def write_answer(course: Course, student: str, answer: str = "", step: str = "autograded", code: str = "") -> None:
    """Write a student's graded notebook; with the step ``release`` or ``source`` the chapter's own."""
    answer, code = answer or ANSWERS.get(student, BLANK), code or CODE.get(student, STUB)
    folder = course.folder(step, student, CHAPTER)
    folder.mkdir(parents=True, exist_ok=True)
    notebook = {"cells": _cells(answer, code), "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (folder / f"{CHAPTER}.ipynb").write_text(json.dumps(notebook), encoding="utf-8")


@pytest.fixture(scope="session")
def graded(shared_folder: Path) -> Path:
    """A course in which one chapter is graded. Do not write into it."""
    return made_once(shared_folder / "graded", _grade)


def _grade(root: Path) -> None:
    course = Course.open(root, create=True)
    write_answer(course, ".", BLANK, "release")
    write_answer(course, ".", BLANK, "source", REFERENCE)
    with Gradebook(course.gradebook_url, "tfcourse") as book:
        book.add_assignment(CHAPTER)
        book.add_notebook(CHAPTER, CHAPTER)
        about = CHAPTER, CHAPTER
        book.add_grade_cell(QUESTION, *about, max_score=4, cell_type="markdown")
        book.add_solution_cell(QUESTION, *about)
        book.add_source_cell(QUESTION, *about, cell_type="markdown", source=BLANK, locked=False)
        text = "## 9 · Why the root?\n\nSay why."
        book.add_source_cell("prompt_root", *about, cell_type="markdown", source=text, locked=True)
        book.add_grade_cell(f"test_{EXERCISE}", *about, max_score=4, cell_type="code")
        book.add_solution_cell(EXERCISE, *about)
        book.add_source_cell(EXERCISE, *about, cell_type="code", source=STUB, locked=False)
        book.add_source_cell(f"test_{EXERCISE}", *about, cell_type="code", source="check(causal_mask)", locked=True)
        for student in CODE:
            answer = ANSWERS.get(student, BLANK)
            book.add_student(student)
            book.add_submission(CHAPTER, student)
            write_answer(course, student, answer)
            grade = book.find_grade(QUESTION, *about, student)
            grade.needs_manual_grade = answer != BLANK
            grade.auto_score = 0.0 if answer == BLANK else None
            verdict = verdict_of(student)
            write_outcome(course, student, verdict if student != "dan" else None, "not written yet")
            test = book.find_grade(f"test_{EXERCISE}", *about, student)
            test.auto_score, test.needs_manual_grade = verdict.score if student != "dan" else 0.0, False
        book.db.commit()


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


def answers_to(course: Course, question: str = QUESTION) -> dict[str, Answer]:
    return {answer.student: answer for answer in ChapterReader(course, CHAPTER).question(question).answers}


def versions_of(course: Course, *students: str, question: str = QUESTION) -> dict[str, str]:
    return {student: answers_to(course, question)[student].version for student in students}


def die_while_marking(monkeypatch: pytest.MonkeyPatch, killed_at: str, give: Callable[[], object]) -> None:
    """Give a mark in a process that is killed right before the gradebook's commit, or right after it."""
    if (child := os.fork()) == 0:
        write = marks_module.write_state

        def write_and_die(*arguments: Any) -> None:
            write(*arguments)
            os._exit(9)

        if killed_at == "before":
            monkeypatch.setattr(marks_module, "write_state", write_and_die)
        else:
            monkeypatch.setattr(MarksJournal, "commit", lambda *_: os._exit(9))
        try:
            give()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9


class Client:
    """A running server, and a browser's cookies for it."""

    def __init__(self, application: LocalApplication) -> None:
        self.application = application
        self.cookies: dict[str, str] = {}

    async def ask(self, path: str, *, data: Any = None, **headers: str) -> HTTPResponse:
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        sent = {"Cookie": cookie} | {name.replace("_", "-"): value for name, value in headers.items()}
        body = None if data is None else json.dumps(data)
        address = self.address.partition("/open")[0] + path
        client = AsyncHTTPClient(force_instance=True)
        response = await client.fetch(
            address,
            method="GET" if data is None else "POST",
            body=body,
            headers=sent,
            follow_redirects=False,
            raise_error=False,
        )
        for line in response.headers.get_list("Set-Cookie"):
            name, value = line.partition(";")[0].split("=", 1)
            self.cookies[name] = value
        return response

    async def sign_in(self) -> HTTPResponse:
        return await self.ask("/open?token=" + self.address.partition("token=")[2])

    async def page(self, question: str = QUESTION) -> tuple[str, list[dict[str, str]]]:
        """Return the XSRF token, and the members of every group on a question's page."""
        if not self.cookies:
            await self.sign_in()
        text = (await self.ask(f"/question/{question}")).body.decode()
        members = [json.loads(found.replace("&quot;", '"')) for found in re.findall(r'data-members="([^"]*)"', text)]
        return re.search(r'name="xsrf" content="([^"]*)"', text).group(1), members


def text_of(visit: Any, path: str, **options: Any) -> str:
    """Return the text of a page of the server that a visit is to."""

    async def steps(client: Client) -> str:
        await client.sign_in()
        return (await client.ask(path)).body.decode()

    return visit(steps, **options)


@pytest.fixture
def visit(course):
    """Return a function that runs a visit to a server of the course."""

    def run(steps: Any, *, names: bool = False, live: bool = False) -> Any:
        async def visited() -> Any:
            rubrics = {QUESTION: Rubric(QUESTION, "Because.", "- 2 points: why\n- 2 points: how")}
            application = MarkingApplication(course, CHAPTER, "a marker", lambda: rubrics, names=names)
            client = Client(LiveApplication(application.reader) if live else application)
            server, client.address = client.application.listen_locally()
            try:
                return await steps(client)
            finally:
                server.stop()
                await server.close_all_connections()

        return asyncio.run(visited())

    return run
