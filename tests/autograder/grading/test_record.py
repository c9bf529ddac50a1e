"""Grades are recorded as nbgrader records them, row by row and file by file, on both databases."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell
from nbgrader.api import MissingEntry
from sqlalchemy import event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from autograder.collecting.collect import collect
from autograder.course.folder import Course
from autograder.engine.interface import Execution
from autograder.grading.plugin import OthersCells, OthersKernelspec, SubmissionExporter, configured
from autograder.grading.recorder import parsed
from autograder.record import gradebook_writer
from autograder.record.gradebook_writer import GradebookWriter, RecordedGrade, RecordError
from autograder.release.nbgrader_release import generate_assignment

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
    with GradebookWriter(ours, CHAPTER, configured(ours)) as books:
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


def plug_in(pair: tuple[Course, Course]) -> None:
    """Give both courses the lecturer's own rule for late work."""
    for course in pair:
        with (course.root / "nbgrader_config.py").open("a", encoding="utf-8") as file:
            file.write(f"\nc.AssignLatePenalties.plugin_class = {f'{__package__}.ledger.PointAnHour'!r}\n")


def test_every_row_and_every_file_is_as_nbgraders(pair: tuple[Course, Course]) -> None:
    good = student_notebook(pair[0])
    stripped, short, twice = (student_notebook(pair[0]) for _ in range(3))
    for cell in stripped.cells:
        cell.metadata.pop("nbgrader", None)
    del short.cells[3:6]
    twice.cells.insert(4, nbformat.from_dict({**twice.cells[3], "id": "a-copy"}))
    scribbled = student_notebook(pair[0], answer=None)
    scribbled.cells.append(new_code_cell("print('mine')"))
    students = {
        "ada": (good, full(), DUE - timedelta(hours=1)),
        "bo": (scribbled, {TESTS[0]: failure(), TESTS[1]: score("'fine'"), TESTS[2]: []}, None),
        "cy": (stripped, full() | {TESTS[0]: score("4.0")}, DUE),
        "dee": (short, {}, None),
        "eve": (twice, {TESTS[0]: [nbformat.v4.new_output("stream", name="stderr", text="oh\n" * 900)]}, None),
        "flo": (b"%PDF-1.7", {name: failure() for name in TESTS}, None),
    }
    for student, (notebook, _, when) in students.items():
        submit_both(pair, student, notebook, when=when)
    for course in pair:
        (submitted(course, "ada").parent / "notes").mkdir()
        (submitted(course, "ada").parent / "notes" / "mine.txt").write_text("mine", encoding="utf-8")
        (submitted(course, "ada").parent / "data.csv").write_text("changed", encoding="utf-8")
        nbformat.write(good, submitted(course, "bo").with_name("something else.ipynb"))
    record_both(pair, {student: outputs for student, (_, outputs, _) in students.items()})
    graded = files(pair[1])
    assert graded[f"autograded/ada/{CHAPTER}/data.csv"][1] == b"a,b\n1,2\n"
    assert graded[f"autograded/ada/{CHAPTER}/{CHAPTER}.ipynb"][0] & 0o777 == 0o444


def test_grades_are_what_the_gradebook_says(course: Course) -> None:
    hand_in(course, "ada", student_notebook(course))
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        by_books(books, "ada", full())
        grades, penalty = books.grades("ada")
    assert penalty == 0.0
    assert grades["test_causal_mask"] == RecordedGrade(2.5, 4.0, needs_manual_grade=False)
    assert grades["question_root"] == RecordedGrade(None, 4.0, needs_manual_grade=True)
    assert grades["task_draw"].max_score == 3.0
    assert grades["task_draw"].needs_manual_grade
    assert set(grades) == {*TESTS, "question_root", "task_draw"}


def test_who_has_no_grade_is_said_to_have_none(course: Course) -> None:
    with GradebookWriter(course, CHAPTER, configured(course)) as books, pytest.raises(MissingEntry):
        books.grades("nobody")


