"""What belongs together is written to the gradebook at once, or not at all, on both databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook, InvalidEntry, MissingEntry
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.course.gradebook.transactions import TransactionalGradebook
from autograder.errors import CourseError
from autograder.grading.autograde import autograde
from autograder.grading.feedback.pages import write_feedback
from autograder.grading.plugin import autograder_config
from autograder.grading.record.gradebook_writer import GradebookWriter
from autograder.grading.reports.class_report import read_student_work
from autograder.grading.reports.export import export
from autograder.grading.reports.grades import read_grades

from .conftest import CHAPTER, EXERCISES
from .ledger import DUE, Shelf, by_books, full, hand_in, opened, released, rows, student_notebook, use_database
from .postgres import Server, running_server
from .scripted import Scripted

ABOUT = CHAPTER, CHAPTER, "ada"
TEST = "test_causal_mask"


@pytest.fixture
def shared(course: Course) -> Iterator[TransactionalGradebook]:
    gradebook = TransactionalGradebook(course.gradebook_url, "tfcourse")
    with gradebook:
        gradebook.add_student("ada")
        gradebook.add_submission(CHAPTER, "ada")
    yield gradebook
    gradebook.dispose()


@pytest.fixture
def plain(course: Course, shared: TransactionalGradebook) -> Iterator[Any]:
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        yield gradebook


def test_what_is_committed_is_written_when_the_gradebook_is_closed(shared: TransactionalGradebook, plain: Any) -> None:
    with shared:
        grade = shared.find_grade(TEST, *ABOUT)
        notebook = shared.find_submission_notebook(*ABOUT)
        grade.auto_score = 3.0
        shared.db.flush()
        shared.db.commit()
        assert notebook.score == 3.0, "sums are counted anew"
        plain.db.rollback()
        assert plain.find_grade(TEST, *ABOUT).auto_score is None
        assert list(shared.db())
    assert not list(shared.db()), "nothing is kept in memory between units"
    plain.db.rollback()
    assert plain.find_grade(TEST, *ABOUT).auto_score == 3.0


def nested(shared: TransactionalGradebook) -> None:
    for student in ("bo", "cy"):
        with shared:
            shared.add_student(student)
    assert [student.id for student in shared.students] == ["ada", "bo", "cy"]


def closed(shared: TransactionalGradebook) -> None:
    shared.add_student("bo")
    shared.close()
    shared.add_student("cy")


def failing(shared: TransactionalGradebook) -> None:
    shared.find_grade(TEST, *ABOUT).auto_score = 3.0
    shared.db.commit()
    shared.add_student("bo")
    raise RuntimeError("undone")


def failing_within(shared: TransactionalGradebook) -> None:
    shared.add_student("bo")
    with suppress(MissingEntry), shared:
        shared.find_student("nobody")


def taken_back(shared: TransactionalGradebook) -> None:
    shared.add_student("bo")
    with suppress(InvalidEntry):
        shared.add_student("bo")
    shared.add_student("cy")


@pytest.mark.parametrize("work", [nested, closed, failing, failing_within, taken_back])
def test_a_block_with_all_within_it_is_one_unit_that_is_written_or_not(
    shared: TransactionalGradebook, plain: Any, work: Callable[[TransactionalGradebook], None]
) -> None:
    written = work in (nested, closed)
    commits: list[object] = []
    event.listen(shared.engine, "commit", commits.append)
    with nullcontext() if written else pytest.raises(RuntimeError, match=r"undone|written"), shared:
        work(shared)
        assert [student.id for student in plain.students] == ["ada"], "not before the end"
    plain.db.rollback()
    there = ["ada", "bo", "cy"] if written else ["ada"]
    assert [student.id for student in plain.students] == there
    assert plain.find_grade(TEST, *ABOUT).auto_score is None
    assert len(commits) == written
    plain.db.rollback()
    with shared:
        assert shared.find_grade(TEST, *ABOUT).auto_score is None
    shared.add_student("dee")
    shared.close()  # who opens no block has it written at the end
    assert [student.id for student in plain.students] == [*there, "dee"]


LATE = "late"
STUDENTS = ("ada", "bo", LATE, "none")
POINTS = dict.fromkeys(EXERCISES[CHAPTER], 2.5)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="module")
def shelf(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return released(tmp_path_factory.mktemp("released"), server)


@pytest.fixture
def on_server(shelf: Shelf, tmp_path: Path) -> Course:
    """A course of one's own on the server."""
    return replace(shelf, folder=tmp_path).copy("course")


def hand_in_all(course: Course) -> None:
    for student in STUDENTS:
        when = DUE + timedelta(hours=1) if student == LATE else DUE - timedelta(hours=1)
        answer = None if student == "bo" else "Because of the variance."
        path = hand_in(course, student, student_notebook(course, answer=answer), when=when)
        if student == "none":
            path.unlink()


