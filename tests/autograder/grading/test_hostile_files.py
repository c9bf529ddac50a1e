"""What a student hands in beside a notebook, or a gradebook that is damaged, stops nobody else's grade and is told by its name."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.commands.grade_chapter import update_pages
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.grading import run as module
from autograder.grading.autograde import autograde
from autograder.grading.feedback import page_html
from autograder.grading.feedback.pages import PLAIN, write_feedback
from autograder.grading.plugin import autograder_config
from autograder.grading.record.results import read_results
from autograder.intake.downloads import choices
from autograder.intake.downloads.collect import collect
from autograder.intake.notebook import attached_files
from autograder.intake.notebook.attached_files import read_companion_files
from autograder.intake.notebook.problem import LONGEST, MOST

from .conftest import CHAPTER, Fill, HandIn
from .scripted import Scripted


@pytest.fixture(autouse=True)
def _cleared(tmp_path: Path) -> Iterator[None]:
    """Take folders within each other away, on which pytest's own cleaning would end in a RecursionError."""
    yield
    for folder in tmp_path.rglob("d/d"):
        subprocess.run(["rm", "-rf", folder.parent], check=True)
        break


def nest(folder: Path, depth: int) -> None:
    """Make folders within each other; a path of such a length cannot be named at once."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(os.open("deep.txt", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def not_utf8(folder: Path) -> None:
    """Make a file whose name is not UTF-8."""
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.txt")).write_text("x")


def many(folder: Path) -> None:
    """Make more files than a notebook finds."""
    for number in range(attached_files.MAX_FILES + 1):
        (folder / f"{number}.txt").touch()


ODD = {"not UTF-8": not_utf8, "deep": lambda folder: nest(folder, 1_500), "many": many}


@pytest.mark.parametrize("odd", ODD)
def test_odd_files_are_named_and_stop_nobody(
    course: Course,
    tmp_path: Path,
    hand_in: HandIn,
    filled: Fill,
    right: dict[str, str],
    odd: str,
) -> None:
    for student in ("ada", "eve", "zoe"):
        notebook = hand_in(student, filled(**right))
        (tmp_path / "download" / student).mkdir(parents=True)
        (tmp_path / "download" / student / "a.ipynb").write_bytes(notebook.read_bytes())
    eve = notebook.parents[2] / "eve" / CHAPTER
    ODD[odd](eve)
    ODD[odd](tmp_path / "download" / "eve")
    results = autograde(course, CHAPTER, make_executor=Scripted())
    assert [result.status for result in results] == ["graded"] * 3
    told = {result.student: [problem.kind for problem in result.problems] for result in results}
    assert told == {"ada": [], "eve": [attached_files.KIND], "zoe": []}
    assert collect(course, CHAPTER, tmp_path / "download").students == ["ada", "eve", "zoe"]


def test_who_cannot_be_read_stops_nobody(
    course: Course, hand_in: HandIn, filled: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    for student in ("ada", "eve", "zoe"):
        hand_in(student, filled())
    really = module.submission_hash

    def fails(notebook: Path, files: Any) -> str:
        if "eve" in notebook.parts:
            raise RecursionError("maximum recursion depth exceeded")
        return really(notebook, files)

    monkeypatch.setattr(module, "submission_hash", fails)
    results = autograde(course, CHAPTER, make_executor=Scripted())
    assert [result.status for result in results] == ["graded", "not recorded", "graded"]


def test_names_are_looked_at_once_and_so_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attached_files, "MAX_SEEN", 50)
    for number in range(50):
        (tmp_path / f"{number}.txt").touch()
    assert len(read_companion_files([tmp_path]).files) == 50
    (tmp_path / "one more").touch()
    found = read_companion_files([tmp_path])
    assert found.files == {}
    assert "more than 50" in found.problems[0].what.lower()


def test_several_notebooks_share_one_allowance(course: Course, hand_in: HandIn, filled: Fill) -> None:
    folder = hand_in("ada", filled()).parent
    (folder / f"{CHAPTER}.ipynb").rename(folder / "0.ipynb")
    for number in range(1, 10):
        (folder / f"{number}.ipynb").write_bytes((folder / "0.ipynb").read_bytes() + b" " * number)
    hand_in("zoe", filled())
    executor = Scripted()
    results = autograde(course, CHAPTER, make_executor=executor)
    assert [result.status for result in results] == ["to decide", "graded"]
    assert len(results[0].notebooks) == 10
    seconds = {limits.submission_seconds for limits in executor.seen}
    assert seconds == {900, 90}
    assert {limits.submission_cpu_seconds for limits in executor.seen} == {900, 90}


def test_only_so_many_notebooks_are_looked_at(course: Course, tmp_path: Path, hand_in: HandIn, filled: Fill) -> None:
    data = hand_in("x", filled()).read_bytes()
    names = ["ada/a", *(f"eve/n{number:02}" for number in range(choices.MAX_NOTEBOOKS + 5))]
    for name in names:
        (tmp_path / "d" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "d" / f"{name}.ipynb").write_bytes(data)
    found = collect(course, CHAPTER, tmp_path / "d")
    assert "eve/n00.ipynb" in [problem.where for problem in found.problems]


# ---------------------------------------------------------------------------------------------------- a damaged gradebook


def burnt(path: Path) -> None:
    """Write over the pages in the middle of a file, behind the description of its tables."""
    data = path.read_bytes()
    begin, end = int(0.3 * len(data)), int(0.35 * len(data))
    path.write_bytes(data[:begin] + b"\xa5" * (end - begin) + data[end:])


def folder_there(path: Path) -> None:
    """Put a folder in the place of a file."""
    path.unlink()
    path.mkdir()


def older(path: Path) -> None:
    """Take a column away that nbgrader writes."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE grade RENAME COLUMN auto_score TO auto")


