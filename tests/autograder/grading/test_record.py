"""Grades are recorded as nbgrader records them, row by row and file by file, on both databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell
from nbgrader.api import MissingEntry
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from autograder.course.folder import Course
from autograder.course.release.nbgrader_release import generate_assignment
from autograder.engine.interface import Execution
from autograder.grading.plugin import OthersCells, OthersKernelspec, autograder_config
from autograder.grading.record.gradebook_writer import GradebookWriter, RecordedGrade, RecordError
from autograder.grading.run import parse_notebook

from .conftest import CHAPTER, mark
from .ledger import (
    DUE,
    TESTS,
    Shelf,
    by_books,
    by_nbgrader,
    failure,
    files,
    full,
    hand_in,
    opened,
    play,
    prepared,
    released,
    rows,
    score,
    student_notebook,
    submitted,
)
from .postgres import running_server


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shelf(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    """A released course on each database."""
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "sqlite":
        yield released(folder)
        return
    with running_server() as server:
        yield released(folder, server)


@pytest.fixture
def pair(shelf: Shelf, tmp_path: Path) -> tuple[Course, Course]:
    """Two copies of the course: one for nbgrader, one for this project."""
    mine = Shelf(shelf.released, tmp_path, shelf.server, shelf.database)
    return mine.copy("nbgrader"), mine.copy("ours")


@pytest.fixture
def course(pair: tuple[Course, Course]) -> Course:
    return pair[1]


def record_both(pair: tuple[Course, Course], students: dict[str, dict[str, Any]]) -> None:
    """Grade the same submissions with the same outputs by nbgrader and by this project, and compare everything."""
    nbgrader, ours = pair
    for student, outputs in students.items():
        by_nbgrader(nbgrader, student, outputs)
    with GradebookWriter(ours, CHAPTER, autograder_config(ours)) as books:
        for student, outputs in students.items():
            by_books(books, student, outputs)
    assert_equal(pair)


def assert_equal(pair: tuple[Course, Course]) -> None:
    theirs, ours = map(rows, pair)
    for table in theirs:
        assert ours[table] == theirs[table], table
    theirs_on_disk, ours_on_disk = map(files, pair)
    assert sorted(ours_on_disk) == sorted(theirs_on_disk)
    for name in theirs_on_disk:
        assert ours_on_disk[name] == theirs_on_disk[name], name


def in_both(pair: tuple[Course, Course], change: Callable[[Any], None]) -> None:
    """Change something in both gradebooks, as a person does in the formgrader."""
    for course in pair:
        with opened(course) as gradebook:
            change(gradebook)
            gradebook.db.commit()


def submit_both(pair: tuple[Course, Course], student: str, what: Any, *, when: datetime | None = None) -> None:
    for course in pair:
        hand_in(course, student, what, when=when)


# What guides promise of nbgrader's own settings; each changes what is compared.
SETTINGS = f"""
c.LimitOutput.max_traceback = 10
c.IgnorePattern.enabled = True
c.IgnorePattern.pattern = "^oh"
c.Autograde.exclude_overwriting = {{"{CHAPTER}": ["kept.csv"]}}
c.Autograde.permissions = 440
"""


def plug_in(pair: tuple[Course, Course]) -> None:
    """Give both courses the lecturer's own rule for late work."""
    for course in pair:
        with (course.root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
            file.write(f"\nc.AssignLatePenalties.plugin_class = {f'{__package__}.ledger.PointAnHour'!r}\n{SETTINGS}")
        (course.folder("source", ".", CHAPTER) / "kept.csv").write_text("ours", encoding="utf-8")


def shown(course: Course, student: str) -> dict[str, RecordedGrade]:
    """Return a student's grades."""
    with GradebookWriter(course, CHAPTER, autograder_config(course)) as books:
        return books.grades(student)[0]


def test_a_class_and_its_second_attempts_are_recorded_as_by_nbgrader(pair: tuple[Course, Course]) -> None:
    """One play: a class of odd and late submissions, what a person gives by hand, and second attempts."""
    plug_in(pair)
    good = student_notebook(pair[0])
    stripped, short, twice = (student_notebook(pair[0]) for _ in range(3))
    for cell in stripped.cells:
        cell.metadata.pop("nbgrader", None)
    del short.cells[3:6]
    twice.cells.insert(4, nbformat.from_dict({**twice.cells[3], "id": "a-copy"}))
    scribbled = student_notebook(pair[0], answer=None)
    scribbled.cells.append(new_code_cell("print('mine')"))
    long = [nbformat.v4.new_output("stream", name="stderr", text="oh\n" * 900)]
    # Who hands in what with which outputs, how many hours after the deadline, and what that costs at a point an hour.
    students: dict[str, tuple[Any, dict[str, Any], float | None, float]] = {
        "ada": (good, full(), -1, 0),
        "bo": (scribbled, {TESTS[0]: failure(), TESTS[1]: score("'fine'"), TESTS[2]: []}, None, 0),
        "cy": (stripped, full() | {TESTS[0]: score("4.0")}, 0, 0),
        "dee": (short, {}, None, 0),
        "eve": (twice, {TESTS[0]: long}, None, 0),
        "flo": (b"%PDF-1.7", {name: failure() for name in TESTS}, None, 0),
        "gus": (good, full(), 2, 2),
        "hal": (good, full(), 5, 1),
        "ivy": (good, full(), 500, 7.5),  # who would owe more than there is
    }
    for student, (notebook, _, hours, _) in students.items():
        submit_both(pair, student, notebook, when=None if hours is None else DUE + timedelta(hours=hours))
    for course in pair:
        beside = submitted(course, "ada").parent
        (beside / "notes").mkdir()
        (beside / "notes" / "mine.txt").write_text("mine", encoding="utf-8")
        for name in ("data.csv", "kept.csv"):
            (beside / name).write_text("changed", encoding="utf-8")
        nbformat.write(good, submitted(course, "bo").with_name("something else.ipynb"))

    def extend(gradebook: Any) -> None:
        gradebook.add_student("hal")
        gradebook.add_submission(CHAPTER, "hal")
        gradebook.grant_extension(CHAPTER, "hal", hours=4)

    in_both(pair, extend)
    record_both(pair, {student: outputs for student, (_, outputs, _, _) in students.items()})
    graded = files(pair[1])
    assert graded[f"autograded/ada/{CHAPTER}/data.csv"][1] == b"a,b\n1,2\n"
    assert graded[f"autograded/ada/{CHAPTER}/{CHAPTER}.ipynb"][0] & 0o777 == 0o440
    assert graded[f"autograded/ada/{CHAPTER}/kept.csv"][1] == b"changed"
    assert penalties(pair[1], students) == {student: cost for student, (*_, cost) in students.items()}
    ada = shown(pair[1], "ada")
    assert ada["test_causal_mask"] == RecordedGrade(2.5, 4.0, needs_manual_grade=False)
    assert ada["question_root"] == RecordedGrade(None, 4.0, needs_manual_grade=True)
    assert (ada["task_draw"].max_score, ada["task_draw"].needs_manual_grade) == (3.0, True)
    assert set(ada) == {*TESTS, "question_root", "task_draw"}

    def judge(gradebook: Any) -> None:
        about = CHAPTER, CHAPTER, "ada"
        answer = gradebook.find_grade("question_root", *about)
        answer.manual_score, answer.extra_credit, answer.needs_manual_grade = 3.5, 0.5, False
        # A person may overrule the machine as well.
        test = gradebook.find_grade(TESTS[0], *about)
        test.manual_score, test.needs_manual_grade = 4.0, False
        gradebook.find_comment("question_root", *about).manual_comment = "Nearly."
        gradebook.find_comment("task_draw", *about).manual_comment = "Untidy."
        gradebook.find_submission_notebook(*about).flagged = True

    in_both(pair, judge)
    # The second attempt leaves the question open, and a file out; another one is in time.
    submit_both(pair, "ada", student_notebook(pair[0], answer=None), when=DUE - timedelta(hours=1))
    submit_both(pair, "gus", student_notebook(pair[0], answer="Another answer."), when=DUE - timedelta(hours=3))
    for course in pair:
        (submitted(course, "ada").parent / "notes" / "mine.txt").unlink()
    record_both(pair, {"ada": {name: failure() for name in TESTS}, "gus": full()})
    assert f"autograded/ada/{CHAPTER}/notes/mine.txt" not in files(pair[1])
    assert penalties(pair[1], ["gus"]) == {"gus": 0}
    with opened(pair[1]) as gradebook:
        answer = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ada")
        assert (answer.manual_score, answer.extra_credit, answer.score) == (3.5, 0.5, 4.0)
        assert (answer.auto_score, answer.needs_manual_grade) == (0, True)
        comment = gradebook.find_comment("question_root", CHAPTER, CHAPTER, "ada")
        assert (comment.auto_comment, comment.comment) == ("No response.", "Nearly.")
    # nbgrader keeps the time of the first attempt.
    submit_both(pair, "ivy", good)
    with GradebookWriter(pair[1], CHAPTER, autograder_config(pair[1])) as books:
        by_books(books, "ivy", full())
    assert penalties(pair[1], ["ivy"]) == {"ivy": 0}
    with opened(pair[1]) as gradebook:
        assert gradebook.find_submission(CHAPTER, "ivy").timestamp is None


def penalties(course: Course, students: Iterable[str]) -> dict[str, float]:
    """Return what late work costs."""
    with GradebookWriter(course, CHAPTER, autograder_config(course)) as books:
        return {student: books.grades(student)[1] for student in students}


def test_a_submission_takes_one_transaction_and_its_reading_none(course: Course) -> None:
    commits: list[Any] = []
    for student in ("ada", "bo", "cy"):
        hand_in(course, student, student_notebook(course))
    before = rows(course), files(course)
    with GradebookWriter(course, CHAPTER, autograder_config(course)) as books:
        notebooks = {student: prepared(course, student) for student in ("ada", "bo", "cy")}
        assert (rows(course), files(course)) == before, "sanitising writes nothing"
        event.listen(books._shared.engine, "commit", commits.append)
        for student, notebook in notebooks.items():
            play(notebook, full())
            books.record(student, notebook)
    # nbgrader takes one for every cell and more.
    assert len(commits) == 3


def locked(session: Session) -> None:
    raise OperationalError("COMMIT", {}, sqlite3.OperationalError("database is locked"))


def test_what_cannot_be_recorded_leaves_nothing(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_in(course, "ada", student_notebook(course))
    with GradebookWriter(course, CHAPTER, autograder_config(course)) as books:
        with pytest.raises(MissingEntry):
            books.grades("nobody")
        executed = prepared(course, "ada")
        with monkeypatch.context() as patched:
            patched.setattr(Session, "commit", locked)
            with pytest.raises(RecordError, match="database is locked"):
                books.record("ada", executed)
        with opened(course) as gradebook:
            assert gradebook.students == gradebook.assignment_submissions(CHAPTER) == []
        assert not list(course.folder("autograded", "ada", CHAPTER).rglob("*.ipynb"))
        by_books(books, "ada", full())
        before = rows(course)
        # nbgrader stumbles over a value without a text, after two cells that were fine.
        with pytest.raises(RecordError, match="text/plain"):
            by_books(books, "ada", full() | {TESTS[0]: score("1"), TESTS[2]: score("")})
        assert rows(course) == before


def test_a_missing_notebook_is_worth_nothing_and_waits_for_nobody(course: Course) -> None:
    path = hand_in(course, "ada", student_notebook(course), when=DUE + timedelta(hours=2))
    with GradebookWriter(course, CHAPTER, autograder_config(course)) as books:
        by_books(books, "ada", full())
        path.unlink()
        books.record_zero("ada")
        grades, penalty = books.grades("ada")
    assert ({grade.auto_score for grade in grades.values()}, penalty) == ({0}, 0)
    assert not any(grade.needs_manual_grade for grade in grades.values())
    assert not list(course.folder("autograded", "ada", CHAPTER).rglob("*.ipynb"))


def test_a_notebook_beside_the_chapters_is_put_right_by_nbgraders_own_steps(course: Course) -> None:
    test = new_code_cell("1", metadata=mark("other_test", grade=True, locked=True, points=1.0))
    other = nbformat.v4.new_notebook(cells=[test], metadata=student_notebook(course).metadata)
    nbformat.write(other, course.folder("source", ".", CHAPTER) / "other.ipynb")
    generate_assignment(course.config(), CHAPTER)
    edited = nbformat.v4.new_notebook(cells=[new_code_cell("99", metadata=mark("other_test", grade=True, points=9.0))])
    edited.metadata["kernelspec"] = {"name": "mine"}
    about = {"notebook": "other", "assignment": CHAPTER, "student": "ada", "db_url": course.gradebook_url}
    for step in (OthersKernelspec(), OthersCells()):
        step(edited, {"nbgrader": about})
    (cell,) = edited.cells
    assert (cell.source, cell.metadata.nbgrader["points"]) == ("1", 1.0)
    assert edited.metadata["kernelspec"]["name"] == "python3"


def test_names_are_written_where_the_gradebook_has_none(course: Course) -> None:
    for student in ("ada", "bo"):
        hand_in(course, student, student_notebook(course))
    with GradebookWriter(course, CHAPTER, autograder_config(course)) as books:
        for student in ("ada", "bo"):
            by_books(books, student, full())
        with opened(course) as gradebook:
            gradebook.update_or_create_student("bo", first_name="Bodo")
        about = {"first_name": "New", "last_name": "Name", "lms_user_id": ""}
        books.add_student_fields(dict.fromkeys(("ada", "bo", "nobody"), about))
    with opened(course) as gradebook:
        known = {student.id: (student.first_name, student.last_name) for student in gradebook.students}
    assert known == {"ada": ("New", "Name"), "bo": ("Bodo", "Name")}


def test_no_course_is_added_that_nobody_has_named(course: Course) -> None:
    for student in ("ada", "bo"):
        hand_in(course, student, student_notebook(course))
    with GradebookWriter(course, CHAPTER, autograder_config(course)) as books:
        by_books(books, "ada", full())
        with opened(course) as gradebook:
            gradebook.db.execute(text("DELETE FROM course WHERE id <> 'tfcourse'"))
            gradebook.db.commit()
        by_books(books, "bo", full())
        books.grades("bo")
        books.record_zero("ada")
    assert [row[0] for row in rows(course)["course"]] == ["tfcourse"]


def test_what_a_worker_brought_in_pieces_is_refused(course: Course) -> None:
    executed = nbformat.writes(student_notebook(course))
    with pytest.raises(RecordError, match="JSON"):
        parse_notebook(Execution("ada", executed[:-20], 0.0))
