"""One opened gradebook serves all of nbgrader's steps, and nbgrader itself does not notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from nbgrader import preprocessors
from nbgrader.api import Gradebook, InvalidEntry, MissingEntry
from nbgrader.preprocessors import (
    AssignLatePenalties,
    ClearOutput,
    GetGrades,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
    saveautogrades,
)
from sqlalchemy import create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from traitlets.config import Config

from autograder.course.folder import Course
from autograder.course.gradebook.reader import open_gradebook
from autograder.course.gradebook.transactions import CachedGradebook, with_shared_gradebook
from autograder.errors import CourseError
from autograder.grading.autograde import autograde
from autograder.grading.feedback.pages import write_feedback
from autograder.grading.plugin import OthersCells, OthersKernelspec, configured
from autograder.grading.record.gradebook_writer import GradebookWriter
from autograder.grading.reports.export import export
from autograder.grading.reports.grades import read_grades
from autograder.grading.reports.student_work import read_student_work

from .conftest import CHAPTER, EXERCISES
from .ledger import DUE, Shelf, by_books, full, hand_in, opened, released, rows, student_notebook, use_database
from .postgres import Server, running_server
from .scripted import Scripted

ABOUT = CHAPTER, CHAPTER, "ada"
TEST = "test_causal_mask"


@pytest.fixture
def shared(course: Course) -> Iterator[CachedGradebook]:
    gradebook = CachedGradebook(course.gradebook_url, "tfcourse")
    with gradebook:
        gradebook.add_student("ada")
        gradebook.add_submission(CHAPTER, "ada")
    yield gradebook
    gradebook.dispose()


@pytest.fixture
def plain(course: Course, shared: CachedGradebook) -> Iterator[Any]:
    with Gradebook(course.gradebook_url, "tfcourse") as gradebook:
        yield gradebook


@pytest.mark.parametrize(
    ("find", "about"),
    [
        ("find_assignment", ABOUT[:1]),
        ("find_notebook", ABOUT[:2]),
        ("find_submission", ABOUT[1:]),
        ("find_submission_notebook", ABOUT),
    ],
)
def test_a_row_is_asked_for_once_a_unit(shared: CachedGradebook, plain: Any, find: str, about: tuple[str, ...]) -> None:
    asked: list[str] = []
    event.listen(shared.engine, "before_cursor_execute", lambda *said: asked.append(said[2]))
    for _ in range(2):
        with shared:
            found = getattr(shared, find)(*about)
            shared.db.commit()
            assert getattr(shared, find)(*about) is found
            assert found.id == getattr(plain, find)(*about).id
    assert len(asked) == 2
    with pytest.raises(MissingEntry):
        getattr(shared, find)(*("nobody",) * len(about))


def test_a_row_that_was_taken_out_is_not_found_again(shared: CachedGradebook) -> None:
    with shared:
        shared.find_submission(*ABOUT[1:])
        shared.find_submission_notebook(*ABOUT)
        shared.remove_submission(*ABOUT[1:])
        with pytest.raises(MissingEntry):
            shared.find_submission(*ABOUT[1:])
        with pytest.raises(MissingEntry):
            shared.find_submission_notebook(*ABOUT)
        shared.add_submission(*ABOUT[1:])
        assert shared.find_submission(*ABOUT[1:]).notebooks == [shared.find_submission_notebook(*ABOUT)]


def test_what_is_committed_is_written_in_one_query_when_the_gradebook_is_closed(
    shared: CachedGradebook, plain: Any
) -> None:
    asked: list[str] = []
    event.listen(shared.engine, "before_cursor_execute", lambda *said: asked.append(said[2]))
    with shared:
        grade, *_ = (shared.find_grade(name, *ABOUT) for name in (TEST, "test_soft_lookup", "question_root"))
        assert len(asked) == 1
        notebook = shared.find_submission_notebook(*ABOUT)
        grade.auto_score = 3.0
        shared.db.flush()
        shared.db.commit()
        assert notebook.score == 3.0, "sums are counted anew"
        plain.db.rollback()
        assert plain.find_grade(TEST, *ABOUT).auto_score is None
        assert list(shared.db())
    assert not list(shared.db()), "nothing is kept in memory between units"
    assert not shared._known
    plain.db.rollback()
    assert plain.find_grade(TEST, *ABOUT).auto_score == 3.0


def nested(shared: CachedGradebook) -> None:
    for student in ("bo", "cy"):
        with shared:
            shared.add_student(student)
    assert [student.id for student in shared.students] == ["ada", "bo", "cy"]


def closed(shared: CachedGradebook) -> None:
    shared.add_student("bo")
    shared.close()
    shared.add_student("cy")


def failing(shared: CachedGradebook) -> None:
    shared.find_grade(TEST, *ABOUT).auto_score = 3.0
    shared.db.commit()
    shared.add_student("bo")
    raise RuntimeError("undone")


def failing_within(shared: CachedGradebook) -> None:
    shared.add_student("bo")
    with suppress(MissingEntry), shared:
        shared.find_student("nobody")


def taken_back(shared: CachedGradebook) -> None:
    shared.add_student("bo")
    with suppress(InvalidEntry):
        shared.add_student("bo")
    shared.add_student("cy")


@pytest.mark.parametrize("work", [nested, closed, failing, failing_within, taken_back])
def test_a_block_with_all_within_it_is_one_unit_that_is_written_or_not(
    shared: CachedGradebook, plain: Any, work: Callable[[CachedGradebook], None]
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


@pytest.mark.parametrize(
    "step",
    [OverwriteCells, OverwriteKernelspec, SaveAutoGrades, AssignLatePenalties, OthersCells, OthersKernelspec],
)
def test_nbgraders_steps_use_the_shared_gradebook(shared: CachedGradebook, step: Any) -> None:
    variant = with_shared_gradebook(step, lambda: shared)
    assert issubclass(variant, step)
    assert variant is not step
    assert variant.preprocess.__globals__["Gradebook"]("sqlite:///elsewhere.db") is shared


def test_every_step_of_grading_that_opens_a_gradebook_is_known_here() -> None:
    """A new step of nbgrader's would go on opening its own, which is right and slow: then this list is too short."""
    steps = [getattr(preprocessors, name) for name in preprocessors.__all__]
    opening = {step for step in steps if with_shared_gradebook(step, CachedGradebook) is not step}
    opening -= {preprocessors.SaveCells, GetGrades}
    assert opening == {OverwriteCells, OverwriteKernelspec, SaveAutoGrades, AssignLatePenalties}


