"""The command line says what is wrong and what to do, ends with its exit code, and changes nothing that it should not."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner, Result

from autograder.commands.main import main
from autograder.course.folder import Course
from autograder.course.lock import course_lock
from autograder.errors import CourseError
from autograder.site.build import SiteReport

ROOT = Path(__file__).parents[2]
ENTRY_POINT = Path(sys.executable).parent / "tfcourse"
Bound = Callable[[], AbstractContextManager[None]]
Run = Callable[..., Result]
Snapshot = Callable[[Path], dict[str, str]]
Text = Callable[..., str]
CONTEXT = click.Context(main)
COMMANDS = main.list_commands(CONTEXT)


def named(name: str) -> click.Command:
    """Return a command of the program."""
    found = main.get_command(CONTEXT, name)
    assert found is not None
    return found


CHAPTER, OTHER = "04_multi_head", "03_scaled_dot_product"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with all chapters, without a course, a solution notebook or a package of its own; it is the current folder."""
    root = tmp_path / "project"
    shutil.copytree(ROOT / "chapters", root / "chapters")
    (root / "_config.yml").write_text("title: A course\n", encoding="utf-8")
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def things(tmp_path: Path, notebook: Text) -> dict[str, Path]:
    """Nonsense of every kind."""
    box = tmp_path / "things"
    for name in ("empty", "texts", "other", "garbage"):
        (box / name).mkdir(parents=True)
    (box / "texts" / "ada.txt").write_text("no notebook", encoding="utf-8")
    (box / "garbage.ipynb").write_text("no notebook", encoding="utf-8")
    (box / "no_exercise.ipynb").write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    for student in ("ada", "bo"):
        (box / "other" / f"{student}.ipynb").write_text(notebook(OTHER), encoding="utf-8")
    return {path.name: path for path in box.iterdir()} | {"ada.txt": box / "texts" / "ada.txt"}


def refused(result: Result, *words: str) -> None:
    """Assert that a command was refused: exit code 2, a message with these words, nothing on standard output, no traceback."""
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith(("tfcourse: ", "Usage: "))
    assert "Traceback" not in result.stderr
    for word in words:
        assert word in result.stderr


# ---------------------------------------------------------------------------------------------------------------------- help


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example_on_a_line_of_its_own_and_the_command_takes_it(name: str) -> None:
    result = CliRunner().invoke(main, [name, "--help"], terminal_width=60)
    assert result.exit_code == 0
    (example,) = re.findall(r"^  Example:\n    (tfcourse .*)$", result.output, re.MULTILINE)
    program, command, *words = shlex.split(example)
    assert (program, command) == ("tfcourse", name)
    named(name).make_context(name, words)


def test_the_groups_example_is_made_of_commands_that_exist() -> None:
    (example,) = re.findall(r"^    (tfcourse .*)$", CliRunner().invoke(main, ["--help"]).output, re.MULTILINE)
    for part in example.split("&&"):
        _, command, *words = shlex.split(part)
        named(command).make_context(command, words)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_help_lists_every_command_with_its_whole_first_sentence(width: int) -> None:
    listed = CliRunner().invoke(main, ["--help"], terminal_width=width).output.partition("Commands:")[2]
    words = " ".join(listed.split())
    for name in COMMANDS:
        assert f"{name} {named(name).help.strip().partition(chr(10))[0]}"[:-1] in words  # type: ignore[union-attr]
    assert "..." not in words


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_can_print_json(name: str) -> None:
    assert "--json" in [option for parameter in named(name).params for option in parameter.opts]


@pytest.mark.parametrize(
    "name",
    ["assign", "students", "autograde", "regrade", "mark", "replay", "report", "export", "sample-class", "doctor"],
)
def test_every_command_that_touches_a_course_lets_one_name_it(name: str) -> None:
    assert "--course" in [option for parameter in named(name).params for option in parameter.opts]


def test_an_option_that_does_not_exist_is_wrong_usage(run: Run) -> None:
    refused(run("report", "--colour"), "No such option")


# ------------------------------------------------------------------------------------------------------------------ nonsense


@pytest.mark.parametrize("name", ["assign", "solve"])
@pytest.mark.parametrize("chapter", ["77", "", "04_multi_heads", "../04_multi_head"])
def test_a_chapter_that_the_project_lacks_is_refused_with_those_it_has(
    project: Path, run: Run, snapshot: Snapshot, name: str, chapter: str
) -> None:
    before = snapshot(project)
    refused(run(name, chapter), repr(chapter), CHAPTER)
    assert snapshot(project) == before


