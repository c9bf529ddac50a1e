"""What the tests of recording share: copies of a course, a gradebook as plain rows, and nbgrader as it is without this project."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.preprocessors import ClearMetadataPreprocessor
from nbformat.v4 import new_markdown_cell, new_output
from nbgrader import preprocessors as steps
from nbgrader.api import Base, Gradebook
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from nbgrader.plugins import BasePlugin
from sqlalchemy import create_engine, select

from autograder.course.folder import Course
from autograder.course.release.nbgrader_release import generate_assignment
from autograder.grading.plugin import RestoreCells, SubmissionExporter
from autograder.grading.record.gradebook_writer import GradebookWriter
from autograder.grading.submissions import build_submission, read_submitted_companions
from autograder.intake.notebook.manifest import released_manifest

from .conftest import CHAPTER, mark, put, source_notebook
from .postgres import Server

DUE = datetime(2026, 3, 1, 12, 0)
TESTS = ("test_causal_mask", "test_merge_query_key", "test_soft_lookup")


class PointAnHour(BasePlugin):
    """A lecturer's own rule for late work."""

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float | None:
        """Return a point for every hour."""
        return total_seconds_late / 3600


class Played(steps.NbGraderPreprocessor):
    """Stands where nbgrader executes, with what a kernel would have brought."""

    outputs: Mapping[str, Any] = {}

    def preprocess(self, nb: Any, resources: Any) -> tuple[Any, Any]:
        """Put the outputs into the cells."""
        play(nb, self.outputs)
        return nb, resources


def play(notebook: Any, outputs: Mapping[str, Any]) -> None:
    """Run a notebook for show: give its named code cells outputs, and all code cells a number."""
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            cell.execution_count = number
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            cell.outputs = [nbformat.from_dict(output) for output in outputs.get(name, [])]


def score(text: str) -> list[Any]:
    """Return the outputs of a test cell whose value has this text."""
    return [new_output("execute_result", data={"text/plain": text}, execution_count=1)]


def failure() -> list[Any]:
    """Return the outputs of a test cell that raised."""
    return [new_output("error", ename="AssertionError", evalue="no", traceback=["no"] * 200)]


@dataclass(frozen=True)
class Shelf:
    """Where copies of one released course are made.

    Attributes:
        released: the course; nobody writes into it.
        folder: where the copies go.
        server: the server of its gradebook, or None for SQLite.
        database: the name of its gradebook on that server.
    """

    released: Path
    folder: Path
    server: Server | None = None
    database: str = ""

    def copy(self, name: str) -> Course:
        """Return a copy with a gradebook of its own."""
        root = self.folder / name
        shutil.copytree(self.released, root)
        course = Course.open(root)
        if self.server is not None:
            use_database(course, self.server, self.server.create(self.database))
        return course


def use_database(course: Course, server: Server, database: str) -> None:
    """Say in the course's configuration where its gradebook is."""
    config = course.root / "nbgrader_config.py"
    kept = [line for line in config.read_text(encoding="utf-8").splitlines() if "db_url" not in line]
    url = server.url(database).render_as_string(hide_password=False)
    config.write_text("\n".join([*kept, f'c.CourseDirectory.db_url = "{url}"', ""]), encoding="utf-8")


def by_nbgrader(course: Course, student: str, outputs: Mapping[str, Any]) -> None:
    """Grade a submission as plain nbgrader does: its own converter and its own steps, named one by one.

    Only what reads odd files and what would start a kernel is not nbgrader's.
    """
    config = course.config()
    config.Autograde.exporter_class = SubmissionExporter
    config.Autograde.sanitize_preprocessors = [
        RestoreCells,
        steps.ClearOutput,
        steps.DeduplicateIds,
        steps.OverwriteKernelspec,
        steps.OverwriteCells,
        steps.CheckCellMetadata,
    ]
    config.Autograde.autograde_preprocessors = [
        type("Played", (Played,), {"outputs": outputs}),
        steps.IgnorePattern,
        ClearMetadataPreprocessor,
        steps.LimitOutput,
        steps.SaveAutoGrades,
        steps.AssignLatePenalties,
        steps.CheckCellMetadata,
    ]
    directory = CourseDirectory(config=config, assignment_id=CHAPTER, student_id=student)
    Autograde(coursedir=directory, config=config, force=True).start()