def test_late_work_loses_what_the_courses_plugin_takes_and_an_extension_counts(pair: tuple[Course, Course]) -> None:
    plug_in(pair)
    delays = {"ada": -2, "bo": 2, "cy": 5, "dee": 500}
    for student, hours in delays.items():
        submit_both(pair, student, student_notebook(pair[0]), when=DUE + timedelta(hours=hours))

    def extend(gradebook: Any) -> None:
        gradebook.add_student("cy")
        gradebook.add_submission(CHAPTER, "cy")
        gradebook.grant_extension(CHAPTER, "cy", hours=4)

    in_both(pair, extend)
    record_both(pair, {student: full() for student in delays})
    with GradebookWriter(pair[1], CHAPTER, configured(pair[1])) as books:
        # The last one would owe more than there is.
        assert {student: books.grades(student)[1] for student in delays} == {"ada": 0, "bo": 2, "cy": 1, "dee": 7.5}


def test_a_second_attempt_in_time_takes_the_penalty_of_the_first_away(pair: tuple[Course, Course]) -> None:
    plug_in(pair)
    submit_both(pair, "ada", student_notebook(pair[0]), when=DUE + timedelta(hours=3))
    record_both(pair, {"ada": full()})
    submit_both(pair, "ada", student_notebook(pair[0]), when=DUE - timedelta(hours=3))
    record_both(pair, {"ada": full()})
    with GradebookWriter(pair[1], CHAPTER, configured(pair[1])) as books:
        assert books.grades("ada")[1] == 0


def test_a_second_attempt_without_a_time_has_none_where_nbgrader_keeps_the_first_ones(
    pair: tuple[Course, Course],
) -> None:
    plug_in(pair)
    submit_both(pair, "ada", student_notebook(pair[0]), when=DUE + timedelta(hours=3))
    record_both(pair, {"ada": full()})
    submit_both(pair, "ada", student_notebook(pair[0]))
    with GradebookWriter(pair[1], CHAPTER, configured(pair[1])) as books:
        assert books.grades("ada")[1] > 0
        by_books(books, "ada", full())
        assert books.grades("ada")[1] == 0
    with opened(pair[1]) as gradebook:
        assert gradebook.find_submission(CHAPTER, "ada").timestamp is None


def test_what_a_person_gave_is_kept_when_work_is_graded_again_and_waits_for_another_look(
    pair: tuple[Course, Course],
) -> None:
    submit_both(pair, "ada", student_notebook(pair[0]))
    submit_both(pair, "bo", student_notebook(pair[0]))
    record_both(pair, {"ada": full(), "bo": full()})

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
    # The second attempt leaves the question open.
    submit_both(pair, "ada", student_notebook(pair[0], answer=None))
    record_both(pair, {"ada": {name: failure() for name in TESTS}})
    with opened(pair[1]) as gradebook:
        answer = gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ada")
        assert (answer.manual_score, answer.extra_credit, answer.score) == (3.5, 0.5, 4.0)
        assert (answer.auto_score, answer.needs_manual_grade) == (0, True)
        comment = gradebook.find_comment("question_root", CHAPTER, CHAPTER, "ada")
        assert (comment.auto_comment, comment.comment) == ("No response.", "Nearly.")


def test_a_second_attempt_replaces_the_files_of_the_first(pair: tuple[Course, Course]) -> None:
    submit_both(pair, "ada", student_notebook(pair[0]))
    for course in pair:
        submitted(course, "ada").with_name("first.txt").write_text("1", encoding="utf-8")
    record_both(pair, {"ada": full()})
    submit_both(pair, "ada", student_notebook(pair[0], answer="Another answer."))
    for course in pair:
        submitted(course, "ada").with_name("first.txt").unlink()
    record_both(pair, {"ada": {TESTS[0]: score("1")}})
    assert f"autograded/ada/{CHAPTER}/first.txt" not in files(pair[1])