class Own(SaveAutoGrades):  # type: ignore[misc]
    """A lecturer's own step."""

    def preprocess(self, nb: Any, resources: Any) -> Any:
        return "mine"


class More(Own):
    """A step made of it."""


def test_nbgrader_and_what_opens_no_gradebook_are_left_alone(shared: CachedGradebook) -> None:
    before = SaveAutoGrades.preprocess
    config = Config()
    config.SaveAutoGrades.enabled = False
    assert with_shared_gradebook(SaveAutoGrades, lambda: shared)(config=config).enabled is False
    assert SaveAutoGrades.preprocess is before
    assert saveautogrades.Gradebook is Gradebook
    assert with_shared_gradebook(ClearOutput, lambda: shared) is ClearOutput
    for step in (Own, More):
        assert with_shared_gradebook(step, lambda: shared)().preprocess(None, None) == "mine"


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
        write_feedback(on_server, CHAPTER, configured(on_server))
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
    with GradebookWriter(on_server, CHAPTER, configured(on_server)) as books, books._shared as shared:
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
    with GradebookWriter(on_server, CHAPTER, configured(on_server)) as books:
        by_books(books, "ada", full())
        name = make_url(on_server.gradebook_url).database
        server.run(f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{name}'")
        by_books(books, "bo", full())
        assert books.grades("bo")[0]["test_causal_mask"].auto_score == 2.5
