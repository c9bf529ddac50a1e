"""Every command says what is wrong and what to do, ends with exit code 2, and changes nothing."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
import stat
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import Result

from autograder.course.folder import Course
from autograder.course.lock import course_lock
from autograder.course.release import assign
from autograder.errors import CourseError
from tests.autograder.conftest import refused

CHAPTER, OTHER = "04_multi_head", "03_scaled_dot_product"
Bound = Callable[[], AbstractContextManager[None]]
Run = Callable[..., Result]
Snapshot = Callable[[Path], dict[str, str]]
Text = Callable[..., str]


class Refusal(NamedTuple):
    """A command, what must stand in its message, and the state of the folders that it meets.

    ``@course``, ``@graded`` (the same with a student in the gradebook), ``@project`` and ``@box`` are folders. ``files`` are written first:
    a text, or a chapter whose solved notebook it is to be; with None, what is there is removed. ``at`` is the current folder.
    """

    command: str
    says: tuple[str, ...]
    files: Mapping[str, str | None] = {}
    at: str = "@project"


IN_COURSE = "@course/submitted/ada/04_multi_head/04_multi_head.ipynb"
GARBAGE = "this was a gradebook once" * 100
EMPTY = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
# What whoever takes the course's lock, or asks for its seed, makes; it changes nothing.
MADE = {"mine/course/journal", "mine/course/secret_seed"}
GRADEBOOK = "@graded/gradebook.db"
REFUSALS = [
    Refusal("report --colour", ("No such option",)),
    # A chapter that project or course lacks.
    *(Refusal(f"{name} 77", ("'77'", CHAPTER)) for name in ("assign", "solve")),
    *(Refusal(f"assign {name}", (name, CHAPTER)) for name in ("''", "04_multi_heads", "../04_multi_head")),
    *(
        Refusal(f"{name} 77 --course @course", ("'77'", CHAPTER, OTHER))
        for name in ("autograde", "regrade", "report", "export", "sample-class")
    ),
    *(Refusal(f"report {name} --course @course", (name, CHAPTER, OTHER)) for name in ("''", "0")),
    # No project, no course.
    *(
        Refusal(words, ("@box/empty", "clone"), at="@box/empty")
        for words in ("build", "assign 04", "solve", "sync", "sample-class")
    ),
    *(
        refusal
        for words in ("autograde 04", "regrade 04", "replay ada 04", "report", "export")
        for refusal in (
            Refusal(f"{words} --course @box/empty", ("@box/empty", "tfcourse assign")),
            Refusal(words, ("@project/course", "tfcourse assign")),
            Refusal(words, ("--course",), at="@box/empty"),
        )
    ),
    *(
        Refusal(f"viva 03 --course @box/{folder}", (f"@box/{folder}", says))
        for folder, says in (("empty", "no course"), ("missing", "no course"), ("garbage.ipynb", "file"))
    ),
    Refusal("exam 03 --name ../x --course @box/empty", ("--name", "../x")),
    Refusal("exam 03 --versions 5 --course @box/empty", ("--versions",)),
    # Submissions that are none, or of another chapter, or in the wrong place.
    *(
        Refusal(f"autograde 04 --course @course --submissions @box/{thing}", (f"@box/{thing}",))
        for thing in ("empty", "texts", "texts/ada.txt", "garbage.ipynb", "nowhere")
    ),
    Refusal(
        "autograde 04 --course @course --submissions @box/other",
        (OTHER, f"tfcourse autograde {OTHER}"),
        {IN_COURSE: CHAPTER, "@box/other/ada.ipynb": OTHER, "@box/other/bo.ipynb": OTHER},
    ),
    Refusal("autograde 04 --course @course --device cpu", ("no submission", "--submissions")),
    Refusal(
        "autograde 04 --course @course",
        ("ada.ipynb", "submitted/STUDENT/"),
        {"@course/submitted/ada.ipynb": CHAPTER},
    ),
    # Nothing graded yet, nobody in the gradebook.
    *(Refusal(f"{words} --course @course", ("autograde",)) for words in ("regrade 04", "replay ada 04", "viva 03")),
    *(Refusal(f"{words} --course @course", ("no student", "autograde")) for words in ("report", "export")),
    # What is no chapter's notebook, and solutions that are missing or damaged.
    *(
        Refusal(f"validate @box/{thing}", (f"@box/{thing}",))
        for thing in ("empty", "texts/ada.txt", "garbage.ipynb", "no_exercise.ipynb", "nowhere.ipynb")
    ),
    Refusal("solve 04 --device cpu", ("tfcourse sync",)),
    Refusal(
        "solve 04 --device cpu",
        (f"@project/solutions/{CHAPTER}/exercises.ipynb", "tfcourse sync"),
        {f"@project/solutions/{CHAPTER}/exercises.ipynb": "{}"},
    ),
    Refusal("solve", ("exercises",), {"@project/chapters": None, "@project/chapters/01_a/lesson.md": ""}),
    # A file in the place of a folder.
    *(
        Refusal(words, ("@box/garbage.ipynb",))
        for words in (
            "assign 04 --course @box/garbage.ipynb/course",
            "build --output @box/garbage.ipynb/site",
            "report --course @graded --output @box/garbage.ipynb/report.html",
            "export --course @graded --to @box/garbage.ipynb/export",
        )
    ),
    # Damaged files of the course.
    *(
        refusal
        for words in ("autograde 04", "report", "export", "sample-class")
        for refusal in (
            Refusal(f"{words} --course @graded", (GRADEBOOK, "damaged"), {GRADEBOOK: GARBAGE}),
            Refusal(f"{words} --course @graded", (GRADEBOOK, "tfcourse assign"), {GRADEBOOK: None}),
        )
    ),
    *(
        Refusal(f"{words} --course @graded", ("nbgrader_config.py", *says), {"@graded/nbgrader_config.py": text})
        for words, text, says in (
            ("report", "c = get_config(\n", ("line 1",)),
            ("report", "import not_there\n", ("line 1", "ModuleNotFoundError")),
            ("report", "c = get_config()\nc.CourseDirectory.db_url = 'nosuchbase://x'\n", ("db_url",)),
            ("autograde 04", "c = get_config()\nc.GradingLimits.memory = 1\n", ("memory_mb",)),
        )
    ),
    Refusal("export --course @graded", ("students.json",), {"@graded/students.json": "{"}),
    Refusal("students @box/texts --course @course", ("@box/texts", "directory")),
    Refusal("students @box/none.csv --course @course", ("@box/none.csv",)),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.command)
def test_a_command_is_refused_with_what_to_do_and_changes_nothing(
    request: pytest.FixtureRequest,
    project: Path,
    tmp_path: Path,
    run: Run,
    notebook: Text,
    snapshot: Snapshot,
    monkeypatch: pytest.MonkeyPatch,
    refusal: Refusal,
) -> None:
    folders = {"@project": project, "@box": tmp_path / "box"}
    for name, fixture in (("@course", "course_dir"), ("@graded", "graded_dir")):
        if name in f"{refusal}":
            folders[name] = request.getfixturevalue(fixture)

    def filled(text: str) -> str:
        for name, folder in folders.items():
            text = text.replace(name, str(folder))
        return text

    for name in ("empty", "texts"):
        (folders["@box"] / name).mkdir(parents=True)
    plain = {"@box/texts/ada.txt": "no notebook", "@box/garbage.ipynb": "no notebook", "@box/no_exercise.ipynb": EMPTY}
    for name, text in {**plain, **refusal.files}.items():
        path = Path(filled(name))
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            path.write_text(notebook(text) if text in (CHAPTER, OTHER) else text, encoding="utf-8")
        else:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    monkeypatch.chdir(filled(refusal.at))
    before = snapshot(tmp_path)
    refused(run(*shlex.split(filled(refusal.command))), *map(filled, refusal.says))
    assert {name: value for name, value in snapshot(tmp_path).items() if name in before or name not in MADE} == before


def test_a_download_of_which_nothing_could_be_brought_in_says_why(
    course_dir: Path, notebook: Text, run: Run, tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("ada.ipynb", notebook(CHAPTER))
    # Another text than its checksum is of.
    (tmp_path / "all.zip").write_bytes((tmp_path / "all.zip").read_bytes().replace(b'"nbformat"', b'"nbFORMAT"', 1))
    result = run("autograde", "04", "--course", course_dir, "--submissions", tmp_path / "all.zip")
    refused(result, "no submission", "ada.ipynb", "again")


@pytest.mark.parametrize("words", ["assign 04", "autograde 04", "regrade 04", "students {list}"])
def test_a_course_in_which_somebody_is_grading_is_left_alone(
    course_dir: Path, tmp_path: Path, notebook: Text, run: Run, snapshot: Snapshot, words: str
) -> None:
    mine = course_dir / "submitted" / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
    mine.parent.mkdir(parents=True)
    mine.write_text(notebook(CHAPTER), encoding="utf-8")
    (tmp_path / "class.csv").write_text("id\nada\n", encoding="utf-8")
    with course_lock(Course(course_dir)):
        before = snapshot(course_dir)
        result = run(*words.format(list=tmp_path / "class.csv").split(), "--course", course_dir)
        refused(result, str(course_dir), "another tfcourse")
        assert snapshot(course_dir) == before


def test_a_gradebook_that_is_in_use_says_so(graded_dir: Path, run: Run) -> None:
    holder = sqlite3.connect(graded_dir / "gradebook.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        refused(run("report", "--course", graded_dir), str(graded_dir / "gradebook.db"), "in use")
    finally:
        holder.close()


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
        "assign 04 --course {course}",
        "assign 04 --course {new}",
        "autograde 04 --device cpu --submissions {submissions} --course {course}",
        "regrade 04 --device cpu --course {course}",
        "regrade 04 --dry-run --device cpu --course {course}",
        "report --course {course}",
        "export --course {course}",
        "sample-class --students 2 --course {course}",
        "sync",
        "build --output {new}",
    ],
)
def test_a_folder_that_may_not_be_written_is_named_and_nothing_changes(
    read_only: dict[str, Path],
    notebook: Text,
    run: Run,
    snapshot: Snapshot,
    bound_by_permissions: Bound,
    words: str,
) -> None:
    box = read_only["course"].parent
    before = snapshot(box)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "ada.ipynb").write_text(notebook(CHAPTER), encoding="utf-8")
        Path(folder).chmod(0o755)
        filled = words.format(new=box / "new", submissions=folder, course=read_only["course"]).split()
        with bound_by_permissions():
            result = run(*filled)
    refused(result, CHAPTER if "--dry-run" in words else str(box))
    assert snapshot(box) == before


def test_a_folder_that_was_there_is_never_unmade(
    project: Path, run: Run, monkeypatch: pytest.MonkeyPatch, snapshot: Snapshot
) -> None:
    def half(root: Path, course: Course, names: list[str], progress: object) -> None:
        (course.root / "release").mkdir()
        raise CourseError("the second chapter has drifted")

    monkeypatch.setattr(assign, "assign", half)
    (project / "course").mkdir()
    (project / "course" / "gradebook.db").write_bytes(b"mine")
    refused(run("assign", "04"), "drifted")
    assert set(snapshot(project / "course")) == {"gradebook.db", "journal", "nbgrader_config.py", "release"}
    assert (project / "course" / "gradebook.db").read_bytes() == b"mine"