@pytest.mark.parametrize("attempt", ["first", "second"])
def test_a_missing_notebook_is_worth_nothing_and_waits_for_nobody(shelf: Shelf, tmp_path: Path, attempt: str) -> None:
    pair = two_notebook_pair(shelf, tmp_path)
    if attempt == "second":
        submit_both(pair, "ada", student_notebook(pair[0]), when=DUE + timedelta(hours=2))
        record_both(pair, {"ada": full()})

        def judge(gradebook: Any) -> None:
            gradebook.find_grade("question_root", CHAPTER, CHAPTER, "ada").manual_score = 2.0

        in_both(pair, judge)
        for course in pair:
            submitted(course, "ada").unlink()
    nbgrader, ours = pair
    # nbgrader knows a missing notebook where an assignment has several: the other one is there.
    other = nbformat.read(nbgrader.root / "release" / CHAPTER / "other.ipynb", as_version=4)
    for course in pair:
        folder = submitted(course, "ada").parent
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "timestamp.txt").write_text("2026-03-02 08:00:00 UTC", encoding="utf-8")
    nbformat.write(other, submitted(nbgrader, "ada").with_name("other.ipynb"))
    by_nbgrader(nbgrader, "ada", {})
    with GradebookWriter(ours, CHAPTER, configured(ours)) as books:
        books.record_zero("ada")
        grades, _ = books.grades("ada")
    assert {grade.auto_score for grade in grades.values()} == {0}
    assert not any(grade.needs_manual_grade for grade in grades.values())
    theirs, mine = map(rows, pair)
    for table in theirs:
        # Of the other notebook nothing is recorded here.
        assert without_other(mine[table]) == without_other(theirs[table]), table
    assert not (ours.folder("autograded", "ada", CHAPTER) / f"{CHAPTER}.ipynb").exists()
    assert not (nbgrader.folder("autograded", "ada", CHAPTER) / f"{CHAPTER}.ipynb").exists()


