"""A course whose gradebook is on a PostgreSQL server: released, graded and read like any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import nbformat
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from autograder.course.folder import Course
from autograder.engine.interface import Execution, Submission
from autograder.engine.settings import GradingSettings
from autograder.errors import CourseError
from autograder.feedback.pages import write_feedback
from autograder.gradebook.reader import open_gradebook, released_chapters
from autograder.grading.autograde import autograde
from autograder.grading.plugin import configured
from autograder.record.gradebook_writer import GradebookWriter
from autograder.release.nbgrader_release import generate_assignment
from autograder.reports.export import export
from autograder.reports.grades import read_grades
from autograder.reports.student_work import read_student_work
from autograder.submission.manifest import released_manifest

from .conftest import CHAPTER
from .ledger import (
    DUE,
    Shelf,
    by_books,
    failure,
    full,
    hand_in,
    opened,
    play,
    released,
    rows,
    student_notebook,
    use_database,
)
from .postgres import Server, running_server

LATE = "late"
STUDENTS = ("ada", "bo", LATE, "none")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def shelf(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return released(tmp_path_factory.mktemp("released"), server)


@pytest.fixture
def course(shelf: Shelf, tmp_path: Path) -> Course:
    """A course of one's own on the server."""
    return replace(shelf, folder=tmp_path).copy("course")


@dataclass(frozen=True)
class Pretending:
    """Runs nothing, and brings what a kernel would have brought."""

    settings: GradingSettings

    def grade_one(self, submission: Submission) -> Execution:
        notebook: Any = nbformat.reads(submission.notebook, as_version=4)
        play(notebook, full() if submission.student != "bo" else {"test_causal_mask": failure()})
        return Execution(submission.student, nbformat.writes(notebook), 0.0)

    def close(self) -> None:
        """Nothing was opened."""


def hand_in_all(course: Course) -> None:
    for student in STUDENTS:
        when = DUE + timedelta(hours=1) if student == LATE else DUE - timedelta(hours=1)
        answer = None if student == "bo" else "Because of the variance."
        path = hand_in(course, student, student_notebook(course, answer=answer), when=when)
        if student == "none":
            path.unlink()


def graded(course: Course) -> Any:
    return autograde(course, CHAPTER, device="cpu", force=True, make_executor=Pretending)


def told(grades: Any) -> list[tuple[Any, ...]]:
    return [(g.student, g.submitted, g.due, g.raw, g.penalty, g.best, g.pending, g.handed_in) for g in grades]


def test_grades_reports_and_exports_are_those_of_a_gradebook_in_a_file(course: Course, tmp_path: Path) -> None:
    seen = []
    twins = {"server": course, "file": Course.open(released(tmp_path / "file").released)}
    for place, course in twins.items():
        hand_in_all(course)
        graded(course)
        with opened(course) as gradebook:
            answer = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ada")
            answer.manual_score, answer.needs_manual_grade = 3.0, False
            gradebook.db.commit()
        results = graded(course)
        grades = read_grades(course, [CHAPTER])
        folder = tmp_path / f"export of the {place}"
        folder.mkdir()
        export(grades, "csv", folder)
        written = {path.name: path.read_bytes() for path in folder.iterdir()}
        write_feedback(course, CHAPTER, configured(course))
        pages = {path.name: path.read_text() for path in sorted(course.root.glob(f"feedback/*/{CHAPTER}/*.html"))}
        works = [(work.grade.student, work.graded, work.grade.pending) for work in read_student_work(course, [CHAPTER])]
        marks = [(r.student, r.status, r.score, r.max_score, r.late_penalty) for r in results]
        seen.append((marks, told(grades), works, written, rows(course), pages))
    assert seen[0] == seen[1]
    assert [student for student, *_ in seen[0][0]] == list(STUDENTS)
    assert seen[0][3]
    assert (seen[0][1][0][3], seen[0][1][0][6]) == (7.5 + 3.0, 1), "a person's points stay"


def test_a_unit_in_progress_holds_up_nobody_who_reads(course: Course, server: Server) -> None:
    hand_in_all(course)
    graded(course)
    with GradebookWriter(course, CHAPTER, configured(course)) as books, books._shared as shared:
        shared.find_grade("test_causal_mask", CHAPTER, CHAPTER, "ada").auto_score = 0.0
        shared.db.commit()
        shared.db.flush()
        assert read_grades(course, [CHAPTER])[0].raw == 7.5
    # The server refuses this while anybody is connected.
    server.run(f'DROP DATABASE "{make_url(course.gradebook_url).database}"')


@pytest.mark.parametrize(("table", "word"), [("", "no gradebook yet"), ("recipes", "not an nbgrader gradebook")])
def test_what_is_no_gradebook_is_told_apart_and_gets_no_tables(
    course: Course, server: Server, table: str, word: str
) -> None:
    use_database(course, server, server.create())
    engine = create_engine(course.gradebook_url)
    with engine.begin() as connection:
        if table:
            connection.execute(text(f"CREATE TABLE {table} (name TEXT)"))
    with pytest.raises(CourseError, match=word), open_gradebook(course):
        pass
    with engine.connect() as connection:
        found = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).scalars().all()
    engine.dispose()
    assert list(found) == ([table] if table else [])


def test_a_chapter_that_nobody_has_handed_in_may_change_and_one_that_somebody_has_may_not(course: Course) -> None:
    before = released_manifest(course, CHAPTER)
    generate_assignment(course.config(), CHAPTER)
    assert released_manifest(course, CHAPTER) == before
    assert released_chapters(course, ["03"]) == [CHAPTER]
    path = course.folder("source", ".", CHAPTER) / f"{CHAPTER}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.pop()
    nbformat.write(notebook, path)
    generate_assignment(course.config(), CHAPTER)
    assert "task_draw" not in released_manifest(course, CHAPTER).by_name
    hand_in_all(course)
    graded(course)
    notebook.cells.pop()
    nbformat.write(notebook, path)
    with pytest.raises(CourseError, match="submissions associated"):
        generate_assignment(course.config(), CHAPTER)


def test_looking_into_a_gradebook_changes_nothing_and_cannot(course: Course) -> None:
    before = rows(course)
    with open_gradebook(course) as gradebook:
        assert [assignment.name for assignment in gradebook.assignments] == [CHAPTER]
        gradebook.db.rollback()
        with pytest.raises(SQLAlchemyError, match="read-only"):
            gradebook.db.execute(text("DELETE FROM grade"))
        gradebook.db.rollback()
    assert rows(course) == before


def test_a_database_that_is_not_there_is_named_without_its_password(course: Course) -> None:
    url = make_url(course.gradebook_url).set(database="nowhere", password="open sesame")
    config = course.root / "nbgrader_config.py"
    with config.open("a", encoding="utf-8") as file:
        file.write(f"c.CourseDirectory.db_url = {url.render_as_string(hide_password=False)!r}\n")
    with pytest.raises(CourseError, match="cannot be used") as caught, open_gradebook(course):
        pass
    assert "nowhere" in str(caught.value)
    assert "sesame" not in str(caught.value)
    assert "db_url" in str(caught.value)


def test_a_connection_that_was_cut_between_two_submissions_is_made_anew(course: Course, server: Server) -> None:
    for student in ("ada", "bo"):
        hand_in(course, student, student_notebook(course))
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        by_books(books, "ada", full())
        name = make_url(course.gradebook_url).database
        server.run(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'")
        by_books(books, "bo", full())
        assert books.grades("bo")[0]["test_causal_mask"].auto_score == 2.5