DAMAGE = {
    "burnt": (burnt, "damaged"),
    "folder": (folder_there, "folder"),
    "another version's": (older, "version"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_gradebook_is_one_clear_error(
    course: Course, hand_in: HandIn, filled: Fill, right: dict[str, str], kind: str
) -> None:
    for student in ("ada", "zoe"):
        hand_in(student, filled(**right))
    autograde(course, CHAPTER, make_executor=Scripted())
    before = read_results(course, CHAPTER)
    damage, words = DAMAGE[kind]
    damage(course.root / "gradebook.db")
    (course.root / "students.json").write_text('{"ada": {"name": "Ada Lovelace"}}')
    with pytest.raises(CourseError, match=words):
        autograde(course, CHAPTER, make_executor=Scripted(), force=True)
    assert read_results(course, CHAPTER) == before


BODY = "\n".join(f"    y{i} = {i}" for i in range(10))
BOMB = " ".join([r"$\begin{matrix}" + "&" * 60 + r"\end{matrix}$"] * 190)
SLOW = r"\\[" * 6_000
CELLS = {
    "a deep sum": ["x = " + " + ".join(["1"] * 2_500)],
    "a deep name": ["x = a" + ".b" * 5_000],
    "600 lines for the shell": ["!ls\n" * 600],
    "150 KB of magics": ["\n".join(f"%time f({i})\nx{i} = {i}" for i in range(6_000))],
    "magics that nothing closes": ["!echo (\n" * 2_000],
    "8,000 names": ["\n".join(f"import module_{i}" for i in range(8_000))],
    "220 cells of code": [f"def causal_mask(x):\n{BODY}\n    return {i}" for i in range(220)],
    "escapes": ["x = '\\d'"],
    "a null byte": ["x = '\0'"],
    "parentheses": ["(" * 500 + ")" * 500],
    "nothing but lines": ["\n" * 100_000 + "z"],
}
TEXTS = [
    *(f"def scaled_dot_product_attention(x):\n{BODY}\n    return {i}" for i in range(220)),
    BOMB,
    "#" + " " * 100_000 + "x",
    "# x" + " " * 100_000 + "x",
    ">" * 10_000,
    "[" * 10_000,
]


@pytest.fixture
def graded(course: Course, filled: Callable[..., Any], hand_in: Callable[..., Path]) -> Callable[[], dict[str, Any]]:
    for student in ("ann", "zoe"):
        hand_in(student, filled(answer="Because."))
    executor = Scripted({"ann": {"causal_mask": 0.5}})

    def grade() -> dict[str, Any]:
        results = autograde(course, CHAPTER, device="cpu", make_executor=executor, force=True)
        return {result.student: result for result in results}

    return grade


def test_nobody_else_loses_by_a_page_of_hostile_text(
    course: Course, filled: Callable[..., Any], hand_in: Callable[..., Path], graded: Callable[[], dict[str, Any]]
) -> None:
    before = graded()
    page = filled(answer=BOMB)
    page.cells += [new_code_cell(source) for sources in CELLS.values() for source in sources]
    page.cells += [new_markdown_cell(source) for source in TEXTS]
    hand_in("eve", json.dumps(page).encode())
    after = graded()
    assert set(after) == {"ann", "eve", "zoe"}
    for student in ("ann", "zoe"):
        assert after[student].exercises == before[student].exercises
        assert after[student].problems == before[student].problems
    hostile = after["eve"]
    assert hostile.status == "graded"
    assert len(hostile.problems) <= MOST
    assert max(len(str(problem)) for problem in hostile.problems) < 2 * LONGEST
    pages = write_feedback(course, CHAPTER, autograder_config(course))
    assert len(pages) == 3
    assert all(path.stat().st_size < 1_000_000 for path in pages)


def test_a_page_that_takes_too_long_is_plain_and_the_commands_name_it(
    course: Course,
    filled: Callable[..., Any],
    hand_in: Callable[..., Path],
    graded: Callable[[], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(page_html, "PAGE_SECONDS", 0.8)
    hand_in("eve", filled(answer=SLOW))
    graded()
    assert len(write_feedback(course, CHAPTER, autograder_config(course))) == 3
    kinds = {result.student: [problem.kind for problem in result.problems] for result in read_results(course, CHAPTER)}
    assert (PLAIN in kinds["eve"], PLAIN in kinds["ann"], PLAIN in kinds["zoe"]) == (True, False, False)
    (renewed, named) = update_pages(course, [CHAPTER])
    assert renewed == f"{CHAPTER}: 1 feedback page updated"
    assert named.startswith(f"{CHAPTER}: eve: ")
    hand_in("eve", filled(answer="Because."))
    graded()
    assert update_pages(course, [CHAPTER]) == [f"{CHAPTER}: 1 feedback page updated"]