@pytest.mark.parametrize("name", ["autograde", "regrade", "report", "export", "sample-class"])
@pytest.mark.parametrize("chapter", ["77", "", "0"])
def test_a_chapter_that_the_course_lacks_is_refused_with_those_it_has(
    project: Path, course_dir: Path, run: Run, snapshot: Snapshot, name: str, chapter: str
) -> None:
    before = snapshot(course_dir)
    refused(run(name, chapter, "--course", course_dir), repr(chapter), CHAPTER, OTHER)
    assert snapshot(course_dir) == before


def test_a_build_tells_how_much_there_is_to_read(project: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    lesson = f"chapters/{CHAPTER}/lesson"
    site = SiteReport(project / "site", (lesson,), 12.0, {lesson: 3.0}, {lesson: 4826})
    monkeypatch.setattr("autograder.site.build.build_site", lambda *_, **__: site)
    files = SimpleNamespace(paths={}, add_packages=lambda: None)
    monkeypatch.setattr("autograder.release.student_files.StudentFiles", lambda *_: files)
    for name in ("leaks.find_leaks", "secret_texts.project_secrets", "leaks.site_materials"):
        monkeypatch.setattr(f"autograder.release.{name}", lambda *_: [])
    assert f"{CHAPTER}: a lesson of 4,826 words" in run("build").output


@pytest.mark.parametrize(
    "words", [["build"], ["assign", "04"], ["solve"], ["sync"], ["sample-class"]], ids=lambda w: w[0]
)
def test_outside_the_project_a_command_that_needs_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(run(*words), str(tmp_path), "not inside the course's project", "Change into your clone")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [["autograde", "04"], ["regrade", "04"], ["replay", "ada", "04"], ["report"], ["export"]],
    ids=lambda w: w[0],
)
def test_where_there_is_no_course_the_way_to_one_is_told(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, run: Run, words: list[str]
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(run(*words, "--course", empty), str(empty), "tfcourse assign")
    refused(run(*words), str(project / "course"), "tfcourse assign")
    monkeypatch.chdir(empty)
    refused(run(*words), "--course")
    assert list(empty.iterdir()) == []
    assert not (project / "course").exists()


@pytest.mark.parametrize("thing", ["empty", "texts", "ada.txt", "garbage.ipynb", "nowhere"])
def test_submissions_without_a_notebook_are_refused_before_anything_is_touched(
    project: Path, course_dir: Path, things: dict[str, Path], run: Run, snapshot: Snapshot, thing: str
) -> None:
    source = things.get(thing, project / "nowhere")
    before = snapshot(course_dir)
    refused(run("autograde", "04", "--course", course_dir, "--submissions", source), str(source))
    assert snapshot(course_dir) == before


def test_submissions_of_another_chapter_only_are_refused_and_replace_nothing(
    project: Path, course_dir: Path, things: dict[str, Path], notebook: Text, run: Run, snapshot: Snapshot
) -> None:
    mine = course_dir / "submitted" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    mine.parent.mkdir(parents=True)
    mine.write_text(notebook(CHAPTER), encoding="utf-8")
    before = snapshot(course_dir)
    result = run("autograde", "04", "--course", course_dir, "--submissions", things["other"])
    refused(result, "all 2 notebooks", f"not of {CHAPTER} but of {OTHER}", f"tfcourse autograde {OTHER}")
    assert snapshot(course_dir) == before


def test_a_course_without_submissions_says_where_they_go(
    project: Path, course_dir: Path, run: Run, snapshot: Snapshot
) -> None:
    before = snapshot(course_dir)
    refused(run("autograde", "04", "--course", course_dir, "--device", "cpu"), "no submission", "--submissions")
    assert snapshot(course_dir) == before


@pytest.mark.parametrize("words", [["regrade", "04"], ["replay", "ada", "04"]], ids=lambda w: w[0])
def test_before_anything_is_graded_there_is_nothing_to_grade_again(
    course_dir: Path, run: Run, words: list[str]
) -> None:
    refused(run(*words, "--course", course_dir), "grade", f"tfcourse autograde {CHAPTER}")


def test_a_course_in_which_somebody_is_grading_is_left_alone(
    course_dir: Path, notebook: Text, run: Run, snapshot: Snapshot
) -> None:
    from autograder.course.lock import course_lock

    mine = course_dir / "submitted" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    mine.parent.mkdir(parents=True)
    mine.write_text(notebook(CHAPTER), encoding="utf-8")
    with course_lock(Course(course_dir)):
        before = snapshot(course_dir)
        for words in (("assign", "04"), ("autograde", "04"), ("regrade", "04")):
            refused(run(*words, "--course", course_dir), str(course_dir), "another tfcourse is at work")
        assert snapshot(course_dir) == before


def test_where_all_lies_in_the_wrong_place_it_is_said_where_it_belongs(
    course_dir: Path, notebook: Text, run: Run
) -> None:
    (course_dir / "submitted").mkdir(exist_ok=True)
    (course_dir / "submitted" / "ada.ipynb").write_text(notebook(CHAPTER), encoding="utf-8")
    result = run("autograde", "04", "--course", course_dir)
    refused(result, "there is no submission for", "1 notebook (ada.ipynb) here", "submitted/STUDENT/")


def test_a_download_of_which_nothing_could_be_brought_in_says_why(
    course_dir: Path, notebook: Text, run: Run, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("ada.ipynb", notebook(CHAPTER))
    (tmp_path / "all.zip").write_bytes(damaged((tmp_path / "all.zip").read_bytes()))
    result = run("autograde", "04", "--course", course_dir, "--submissions", tmp_path / "all.zip")
    refused(result, "there is no submission for", "ada.ipynb", "Download it again, or ask for the notebook once more.")


def damaged(archive: bytes) -> bytes:
    """Return an archive of one stored text in which the text is another than its checksum is of."""
    return archive.replace(b'"nbformat"', b'"nbFORMAT"', 1)


def test_a_limit_that_does_not_exist_is_refused_with_those_that_do(graded_dir: Path, run: Run) -> None:
    with (graded_dir / "nbgrader_config.py").open("a", encoding="utf-8") as config:
        config.write("\nc.GradingLimits.memory = 1\n")
    refused(run("autograde", "04", "--course", graded_dir), "no limit memory", "memory_mb")


@pytest.mark.parametrize("words", [["report"], ["export"]], ids=lambda w: w[0])
def test_before_anybody_is_in_the_gradebook_there_is_nothing_to_tell(
    course_dir: Path, run: Run, snapshot: Snapshot, words: list[str]
) -> None:
    before = snapshot(course_dir)
    refused(run(*words, "--course", course_dir), "no student", "tfcourse autograde")
    assert snapshot(course_dir) == before


@pytest.mark.parametrize("thing", ["empty", "ada.txt", "garbage.ipynb", "no_exercise.ipynb", "nowhere.ipynb"])
def test_validate_says_what_is_no_chapters_notebook(
    things: dict[str, Path], tmp_path: Path, run: Run, snapshot: Snapshot, thing: str
) -> None:
    path = things.get(thing, tmp_path / thing)
    before = snapshot(tmp_path)
    refused(run("validate", path), str(path))
    assert snapshot(tmp_path) == before


def test_solutions_that_are_missing_or_damaged_are_told_with_the_command_that_writes_them(
    project: Path, run: Run, snapshot: Snapshot
) -> None:
    before = snapshot(project)
    refused(run("solve", "04", "--device", "cpu"), "solution notebook is missing", "tfcourse sync")
    assert snapshot(project) == before
    damaged = project / "solutions" / CHAPTER / "exercises.ipynb"
    damaged.parent.mkdir(parents=True)
    damaged.write_text("{}", encoding="utf-8")
    refused(run("solve", "04", "--device", "cpu"), str(damaged), "tfcourse sync")


def test_a_project_without_exercises_is_not_called_sound(project: Path, run: Run) -> None:
    for exercises in project.glob("chapters/*/exercises.md"):
        exercises.unlink()
    refused(run("solve"), "no chapter has exercises")


# ------------------------------------------------------------------------------------------------- what cannot be written


def places(project: Path, course_dir: Path, below: Path) -> dict[str, list[object]]:
    """Return commands that write below a place."""
    return {
        "assign": ["assign", "04", "--course", below / "course"],
        "build": ["build", "--output", below / "site"],
        "report": ["report", "--course", course_dir, "--output", below / "report.html"],
        "export": ["export", "--course", course_dir, "--to", below / "export"],
    }


@pytest.fixture
def graded_dir(course_dir: Path) -> Path:
    """A course with a student who has a grade."""
    from nbgrader.api import Gradebook

    with Gradebook(Course.open(course_dir).gradebook_url, "tfcourse") as gradebook:
        gradebook.add_student("ada", first_name="Ada", last_name="Lovelace")
        gradebook.add_submission(CHAPTER, "ada")
    return course_dir


@pytest.mark.parametrize("name", ["assign", "build", "report", "export"])
def test_a_file_in_the_place_of_a_folder_is_refused_and_kept(
    project: Path, graded_dir: Path, tmp_path: Path, run: Run, snapshot: Snapshot, name: str
) -> None:
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    before = snapshot(tmp_path)
    refused(run(*places(project, graded_dir, tmp_path / "file")[name]), str(tmp_path / "file"))
    assert snapshot(tmp_path) == before


@pytest.fixture
def read_only(
    graded_dir: Path, project: Path, monkeypatch: pytest.MonkeyPatch, bound_by_permissions: Bound
) -> Iterator[dict[str, Path]]:
    """A course and a project that can be read and not be written by the user of the block ``bound_by_permissions()``."""
    box = Path(tempfile.mkdtemp(prefix="read-only-")).resolve()
    try:
        found = {"course": box / "course", "project": box / "project"}
        shutil.copytree(graded_dir, found["course"])
        shutil.copytree(project, found["project"])
        monkeypatch.chdir(found["project"])
        for path in (box, *box.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with bound_by_permissions(), pytest.raises(PermissionError):
            (found["course"] / "probe").touch()  # the folder really is what it should be
        yield found
    finally:
        for path in (box, *box.rglob("*")):
            path.chmod(path.stat().st_mode | stat.S_IRWXU)
        shutil.rmtree(box)


@pytest.mark.parametrize(
    "words",
    [
        ["assign", "04"],
        ["assign", "04", "--course", "{new}"],
        ["autograde", "04", "--device", "cpu", "--submissions", "{submissions}"],
        ["regrade", "04", "--device", "cpu"],
        ["report"],
        ["export"],
        ["sample-class", "--students", "2"],
        ["sync"],
        ["build", "--output", "{new}"],
    ],
    ids=" ".join,
)
def test_a_folder_that_may_not_be_written_is_named_and_nothing_changes(
    read_only: dict[str, Path],
    notebook: Text,
    run: Run,
    snapshot: Snapshot,
    bound_by_permissions: Bound,
    words: list[str],
) -> None:
    box = read_only["course"].parent
    before = snapshot(box)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "ada.ipynb").write_text(notebook(CHAPTER), encoding="utf-8")
        Path(folder).chmod(0o755)
        filled = [word.format(new=box / "new", submissions=folder) for word in words]
        if (
            words[0] in ("assign", "autograde", "regrade", "report", "export", "sample-class")
            and "--course" not in words
        ):
            filled += ["--course", str(read_only["course"])]
        with bound_by_permissions():
            result = run(*filled)
    refused(result, str(box))
    assert snapshot(box) == before


def test_a_dry_run_of_regrade_is_not_refused_for_a_course_that_may_not_be_written(
    read_only: dict[str, Path], run: Run, bound_by_permissions: Bound
) -> None:
    with bound_by_permissions():
        result = run("regrade", "04", "--dry-run", "--device", "cpu", "--course", read_only["course"])
    refused(result, f"nothing has been graded for {CHAPTER}")


def test_a_new_course_is_unmade_when_its_first_release_fails(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    from autograder.errors import CourseError
    from autograder.release import assign

    def fail(*arguments: object) -> None:
        raise CourseError("a solution would get out")

    monkeypatch.setattr(assign, "assign", fail)
    before = snapshot(project)
    refused(run("assign", "04", "--course", "some/where/course"), "a solution would get out")
    assert snapshot(project) == before


def test_a_folder_that_was_there_is_never_unmade(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    from autograder.errors import CourseError
    from autograder.release import assign

    def half(root: Path, course: Course, names: list[str]) -> None:
        (course.root / "release").mkdir()
        raise CourseError("the second chapter has drifted")

    monkeypatch.setattr(assign, "assign", half)
    (project / "course").mkdir()
    (project / "course" / "gradebook.db").write_bytes(b"mine")
    refused(run("assign", "04"), "the second chapter has drifted")
    assert set(snapshot(project / "course")) == {"gradebook.db", "journal", "nbgrader_config.py", "release"}
    assert (project / "course" / "gradebook.db").read_bytes() == b"mine"


# ------------------------------------------------------------------------------------------------- what libraries raise


def test_a_gradebook_that_is_in_use_says_so(graded_dir: Path, run: Run) -> None:
    holder = sqlite3.connect(graded_dir / "gradebook.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        refused(run("report", "--course", graded_dir), str(graded_dir / "gradebook.db"), "is in use", "formgrader")
    finally:
        holder.close()


@pytest.mark.parametrize("words", [["autograde", "04"], ["report"], ["export"], ["sample-class"]], ids=lambda w: w[0])
def test_a_damaged_gradebook_is_told_from_a_missing_one_and_both_are_left_alone(
    project: Path, graded_dir: Path, run: Run, snapshot: Snapshot, words: list[str]
) -> None:
    gradebook = graded_dir / "gradebook.db"
    gradebook.write_bytes(b"this was a gradebook once" * 100)
    before = snapshot(graded_dir)
    refused(run(*words, "--course", graded_dir), str(gradebook), "is damaged", "copy")
    assert snapshot(graded_dir) == before
    gradebook.unlink()
    refused(run(*words, "--course", graded_dir), str(gradebook), "no gradebook yet", "tfcourse assign")
    assert not gradebook.exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("c = get_config(\n", ("line 1", "is not Python")),
        ("import not_there\n", ("line 1", "ModuleNotFoundError")),
        ("c = get_config()\nc.CourseDirectory.db_url = 'nosuchbase://x'\n", ("the gradebook cannot be used", "db_url")),
    ],
    ids=["syntax", "import", "database"],
)
def test_a_mistake_in_the_courses_configuration_is_told_with_its_line(
    graded_dir: Path, run: Run, text: str, words: tuple[str, ...]
) -> None:
    (graded_dir / "nbgrader_config.py").write_text(text, encoding="utf-8")
    refused(run("report", "--course", graded_dir), "nbgrader_config.py", *words)


def test_a_list_of_students_that_cannot_be_read_is_not_passed_over(graded_dir: Path, run: Run) -> None:
    (graded_dir / "students.json").write_text("{", encoding="utf-8")
    refused(run("export", "--course", graded_dir), "students.json")


def test_ctrl_c_ends_without_a_traceback_and_with_the_code_of_shells(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autograder.authoring import sync

    def stopped(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sync, "sync", stopped)
    result = run("sync")
    assert result.exit_code == 130
    assert "run the same command again" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_mistake_of_our_own_keeps_its_traceback(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from autograder.authoring import sync

    def wrong(*arguments: object, **options: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "template.html")

    monkeypatch.setattr(sync, "sync", wrong)
    assert isinstance(run("sync").exception, FileNotFoundError)


# ------------------------------------------------------------------------------------------------------ what goes well


def test_commands_work_from_anywhere_inside_the_project_and_the_course(
    project: Path, graded_dir: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(graded_dir, project / "course")
    monkeypatch.chdir(project / "chapters" / CHAPTER)
    assert run("report").exit_code == 0
    assert (project / "course" / "report.html").is_file()
    # A course outside the project is found from inside it.
    monkeypatch.chdir(graded_dir / "release" / CHAPTER)
    assert run("report").exit_code == 0
    assert (graded_dir / "report.html").is_file()


def test_paths_that_are_typed_are_those_of_the_current_folder(
    project: Path, graded_dir: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(graded_dir.parent)
    assert run("report", "--course", "course", "--output", "new/page.html").exit_code == 0
    assert run("export", "--course", "course", "--to", "new").exit_code == 0
    assert {path.name for path in (graded_dir.parent / "new").iterdir()} == {"page.html", "grades.csv"}


def test_reading_commands_leave_the_gradebook_as_it_is(graded_dir: Path, run: Run) -> None:
    gradebook = graded_dir / "gradebook.db"
    before = gradebook.read_bytes()
    for words in (["report"], ["export"], ["doctor"]):
        run(*words, "--course", graded_dir)
    assert gradebook.read_bytes() == before


def test_report_names_the_files_to_open(graded_dir: Path, run: Run) -> None:
    page = graded_dir / "feedback" / "ada" / CHAPTER / f"{CHAPTER}.html"
    page.parent.mkdir(parents=True)
    page.write_text("<!doctype html>", encoding="utf-8")
    result = run("report", "04", "--course", graded_dir)
    assert str(graded_dir / "report.html") in result.stdout
    assert str(page) in result.stdout


@pytest.mark.parametrize(
    "words", [["report"], ["export"], ["export", "--format", "canvas"], ["doctor"]], ids=lambda w: " ".join(w)
)
def test_json_is_all_that_is_on_standard_output(graded_dir: Path, run: Run, words: list[str]) -> None:
    result = run(*words, "--json", "--course", graded_dir)
    assert result.exit_code == 0
    assert json.loads(result.stdout)
    assert result.stderr == ""


def test_an_error_is_json_too_where_json_was_asked_for(tmp_path: Path, run: Run) -> None:
    result = run("report", "--json", "--course", tmp_path)
    assert result.exit_code == 2
    error = json.loads(result.stdout)["error"]
    assert error["where"] == str(tmp_path)
    assert "tfcourse assign" in error["do"]
    assert result.stderr.startswith("tfcourse: ")


def test_sync_check_ends_with_1_where_something_has_drifted_and_writes_nothing(
    project: Path, run: Run, snapshot: Snapshot
) -> None:
    before = snapshot(project)
    result = run("sync", "--check", "--json")
    assert result.exit_code == 1
    assert any("solution notebook is missing" in drift["what"] for drift in json.loads(result.stdout))
    assert snapshot(project) == before


@pytest.mark.parametrize(("solved", "code"), [(True, 0), (False, 1)])
def test_validate_ends_with_0_for_full_marks_and_with_1_for_less(
    tmp_path: Path, notebook: Text, run: Run, solved: bool, code: int
) -> None:
    path = tmp_path / f"{OTHER}.ipynb"
    path.write_text(notebook(OTHER, solved=solved), encoding="utf-8")
    result = run("validate", path, "--json")
    assert result.exit_code == code
    assert json.loads(result.stdout)["passed"] is solved


def test_a_class_is_graded_reported_and_exported(course_dir: Path, tmp_path: Path, notebook: Text, run: Run) -> None:
    handed_in = tmp_path / "handed_in"
    handed_in.mkdir()
    (handed_in / "lovelaceada_901_55001_work.ipynb").write_text(notebook(CHAPTER), encoding="utf-8")
    (handed_in / "bose_902_55002_work.ipynb").write_text(notebook(CHAPTER, solved=False), encoding="utf-8")
    (handed_in / "curie_903_55003_work.ipynb").write_text(notebook(OTHER), encoding="utf-8")
    words = ["--course", course_dir, "--jobs", 1, "--device", "cpu", "--allow-weaker-isolation"]
    first = run("autograde", "04", "--submissions", handed_in, "--json", *words)
    assert first.exit_code == 0, first.stderr
    (chapter,) = json.loads(first.stdout)
    scores = {result["student"].partition("-")[0]: result["score"] for result in chapter["results"]}
    assert scores == {"lovelaceada": 3.0, "bose": 0.0, "curie": 0.0}
    assert len(chapter["feedback"]) == 3
    assert "3/3" in first.stderr
    assert "Traceback" not in first.stderr
    assert {result["provenance"]["isolation"] for result in chapter["results"] if result["status"] == "graded"} != {""}
    secret = (course_dir / "secret_seed").read_text().strip()
    assert {str(result["seed"]) for result in chapter["results"]} == {secret}
    assert not [page for page in course_dir.rglob("*.html") if secret in page.read_text(encoding="utf-8")]

    class_list = tmp_path / "class.csv"
    class_list.write_text('Student,ID\n"Lovelace, Ada",901\n"Noether, Emmy",909\n', encoding="utf-8")
    assert run("students", class_list, "--course", course_dir).exit_code == 0
    again = run("autograde", "04", *words)
    assert again.exit_code == 1, "two submissions are of students who are not on the class list"
    assert "  1 on the class list handed in nothing: tfcourse students --course" in again.stdout
    assert f"{CHAPTER}: 2 of 3 submissions graded, 2 of them earlier and unchanged" in again.stdout
    assert f"This is the notebook of chapter {OTHER}" in again.stdout
    assert "isolation:" not in again.stdout
    for stranger in ("bose", "curie"):
        assert run("students", "--add", stranger, "--course", course_dir).exit_code == 0

    ada = next(result["student"] for result in chapter["results"] if result["student"].startswith("lovelaceada"))
    same = run("replay", ada, "04", "--course", course_dir)
    assert (same.exit_code, same.stdout) == (
        0,
        f"{ada}, {CHAPTER}: the same grade, 3 of the 3 points that the checks give\n",
    )
    path = course_dir / "results" / CHAPTER / f"{ada}.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"score": 3.0, "max_score"', '"score": 2.0, "max_score"'))
    other = run("replay", ada, "04", "--course", course_dir)
    assert other.exit_code == 1
    assert "split_heads: 2 points, now 3." in other.stdout
    left = run("regrade", "04", *words)
    assert left.stdout == f"{CHAPTER}: 0 moved, 0 stayed\n  3 had been graded in just this way\n"
    moved = run("regrade", "04", "--student", ada, *words)
    assert moved.exit_code == 0
    assert moved.stdout == f"{CHAPTER}: 1 moved, 0 stayed\n  {ada}       2 → 3       split_heads 2 → 3\n"

    assert run("report", "04", "--course", course_dir).exit_code == 0
    told = run("export", "04", "--format", "canvas", "--course", course_dir).stdout
    assert f"1 submission could not be graded and stands at 0: curie ({CHAPTER}). Not in the file" in told
    exported = run("export", "04", "--format", "canvas", "--course", course_dir, "--json")
    table = Path(json.loads(exported.stdout)["files"][0]["path"]).read_text(encoding="utf-8")
    assert '"901","","","","3.00"' in table
    assert '"903"' not in table
    assert [refused["chapter"] for refused in json.loads(exported.stdout)["not_gradable"]] == [CHAPTER]


def test_a_class_list_tells_who_handed_in_nothing(graded_dir: Path, tmp_path: Path, run: Run) -> None:
    (graded_dir / "submitted" / "ada" / CHAPTER).mkdir(parents=True)
    path = tmp_path / "class.csv"
    path.write_text("id;name\nada;Ada Lovelace\nbo;=cmd()\n../eve;Eve\n", encoding="utf-8")
    listed = run("students", "--course", graded_dir)
    assert listed.stdout.startswith("no class list yet: tfcourse students FILE\n1 not on the class list\n  ada ")
    first = run("students", path, "--course", graded_dir)
    assert (first.exit_code, first.stdout.splitlines()[0]) == (1, "2 on this list: 1 new, 1 updated, 0 unchanged")
    assert "class.csv, line 4: No folder can be named '../eve'" in first.stdout
    path.write_text("id;name\nada;Ada Lovelace\nbo;=cmd()\n", encoding="utf-8")
    assert json.loads(run("students", path, "--course", graded_dir, "--json").stdout)["unchanged"] == ["ada", "bo"]

    assert run("students", "--course", graded_dir).stdout.splitlines() == [
        "2 on the class list, 1 of them handed in something",
        f"  ada  Ada Lovelace  {CHAPTER}",
        "  bo   =cmd()        nothing",
    ]
    everyone = json.loads(run("students", "--course", graded_dir, "--json").stdout)
    assert [(student["id"], student["handed_in"]) for student in everyone] == [("ada", [CHAPTER]), ("bo", [])]
    report = json.loads(run("report", "04", "--course", graded_dir, "--json").stdout)
    assert report["chapters"][0]["absent"] == ["bo"]
    assert "1 handed in nothing, 0 points in the file: =cmd()" in run("export", "--course", graded_dir).stdout
    exported = json.loads(run("export", "--course", graded_dir, "--json").stdout)
    assert exported["nothing_handed_in"] == [{"student": "bo", "chapter": CHAPTER}]


def test_a_class_list_waits_for_the_course(course_dir: Path, tmp_path: Path, run: Run) -> None:
    path = tmp_path / "class.csv"
    path.write_text("id\nada\n", encoding="utf-8")
    with course_lock(Course.open(course_dir)):
        refused(run("students", path, "--course", course_dir), "another tfcourse is at work")
    refused(run("students", tmp_path, "--course", course_dir), "is a directory")
    refused(
        run("students", tmp_path / "none.csv", "--course", course_dir), "none.csv", "No such file", "Check the path"
    )
    assert not (course_dir / "students.json").exists()


def test_who_found_no_room_on_the_disk_is_named_by_every_command_until_the_work_is_there(
    course_dir: Path, tmp_path: Path, notebook: Text, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_in = tmp_path / "handed in"
    handed_in.mkdir()
    for student in ("ada", "bo"):
        (handed_in / f"{student}.ipynb").write_text(notebook(CHAPTER), encoding="utf-8")
    words = ["--course", course_dir, "--jobs", 1, "--device", "cpu", "--allow-weaker-isolation"]

    with monkeypatch.context() as full:
        full_for(full, "bo")
        first = run("autograde", "04", "--submissions", handed_in, *words)
    again = f"--submissions {shlex.quote(str(handed_in))}"
    assert first.exit_code == 1
    assert f"{CHAPTER}: 1 of 2 submissions graded" in first.stdout
    assert "bo.ipynb: bo: it could not be brought in (No space left on device)" in first.stdout
    for command in (
        ["autograde", "04", *words],
        ["report", "--course", course_dir],
        ["export", "--course", course_dir],
    ):
        told = run(*command)
        assert told.exit_code == 1
        assert f"1 submission of {CHAPTER} is in this download and not in the course folder: bo." in told.stdout
        assert again in told.stdout
        data = json.loads(run(*command, "--json").stdout)
        missing = data[0]["missing"] if isinstance(data, list) else data["not_brought_in"]
        assert [item["student"] for item in missing] == ["bo"]
    page = (course_dir / "report.html").read_text(encoding="utf-8")
    assert "not brought into the course folder: bo." in page

    assert run("autograde", "04", "--submissions", handed_in, *words).exit_code == 0
    for command in (
        ["autograde", "04", *words],
        ["report", "--course", course_dir],
        ["export", "--course", course_dir],
    ):
        told = run(*command)
        assert (told.exit_code, "not in the course folder" in told.stdout) == (0, False)


def full_for(patch: pytest.MonkeyPatch, student: str) -> None:
    """Have no room on the disk for one student's submission."""
    from autograder.collecting import store

    put = store.put

    def put_or_not(course: Course, chapter: str, who: str, *more: object) -> str:
        if who == student:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return put(course, chapter, who, *more)  # type: ignore[arg-type]

    patch.setattr(store, "put", put_or_not)


def test_a_disk_that_is_full_for_grading_too_does_not_hide_who_was_not_brought_in(
    course_dir: Path, tmp_path: Path, notebook: Text, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_in = tmp_path / "handed_in"
    handed_in.mkdir()
    for student in ("ada", "bo"):
        (handed_in / f"{student}.ipynb").write_text(notebook(CHAPTER), encoding="utf-8")
    full_for(monkeypatch, "bo")

    def full(*words: object, **more: object) -> None:
        raise CourseError("no space left on device", where=course_dir, do="Free some space.")

    monkeypatch.setattr("autograder.grading.autograde.autograde", full)
    result = run("autograde", "04", "--submissions", handed_in, "--course", course_dir, "--allow-weaker-isolation")
    refused(result, "no space left on device", f"not brought in, 1 of {CHAPTER}: bo", "Free some space.")


# ---------------------------------------------------------------------------------------------------- the entry point


def test_the_entry_point_prints_pure_json_whatever_a_notebook_and_its_children_print(tmp_path: Path) -> None:
    source = "import os\nprint('noise')\nos.system('echo noise')\nfrom tfcourse import check"
    stub = "def causal_mask(T, device=None):\n    raise NotImplementedError"
    cells = [{"cell_type": "code", "source": text, "metadata": {}} for text in (source, stub, "check(causal_mask)")]
    path = tmp_path / "noisy.ipynb"
    path.write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    done = subprocess.run([ENTRY_POINT, "validate", path, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["score"] == 0
    assert "noise" not in done.stdout


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
    ids=lambda value: str(value),
)
def test_the_entry_point_is_stopped_by_ctrl_c_and_its_like_without_a_traceback(
    project: Path, number: signal.Signals, code: int
) -> None:
    program = (
        "import signal, sys, time\nimport autograder.authoring.sync as library\nfrom autograder.commands.main import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have it ignored\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
        "def wait(*a, **k):\n    print('ready', file=sys.stderr, flush=True)\n    time.sleep(60)\n"
        "library.sync = wait\nmain(['sync'])"
    )
    process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True, cwd=project)
    assert process.stderr is not None
    assert process.stderr.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(number)
    said = process.stderr.read()
    assert process.wait(30) == code
    assert said.startswith("tfcourse: stopped.")
    assert "Traceback" not in said


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_an_object_is_freed_stops_a_command(project: Path, number: str, code: int) -> None:
    program = (
        "import signal, time\nimport autograder.authoring.sync as library\nfrom autograder.commands.main import main\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"class Object:\n    def __del__(self):\n        signal.raise_signal(signal.{number})\n        time.sleep(0)\n"
        "def work(*a, **k):\n    Object()\n    time.sleep(60)\nlibrary.sync = work\nmain(['sync'])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=project, check=False)
    assert done.returncode == code
    assert done.stderr.startswith("tfcourse: stopped.")
    assert "Traceback" not in done.stderr


def test_a_signal_that_is_to_be_ignored_stays_so(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(
        "autograder.authoring.sync.sync", lambda *a, **k: seen.append(signal.getsignal(signal.SIGHUP)) or []
    )
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run("sync").exit_code == 0
    finally:
        signal.signal(signal.SIGHUP, before)
    assert seen == [signal.SIG_IGN], "nohup is obeyed"


def test_without_the_packages_of_the_commands_the_entry_point_says_what_to_install() -> None:
    code = "import sys\nsys.modules['click'] = None\nimport autograder.commands.main"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("tfcourse: ")
    assert "tfcourse[grading,book]" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_waits_for_neither_torch_nor_nbgrader() -> None:
    code = (
        "import sys\nfrom autograder.commands.main import main\ntry:\n    main(['assign', '--help'])\nexcept SystemExit:\n"
        "    print(sorted({'torch', 'nbgrader', 'sphinx'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_what_holds_the_gradebook_imports_no_torch() -> None:
    """It costs a second and a half of every command; workers have it, in processes of their own."""
    program = (
        "import importlib, pkgutil, sys, autograder\n"
        "for package in ('gradebook', 'collecting', 'record', 'feedback', 'grading', 'reports'):\n"
        "    package = importlib.import_module(f'autograder.{package}')\n"
        "    for info in pkgutil.iter_modules(package.__path__, f'{package.__name__}.'):\n"
        "        importlib.import_module(info.name)\n"
        "        assert 'torch' not in sys.modules, info.name\n"
        "print('nbgrader' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("True", "")


def test_what_starts_with_every_command_makes_no_grammars() -> None:
    """What nbformat imports would, for addresses that no notebook has: a second of every command and of every worker."""
    program = (
        "import sys, autograder.gradebook.reader, nbformat; print('jsonschema' in sys.modules, 'lark' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