def without_other(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [row for row in found if "other" not in repr(row)]


def two_notebook_pair(shelf: Shelf, folder: Path) -> tuple[Course, Course]:
    """Copies of the course whose chapter has a second notebook."""
    mine = Shelf(shelf.released, folder, shelf.server, shelf.database)
    course = mine.copy("two notebooks")
    other = nbformat.v4.new_notebook(
        cells=[new_code_cell("1", metadata=mark("other_test", grade=True, locked=True, points=1.0))]
    )
    other.metadata = student_notebook(course).metadata
    nbformat.write(other, course.folder("source", ".", CHAPTER) / "other.ipynb")
    generate_assignment(course.config(), CHAPTER)
    database = "" if mine.server is None else str(make_url(course.gradebook_url).database)
    twins = Shelf(course.root, folder, mine.server, database)
    return twins.copy("nbgrader"), twins.copy("ours")


def test_a_notebook_beside_the_chapters_is_put_right_by_nbgraders_own_steps(shelf: Shelf, tmp_path: Path) -> None:
    _, ours = two_notebook_pair(shelf, tmp_path)
    edited = nbformat.v4.new_notebook(cells=[new_code_cell("99", metadata=mark("other_test", grade=True, points=9.0))])
    edited.metadata["kernelspec"] = {"name": "mine"}
    about = {"notebook": "other", "assignment": CHAPTER, "student": "ada", "db_url": ours.gradebook_url}
    for step in (OthersKernelspec(), OthersCells()):
        step(edited, {"nbgrader": about})
    (cell,) = edited.cells
    assert (cell.source, cell.metadata.nbgrader["points"]) == ("1", 1.0)
    assert edited.metadata["kernelspec"]["name"] == "python3"


def test_names_are_written_where_the_gradebook_has_none(course: Course) -> None:
    for student in ("ada", "bo"):
        hand_in(course, student, student_notebook(course))
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        for student in ("ada", "bo"):
            by_books(books, student, full())
        with opened(course) as gradebook:
            gradebook.find_student("bo").first_name = "Bodo"
            gradebook.db.commit()
        about = {"first_name": "New", "last_name": "Name", "lms_user_id": ""}
        books.name_students({"ada": about, "bo": about, "not in the gradebook": about})
    with opened(course) as gradebook:
        known = {student.id: (student.first_name, student.last_name) for student in gradebook.students}
    assert known == {"ada": ("New", "Name"), "bo": ("Bodo", "Name")}


def test_sanitising_writes_nothing(course: Course) -> None:
    hand_in(course, "ada", student_notebook(course))
    before = rows(course), files(course)
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        books.sanitise("ada", submitted(course, "ada"))
    assert (rows(course), files(course)) == before


def test_no_course_is_added_that_nobody_has_named(course: Course) -> None:
    for student in ("ada", "bo"):
        hand_in(course, student, student_notebook(course))
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        by_books(books, "ada", full())
        with opened(course) as gradebook:
            gradebook.db.execute(text("DELETE FROM course WHERE id <> 'tfcourse'"))
            gradebook.db.commit()
        by_books(books, "bo", full())
        books.grades("bo")
        books.record_zero("ada")
    assert [row[0] for row in rows(course)["course"]] == ["tfcourse"]


def test_the_grades_of_a_notebook_are_written_all_or_none(course: Course) -> None:
    hand_in(course, "ada", student_notebook(course))
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        by_books(books, "ada", full())
        before = rows(course)
        # nbgrader stumbles over a value without a text, after two cells that were fine.
        odd = full() | {TESTS[0]: score("1"), TESTS[2]: score("")}
        with pytest.raises(RecordError, match="text/plain"):
            by_books(books, "ada", odd)
        assert rows(course) == before
        by_books(books, "ada", full() | {TESTS[0]: score("1")})
        assert books.grades("ada")[0][TESTS[0]].auto_score == 1.0


def test_a_submission_takes_few_transactions(course: Course) -> None:
    hand_in(course, "ada", student_notebook(course))
    written: list[Any] = []
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        by_books(books, "ada", full())
        event.listen(books._shared.engine, "commit", written.append)
        by_books(books, "ada", full())
        books.grades("ada")
    # Student and submission; the grades and comments of all cells; the penalty. nbgrader takes one for every cell and more.
    assert len(written) <= 5


def test_what_was_sanitised_for_the_run_is_not_sanitised_again(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    hand_in(course, "ada", student_notebook(course))
    taken: list[Path] = []
    take = SubmissionExporter.from_filename

    def counted(self: Any, filename: str, *args: Any, **kw: Any) -> Any:
        taken.append(Path(filename))
        return take(self, filename, *args, **kw)

    monkeypatch.setattr(SubmissionExporter, "from_filename", counted)
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        by_books(books, "ada", full())
        first, again = taken
        assert (first, again) == (
            submitted(course, "ada"),
            course.folder("autograded", "ada", CHAPTER) / f"{CHAPTER}.ipynb",
        )


def test_a_run_that_was_taken_up_again_sanitises_anew(pair: tuple[Course, Course]) -> None:
    nbgrader, ours = pair
    submit_both(pair, "ada", student_notebook(ours))
    by_nbgrader(nbgrader, "ada", full())
    with GradebookWriter(ours, CHAPTER, configured(ours)) as books:
        notebook = nbformat.reads(books.sanitise("ada", submitted(ours, "ada")), as_version=4)
    play(notebook, full())
    with GradebookWriter(ours, CHAPTER, configured(ours)) as books:
        books.record("ada", notebook)
    assert_equal(pair)


def test_a_file_that_was_replaced_during_the_run_is_not_recorded(course: Course) -> None:
    hand_in(course, "ada", student_notebook(course))
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        executed = nbformat.reads(books.sanitise("ada", submitted(course, "ada")), as_version=4)
        hand_in(course, "ada", student_notebook(course, answer="Something else."))
        with pytest.raises(RecordError, match="replaced meanwhile"):
            books.record("ada", executed)


def test_what_cannot_be_recorded_leaves_nothing_in_the_gradebook(course: Course) -> None:
    hand_in(course, "ada", student_notebook(course))
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        executed = nbformat.reads(books.sanitise("ada", submitted(course, "ada")), as_version=4)
        hand_in(course, "ada", student_notebook(course, answer="Something else."))
        with pytest.raises(RecordError):
            books.record("ada", executed)
    with opened(course) as gradebook:
        assert gradebook.students == []
        assert gradebook.assignment_submissions(CHAPTER) == []


def test_a_commit_that_fails_leaves_no_graded_notebook(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(session: Session) -> None:
        raise OperationalError("COMMIT", {}, sqlite3.OperationalError("database is locked"))

    hand_in(course, "ada", student_notebook(course))
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        executed = nbformat.reads(books.sanitise("ada", submitted(course, "ada")), as_version=4)
        with monkeypatch.context() as patched:
            patched.setattr(Session, "commit", locked)
            with pytest.raises(RecordError, match="database is locked"):
                books.record("ada", executed)
        assert not list(course.folder("autograded", "ada", CHAPTER).rglob("*.ipynb"))
        by_books(books, "ada", full())
        assert books.grades("ada")[0][TESTS[0]].auto_score == 2.5


def test_only_so_many_submissions_wait_in_memory(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gradebook_writer, "KEPT", 2)
    students = ["ada", "bo", "cy"]
    for student in students:
        hand_in(course, student, student_notebook(course))
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        sanitised = {student: books.sanitise(student, submitted(course, student)) for student in students}
        assert list(books._sanitised) == ["bo", "cy"]
        for student in students:
            books.record(student, nbformat.reads(sanitised[student], as_version=4))
        assert not books._sanitised


@pytest.mark.parametrize(
    "stamp", [b"yesterday", b"\xff\xfe", b"", b"9" * 400], ids=["words", "bytes", "empty", "digits"]
)
def test_a_missing_notebook_is_recorded_whatever_its_time_stamp_is(course: Course, stamp: bytes) -> None:
    folder = course.folder("submitted", "ada", CHAPTER)
    folder.mkdir(parents=True)
    (folder / "timestamp.txt").write_bytes(stamp)
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        books.record_zero("ada")
        assert books.grades("ada")[0][TESTS[0]].auto_score == 0
    with opened(course) as gradebook:
        assert gradebook.find_submission(CHAPTER, "ada").timestamp is None


def stamped(course: Course, what: str) -> Path:
    """Hand in a notebook whose time stamp is odd."""
    path = hand_in(course, "ada", student_notebook(course)).with_name("timestamp.txt")
    if what == "a pipe":
        os.mkfifo(path)
    elif what == "a link":
        path.symlink_to(course.root / "when.txt")
        (course.root / "when.txt").write_text("2026-03-01 08:00:00 UTC")
    else:
        path.write_bytes(
            {"no time": b"yesterday", "no text": b"\xff\xfe", "too large": b"9" * 400, "empty": b" "}[what]
        )
    return path


@pytest.mark.parametrize("what", ["no time", "no text", "too large", "empty", "a pipe", "a link"])
def test_a_time_stamp_that_says_no_time_is_none(course: Course, what: str) -> None:
    stamped(course, what)
    with GradebookWriter(course, CHAPTER, configured(course)) as books:
        by_books(books, "ada", full())
        assert books.grades("ada")[0][TESTS[0]].auto_score == 2.5
    with opened(course) as gradebook:
        assert gradebook.find_submission(CHAPTER, "ada").timestamp is None
    assert [problem.kind for problem in collect(course, CHAPTER).problems] == ["no time"] * (what != "empty")


def test_what_a_worker_brought_in_pieces_is_refused(course: Course) -> None:
    executed = nbformat.writes(student_notebook(course))
    with pytest.raises(RecordError, match="JSON"):
        parsed(Execution("ada", executed[:-20], 0.0))


def test_closed_books_open_again(course: Course) -> None:
    hand_in(course, "ada", student_notebook(course))
    books = GradebookWriter(course, CHAPTER, configured(course))
    by_books(books, "ada", full())
    books.close()
    books.close()
    assert books.grades("ada")[0][TESTS[0]].auto_score == 2.5
    books.close()
