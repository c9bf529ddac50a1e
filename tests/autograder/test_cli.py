"""The command line says what is wrong and what to do, ends with its exit code, and changes nothing that it should not."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from autograder.commands.main import main
from autograder.course.folder import Course
from tests.autograder.grading.scripted import Scripted, without_workers

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
    first, second = re.findall(r"^    (tfcourse .*)$", CliRunner().invoke(main, ["--help"]).output, re.MULTILINE)
    for example in (first, second):
        _, command, *words = shlex.split(example)
        named(command).make_context(command, words)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_help_lists_every_command_with_its_whole_first_sentence(width: int) -> None:
    listed = CliRunner().invoke(main, ["--help"], terminal_width=width).output.partition("For lecturers")[2]
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


def test_a_mistake_of_our_own_keeps_its_traceback(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from autograder.course.authoring import sync

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
    assert any("missing" in drift["what"] for drift in json.loads(result.stdout))
    assert snapshot(project) == before


def test_a_class_is_graded_reported_and_exported(course_dir: Path, tmp_path: Path, notebook: Text, run: Run) -> None:
    handed_in = tmp_path / "handed_in"
    handed_in.mkdir()
    (handed_in / "lovelaceada_901_55001_work.ipynb").write_text(notebook(CHAPTER), encoding="utf-8")
    (handed_in / "bose_902_55002_work.ipynb").write_text(notebook(CHAPTER, solved=False), encoding="utf-8")
    (handed_in / "curie_903_55003_work.ipynb").write_text(notebook(OTHER), encoding="utf-8")
    words = ["--course", course_dir, "--jobs", 1, "--device", "cpu", "--allow-weaker-isolation"]
    first = run("autograde", "04", "--submissions", handed_in, "--json", *words)
    assert first.exit_code == 1, "nobody has decided about the notebook of another chapter"
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
    assert f"chapter {OTHER}" in again.stdout
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
    assert moved.stdout == f"{CHAPTER}: 1 moved, 0 stayed\n  {ada}       3 → 3       split_heads 2 → 3\n"

    assert run("report", "04", "--course", course_dir).exit_code == 1
    told = run("export", "04", "--format", "canvas", "--course", course_dir).stdout
    assert f"1 submission could not be graded and has no points: curie ({CHAPTER})" in told
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


def test_who_found_no_room_on_the_disk_is_named_by_every_command_until_the_work_is_there(
    course_dir: Path, tmp_path: Path, notebook: Text, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed_in = tmp_path / "handed in"
    handed_in.mkdir()
    for student in ("ada", "bo"):
        (handed_in / f"{student}.ipynb").write_text(notebook(CHAPTER), encoding="utf-8")
    words = ["--course", course_dir, "--jobs", 1, "--device", "cpu"]
    without_workers(monkeypatch, Scripted())

    with monkeypatch.context() as full:
        full_for(full, "bo")
        first = run("autograde", "04", "--submissions", handed_in, *words)
    assert first.exit_code == 1
    assert f"{CHAPTER}: 1 of 2 submissions graded" in first.stdout
    assert "bo.ipynb: bo: it could not be brought in (No space left on device)" in first.stdout
    for command in (["report", "--course", course_dir], ["export", "--course", course_dir]):
        told = run(*command)
        assert told.exit_code == 1
        assert f"submissions of {CHAPTER} are not in the course folder: bo." in told.stdout
        assert f"--submissions {shlex.quote(str(handed_in))}" in told.stdout
        data = json.loads(run(*command, "--json").stdout)
        assert [item["student"] for item in data["not_brought_in"]] == ["bo"]
    graded = run("autograde", "04", *words, "--json")
    assert (graded.exit_code, [item["student"] for item in json.loads(graded.stdout)[0]["missing"]]) == (1, ["bo"])
    assert "not brought into the course folder: bo." in (course_dir / "report.html").read_text(encoding="utf-8")

    assert run("autograde", "04", "--submissions", handed_in, *words).exit_code == 0
    for command in (["report", "--course", course_dir], ["export", "--course", course_dir]):
        told = run(*command)
        assert (told.exit_code, "course folder: bo" in told.stdout) == (0, False)


def full_for(patch: pytest.MonkeyPatch, student: str) -> None:
    """Have no room on the disk for one student's submission."""
    from autograder.intake.downloads import store

    put = store.write_submission

    def put_or_not(course: Course, chapter: str, who: str, *more: object) -> str:
        if who == student:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return put(course, chapter, who, *more)  # type: ignore[arg-type]

    patch.setattr(store, "write_submission", put_or_not)