def rows(course: Course) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table. Ids that are drawn by lot are told by what they stand for."""
    engine = create_engine(course.gradebook_url)
    try:
        with engine.connect() as connection:
            tables = {
                table.name: connection.execute(select(table)).mappings().all() for table in Base.metadata.sorted_tables
            }
    finally:
        engine.dispose()
    names: dict[str, str] = {}
    for table, found in tables.items():
        for row in found:
            keys = [value for column, value in row.items() if column in ("name", "type") or column.endswith("_id")]
            if "id" in row and re.fullmatch("[0-9a-f]{32}", str(row["id"])):
                names[row["id"]] = f"{table}({', '.join(names.get(str(key), str(key)) for key in keys)})"
    return {
        table: sorted((tuple(names.get(str(value), value) for value in row.values()) for row in found), key=repr)
        for table, found in tables.items()
    }


def files(course: Course) -> dict[str, tuple[int, bytes]]:
    """Return every file and folder of a course with its rights and contents, without its gradebook and its configuration."""
    return {
        str(path.relative_to(course.root)): (path.stat().st_mode, path.read_bytes() if path.is_file() else b"")
        for path in sorted(course.root.rglob("*"))
        if path.name not in ("gradebook.db", "nbgrader_config.py") and "__pycache__" not in path.parts
    }


def opened(course: Course) -> Any:
    """Return a course's gradebook, opened for writing as nbgrader's commands open it."""
    return Gradebook(course.gradebook_url, "tfcourse")


def released(folder: Path, server: Server | None = None) -> Shelf:
    """Release a course with exercises, a question, a task for a person and a data file; its gradebook is on the server, if there is one."""
    course = Course.open(folder / "released", create=True)
    path = course.folder("source", ".", CHAPTER) / f"{CHAPTER}.ipynb"
    path.parent.mkdir(parents=True)
    notebook = source_notebook(CHAPTER)
    task = new_markdown_cell("Draw the mask.\n\n### BEGIN MARK SCHEME\nA triangle.\n### END MARK SCHEME")
    task.metadata = mark("task_draw", task=True, locked=True, points=3)
    notebook.cells.append(task)
    nbformat.write(notebook, path)
    (path.parent / "data.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    database = ""
    if server is not None:
        database = server.create()
        use_database(course, server, database)
    generate_assignment(course.config(), CHAPTER)
    with opened(course) as gradebook:
        gradebook.find_assignment(CHAPTER).duedate = DUE
        gradebook.db.commit()
    # Some of nbgrader's steps name no course when they open a gradebook, which then gets one of nbgrader's name.
    Gradebook(course.gradebook_url).close()
    return Shelf(course.root, folder, server, database)


def student_notebook(course: Course, answer: str | None = "Because of the variance of the scores.") -> Any:
    notebook = nbformat.read(course.root / "release" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == "question_root" and answer is not None:
            cell.source = answer
    return notebook


def hand_in(course: Course, student: str, what: Any, *, when: datetime | None = None) -> Path:
    path = put(course, student, what)
    stamp = path.with_name("timestamp.txt")
    stamp.unlink(missing_ok=True)
    if when is not None:
        stamp.write_text(f"{when:%Y-%m-%d %H:%M:%S} UTC", encoding="utf-8")
    return path


def by_books(books: GradebookWriter, student: str, outputs: dict[str, Any]) -> Any:
    """Sanitise, run for show, record."""
    notebook = prepared(books.course, student)
    play(notebook, outputs)
    books.record(student, notebook)
    return notebook


def prepared(course: Course, student: str) -> Any:
    """Return a submission as it is run."""
    path = submitted(course, student)
    content = build_submission(
        student, path, released_manifest(course, CHAPTER), read_submitted_companions(course, CHAPTER, path)
    )[0]
    return nbformat.reads(content.notebook, as_version=4)


def submitted(course: Course, student: str) -> Path:
    return course.folder("submitted", student, CHAPTER) / f"{CHAPTER}.ipynb"


def full() -> dict[str, Any]:
    return {name: score("2.5") for name in TESTS}