def graded(course: Course) -> Any:
    return autograde(
        course, CHAPTER, device="cpu", force=True, make_executor=Scripted(dict.fromkeys(STUDENTS, POINTS) | {"bo": {}})
    )


def told(grades: Any) -> list[tuple[Any, ...]]:
    return [(g.student, g.submitted, g.due, g.raw, g.penalty, g.best, g.pending, g.handed_in) for g in grades]


def test_grades_reports_and_exports_are_those_of_a_gradebook_in_a_file(on_server: Course, tmp_path: Path) -> None:
    seen = []
    twins = {"server": on_server, "file": Course.open(released(tmp_path / "file").released)}
    for place, on_server in twins.items():
        hand_in_all(on_server)
        graded(on_server)
        with opened(on_server) as gradebook:
            answer = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ada")
            answer.manual_score, answer.needs_manual_grade = 3.0, False
            gradebook.db.commit()
        results = graded(on_server)
        grades = read_grades(on_server, [CHAPTER])
        folder = tmp_path / f"export of the {place}"
        folder.mkdir()
        export(grades, "csv", folder)
        written = {path.name: path.read_bytes() for path in folder.iterdir()}
        write_feedback(on_server, CHAPTER, autograder_config(on_server))
        pages = {path.name: path.read_text() for path in sorted(on_server.root.glob(f"feedback/*/{CHAPTER}/*.html"))}
        works = [
            (work.grade.student, work.graded, work.grade.pending) for work in read_student_work(on_server, [CHAPTER])
        ]
        marks = [(r.student, r.status, r.score, r.max_score, r.late_penalty) for r in results]
        seen.append((marks, told(grades), works, written, rows(on_server), pages))
    assert seen[0] == seen[1]
    assert [student for student, *_ in seen[0][0]] == list(STUDENTS)
    assert seen[0][3]
    assert (seen[0][1][0][3], seen[0][1][0][6]) == (7.5 + 3.0, 1), "a person's points stay"


def test_a_unit_in_progress_holds_up_nobody_who_reads(on_server: Course, server: Server) -> None:
    hand_in_all(on_server)
    graded(on_server)
    with GradebookWriter(on_server, CHAPTER, autograder_config(on_server)) as books, books._shared as shared:
        shared.find_grade("test_causal_mask", CHAPTER, CHAPTER, "ada").auto_score = 0.0
        shared.db.commit()
        shared.db.flush()
        assert read_grades(on_server, [CHAPTER])[0].raw == 7.5
    # The server refuses this while anybody is connected.
    server.run(f'DROP DATABASE "{make_url(on_server.gradebook_url).database}"')


@pytest.mark.parametrize("table", ["", "recipes"])
def test_what_is_no_gradebook_gets_no_tables(on_server: Course, server: Server, table: str) -> None:
    use_database(on_server, server, server.create())
    engine = create_engine(on_server.gradebook_url)
    with engine.begin() as connection:
        if table:
            connection.execute(text(f"CREATE TABLE {table} (name TEXT)"))
    with pytest.raises(CourseError), open_gradebook(on_server):
        pass
    with engine.connect() as connection:
        found = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).scalars().all()
    engine.dispose()
    assert list(found) == ([table] if table else [])


def test_looking_into_a_gradebook_changes_nothing_and_cannot(on_server: Course) -> None:
    before = rows(on_server)
    with open_gradebook(on_server) as gradebook:
        assert [assignment.name for assignment in gradebook.assignments] == [CHAPTER]
        gradebook.db.rollback()
        with pytest.raises(SQLAlchemyError, match="read-only"):
            gradebook.db.execute(text("DELETE FROM grade"))
        gradebook.db.rollback()
    assert rows(on_server) == before


def test_a_database_that_is_not_there_is_named_without_its_password(on_server: Course) -> None:
    url = make_url(on_server.gradebook_url).set(database="nowhere", password="open sesame")
    config = on_server.root / "nbgrader_config.py"
    with config.open("a", encoding="utf-8") as file:
        file.write(f"c.CourseDirectory.db_url = {url.render_as_string(hide_password=False)!r}\n")
    with pytest.raises(CourseError, match="nowhere") as caught, open_gradebook(on_server):
        pass
    assert "sesame" not in str(caught.value)
    assert "db_url" in str(caught.value)


def test_a_connection_that_was_cut_between_two_submissions_is_made_anew(on_server: Course, server: Server) -> None:
    for student in ("ada", "bo"):
        hand_in(on_server, student, student_notebook(on_server))
    with GradebookWriter(on_server, CHAPTER, autograder_config(on_server)) as books:
        by_books(books, "ada", full())
        name = make_url(on_server.gradebook_url).database
        server.run(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'")
        by_books(books, "bo", full())
        assert books.grades("bo")[0]["test_causal_mask"].auto_score == 2.5
