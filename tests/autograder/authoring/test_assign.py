"""Releasing chapters: what is written, that it may be done again, and that a failure leaves no trace."""

from __future__ import annotations

import os
import re
import sqlite3
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbgrader import api
from nbgrader.api import Gradebook
from sqlalchemy.exc import OperationalError

from autograder.atomic_files import write_all_or_none
from autograder.course.authoring.exercise_source import stub_source
from autograder.course.authoring.solution_notebook import CANARY
from autograder.course.authoring.sync import sync
from autograder.course.earlier_releases import earlier_texts_path
from autograder.course.folder import Course
from autograder.course.gradebook.reader import released_chapters
from autograder.course.release.assign import assign
from autograder.course.release.student_files import ASSISTANTS, REQUIREMENTS
from autograder.errors import CourseError
from autograder.intake.notebook.manifest import released_manifest

FIRST, SECOND = "90_first", "91_second"


class Killed(BaseException):
    """Stands for the end of the process: nothing is put back after it."""


@pytest.fixture(autouse=True)
def _small_registry(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exercises of the course are those of the small one."""
    monkeypatch.setattr("autograder.checks.exercises", lambda: small.registry)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "gradebook.db"
    }


def gradebook(course: Course) -> dict[str, float]:
    with Gradebook(course.gradebook_url, "tfcourse") as book:
        return {
            f"{assignment.name}/{cell.name}": cell.max_score
            for assignment in book.assignments
            for notebook in assignment.notebooks
            for cell in notebook.grade_cells
        }


def test_a_release_holds_what_nbgrader_and_what_students_need(small: Any, course: Course) -> None:
    made = assign(small.root, course, ["90", SECOND])
    assert [item.chapter for item in made] == [FIRST, SECOND]
    first = made[0]
    assert first.source == course.root / "source" / FIRST / f"{FIRST}.ipynb"
    assert first.notebook == course.root / "release" / FIRST / f"{FIRST}.ipynb"
    wheel = "tfcourse-0.4.0+ch90-py3-none-any.whl"
    assert first.wheel == course.root / "student" / FIRST / wheel
    names = {path.name for path in first.wheel.parent.iterdir()}
    assert names == {f"{FIRST}.ipynb", wheel, "README.txt", REQUIREMENTS, *ASSISTANTS}
    with zipfile.ZipFile(first.package) as archive:
        inside = {name: archive.read(name) for name in archive.namelist()}
    assert inside == {f"{FIRST}/{path.name}": path.read_bytes() for path in first.wheel.parent.iterdir()}
    assert inside[f"{FIRST}/{FIRST}.ipynb"] == first.notebook.read_bytes()
    readme = inside[f"{FIRST}/README.txt"].decode()
    assert wheel in readme
    assert REQUIREMENTS in readme
    assert [path.name for path in (course.root / "release" / FIRST).iterdir()] == [f"{FIRST}.ipynb"]
    assert gradebook(course) == {
        f"{FIRST}/test_causal_mask": 2,
        f"{FIRST}/test_masked_attention_weights": 3.5,
        f"{FIRST}/question_order": 3,
        f"{SECOND}/test_split_heads": 2,
        f"{SECOND}/test_MultiHeadAttention": 4,
    }


def test_listed_packages_can_be_installed_and_name_no_host(small: Any, course: Course) -> None:
    (made,) = assign(small.root, course, [FIRST])
    lines = made.wheel.with_name(REQUIREMENTS).read_text(encoding="utf-8").splitlines()
    listed = [line for line in lines if not line.startswith("#")]
    assert (made.wheel.parent / listed.pop()).is_file()
    assert all(re.fullmatch("[a-z0-9-]+", line) for line in listed)
    assert "://" not in "".join(lines)


def test_course_file_may_name_an_assignment_of_its_own(small: Any, course: Course) -> None:
    (course.root / "course.toml").write_text("[chapters.homework]\ndue = 2027-03-01T23:59:00\n", encoding="utf-8")
    with pytest.raises(CourseError, match="homework"):
        assign(small.root, course, [FIRST])
    course.folder("source", chapter="homework").mkdir(parents=True)
    assert assign(small.root, course, [FIRST])


def test_the_released_notebook_is_the_chapter_with_stubs_and_an_overview(small: Any, course: Course) -> None:
    (made,) = assign(small.root, course, [FIRST])
    released = nbformat.read(made.notebook, as_version=4)
    assert released.cells.pop(1).source.startswith("**This assignment has 2 exercises for 5.5 points")
    wanted = small.chapter().notebook()
    assert [cell.source for cell in released.cells] == [cell.source for cell in wanted.cells]
    assert [cell.id for cell in released.cells] == [cell.id for cell in wanted.cells]
    cells = {cell.id: cell for cell in released.cells}
    assert cells["causal_mask"].source == stub_source(small.registry["causal_mask"])
    assert cells["test_causal_mask"].metadata.editable is False
    assert cells["test_causal_mask"].metadata.nbgrader.checksum
    assert CANARY not in made.notebook.read_text()


def test_the_source_has_solutions_hidden_tests_and_the_canary(small: Any, course: Course) -> None:
    (made,) = assign(small.root, course, [FIRST])
    source = nbformat.read(made.source, as_version=4)
    cells = {cell.id: cell.source for cell in source.cells}
    assert cells["test_causal_mask"] == (
        "check(causal_mask)\n### BEGIN HIDDEN TESTS\ncheck(causal_mask, hidden=True)\n### END HIDDEN TESTS"
    )
    assert CANARY in cells["causal_mask"]
    assert CANARY in cells["question_order"]
    assert "device=device).tril()" in cells["causal_mask"]
    assert not any("tfcourse sync" in text for text in cells.values())


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
def test_again_gives_the_same_files_and_keeps_what_was_graded(small: Any, course: Course) -> None:
    assign(small.root, course, [FIRST])
    before = files(course.root)
    with Gradebook(course.gradebook_url, "tfcourse") as book:
        book.add_student("ada")
        book.add_submission(FIRST, "ada", timestamp=datetime(2025, 1, 2))
        grade = book.find_grade("test_causal_mask", FIRST, FIRST, "ada")
        grade.manual_score = 1.5
        book.db.commit()
    assign(small.root, course, [FIRST])
    assert files(course.root) == before
    with Gradebook(course.gradebook_url, "tfcourse") as book:
        assert book.find_grade("test_causal_mask", FIRST, FIRST, "ada").manual_score == 1.5


def test_texts_of_the_releases_that_students_have_are_kept(small: Any, course: Course) -> None:
    assign(small.root, course, [FIRST])
    first = released_manifest(course, FIRST).by_name["prompt_order"].source
    for before, after in (("Say why.", "Say why it does."), ("Say why it does.", "Explain it in one sentence.")):
        small.edit(small.chapter().path, before, after)
        sync(small.root)
        assign(small.root, course, [FIRST])
    manifest = released_manifest(course, FIRST)
    assert manifest.wordings["prompt_order"][1:] == (first, first.replace("Say why.", "Say why it does."))
    assert set(manifest.earlier) == {"prompt_order"}


def test_a_damaged_file_of_earlier_texts_is_named(small: Any, course: Course) -> None:
    assign(small.root, course, [FIRST])
    path = earlier_texts_path(course.root, FIRST)
    path.parent.mkdir()
    path.write_text("[1]")
    with pytest.raises(CourseError) as caught:
        released_manifest(course, FIRST)
    assert caught.value.where == str(path)


def test_after_a_repair_the_old_package_is_gone(small: Any, course: Course) -> None:
    assign(small.root, course, [FIRST])
    small.edit(small.root / "pyproject.toml", 'version = "0.4.0"', 'version = "0.4.1"')
    (made,) = assign(small.root, course, [FIRST])
    assert [path.name for path in made.wheel.parent.glob("*.whl")] == ["tfcourse-0.4.1+ch90-py3-none-any.whl"]


def refused(small: Any, course: Course, names: list[str], match: str) -> CourseError:
    """See assign refuse and change nothing."""
    before, entries = files(course.root), gradebook(course)
    folders = {path for path in course.root.rglob("*") if path.is_dir()}
    with pytest.raises(CourseError, match=match) as caught:
        assign(small.root, course, names)
    assert files(course.root) == before
    assert gradebook(course) == entries
    assert {path for path in course.root.rglob("*") if path.is_dir()} == folders
    return caught.value


# A configuration under which nbgrader leaves solutions in what it releases.
LEAKY = """
c.ClearSolutions.begin_solution_delimeter = "BEGIN ANSWER"
c.ClearSolutions.end_solution_delimeter = "END ANSWER"
c.ClearSolutions.enforce_metadata = False
c.GenerateAssignment.preprocessors = ["nbgrader.preprocessors.SaveCells"]
"""


@pytest.mark.parametrize(
    ("names", "file", "text", "says"),
    [
        ([FIRST, "03"], None, "", "no chapter '03'.*90_first, 91_second"),
        ([], None, "", "no chapter"),
        ([FIRST], "student", "x", "student"),
        ([FIRST], f"source/{FIRST}/draft.ipynb", "{}", "draft.ipynb"),
        ([FIRST], "nbgrader_config.py", LEAKY, "solutions"),
        ([FIRST, SECOND], f"../project/chapters/{SECOND}/exercises.md", "\n", "reference"),
    ],
)
def test_what_cannot_be_released_whole_is_refused_and_changes_nothing(
    small: Any, course: Course, names: list[str], file: str | None, text: str, says: str
) -> None:
    if file is not None:
        path = course.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(before.replace("check(split_heads)", "assert True") + text, encoding="utf-8")
    error = refused(small, course, names, "")
    assert re.search(says, f"{error} {error.do}", re.DOTALL)
    # Drift matters in the chapters that are released, and only there.
    assert SECOND not in names or assign(small.root, course, [FIRST])


def test_a_full_gradebook_is_told_as_such_with_what_was_released_before(
    small: Any, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Gradebook.add_source_cell

    def full(self: Gradebook, name: str, notebook: str, assignment: str, **info: object) -> Any:
        if assignment == SECOND:
            raise OperationalError("INSERT", {}, sqlite3.OperationalError("database or disk is full"))
        return add(self, name, notebook, assignment, **info)

    monkeypatch.setattr(Gradebook, "add_source_cell", full)
    with pytest.raises(CourseError, match="full") as caught:
        assign(small.root, course, [FIRST, SECOND])
    assert caught.value.do.endswith(f": {FIRST}.")
    assert released_chapters(course) == [FIRST]


def test_a_gradebook_is_there_in_full_or_not_at_all(
    small: Any, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped() -> str:
        raise KeyboardInterrupt

    path = course.root / "gradebook.db"
    path.unlink()
    with monkeypatch.context() as patched:
        # nbgrader asks for its version when the tables are made.
        patched.setattr(api, "get_alembic_version", stopped)
        with pytest.raises(KeyboardInterrupt):
            assign(small.root, course, [FIRST])
    assert not path.exists()
    assign(small.root, course, [FIRST])
    assert released_chapters(course) == [FIRST]
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM alembic_version").fetchall() == [(1,)]
    database.close()
    assert list(course.root.glob("gradebook.db?*")) == []


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
def test_a_chapter_is_entered_with_all_its_cells_or_not_at_all(
    small: Any, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Gradebook, name: str, *about: str, **info: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        # The last of what nbgrader enters, cell by cell.
        patched.setattr(Gradebook, "add_source_cell", killed)
        with pytest.raises(CourseError, match="Killed"):
            assign(small.root, course, [FIRST])
    assert gradebook(course) == {}
    assign(small.root, course, [FIRST])
    assert released_chapters(course) == [FIRST]
    assert f"{FIRST}/test_causal_mask" in gradebook(course)


def test_a_source_that_was_left_half_way_by_a_kill_goes_to_no_student(
    small: Any, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(self: Path, target: Path) -> None:
        os.link(self, self.with_name(f"{self.name[:-8]}aaaa_bb0"))
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(Killed):
            write_all_or_none({course.root / "source" / FIRST / f"{FIRST}.ipynb": b"with solutions"})
    assert [path.read_bytes() for path in (course.root / "source" / FIRST).glob(".*")] == [b"with solutions"]
    assign(small.root, course, [FIRST])
    for step in ("source", "release"):
        assert [path.name for path in (course.root / step / FIRST).iterdir()] == [f"{FIRST}.ipynb"]


@pytest.mark.filterwarnings("ignore::sqlalchemy.exc.SAWarning")
def test_nbgraders_reason_is_told_when_it_refuses(small: Any, course: Course) -> None:
    assign(small.root, course, [FIRST])
    with Gradebook(course.gradebook_url, "tfcourse") as book:
        book.add_student("ada")
        book.add_submission(FIRST, "ada")
        book.add_grade_cell("gone_since", FIRST, FIRST, max_score=1.0, cell_type="code")
    # Files of another content: those of the release before come back.
    small.edit(small.root / "pyproject.toml", 'version = "0.4.0"', 'version = "0.4.1"')
    error = refused(small, course, [FIRST], "Cannot add or remove cells")
    assert "--course" in error.do
    assert "Traceback" not in str(error)


def test_nbgraders_helper_program_is_found_where_the_environment_is_not_activated(
    small: Any, course: Course, monkeypatch: pytest.MonkeyPatch
) -> None:
    (course.root / "gradebook.db").unlink()
    monkeypatch.setenv("PATH", os.defpath)
    api.get_alembic_version.cache_clear()  # the program is called once for all tests
    assert assign(small.root, course, [FIRST])
    assert os.environ["PATH"] == os.defpath


def test_what_sqlite_left_beside_a_gradebook_that_was_moved_away_is_not_played_into_the_next(
    small: Any, course: Course
) -> None:
    assign(small.root, course, [FIRST])
    (course.root / "gradebook.db").rename(course.root / "old.db")
    (course.root / "gradebook.db-journal").write_bytes(b"of the old one")
    assign(small.root, course, [FIRST])
    assert not (course.root / "gradebook.db-journal").exists()
    assert released_chapters(course) == [FIRST]
