"""A collection that ends suddenly, wherever it is, costs nobody a submission; the next one comes to the same end."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.intake.downloads.collect import collect
from autograder.intake.downloads.journal import journal_path
from autograder.intake.notebook.manifest import Manifest, released_manifest
from autograder.intake.roster import roster_path
from tests.taken_in import taken_in

from .conftest import CHAPTER, Fill
from .killed import ends_after

# What is handed in one after another: which notebook, and when, if that is known.
Handed = tuple[str, str | None]
NOTEBOOK = f"{CHAPTER}.ipynb"
STAMP = "timestamp.txt"


@pytest.fixture
def works(filled: Fill) -> dict[str, bytes]:
    """Three submissions."""
    return {name: nbformat.writes(filled(answer=f"Answer {name}.")).encode() for name in "ABC"}


@pytest.fixture
def manifest(course: Course) -> Manifest:
    """The released chapter."""
    return released_manifest(course, CHAPTER)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, manifest: Manifest) -> None:
    """Read what was released once, and wait for no disk: what a process has written stays when it ends."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr("autograder.intake.downloads.download.released_manifest", lambda *_: manifest)
    monkeypatch.setattr("autograder.intake.downloads.in_place.released_manifest", lambda *_: manifest)


def download(folder: Path, **students: tuple[bytes, str | None]) -> Path:
    """Write a download in nbgrader's layout."""
    for student, (data, stamp) in students.items():
        place = folder / student / CHAPTER
        place.mkdir(parents=True)
        (place / NOTEBOOK).write_bytes(data)
        if stamp is not None:
            (place / STAMP).write_text(f"2026-03-{stamp} 10:00:00 UTC\n", encoding="utf-8")
    return folder


def written(stamp: str | None) -> bytes | None:
    """Return a time stamp as it is put beside a notebook."""
    return None if stamp is None else f"2026-03-{stamp} 10:00:00 UTC".encode()


def everything(root: Path) -> dict[str, bytes | str]:
    """Return all that lies in a folder: files with what they hold, links with where they lead."""
    return {
        path.relative_to(root).as_posix(): str(path.readlink())
        if path.is_symlink()
        else "a folder"
        if path.is_dir()
        else path.read_bytes()
        for path in root.rglob("*")
    }


def pair(course: Course, student: str) -> tuple[bytes | None, ...]:
    """Return a student's notebook and time stamp."""
    paths = (course.root / "submitted" / student / CHAPTER / name for name in (NOTEBOOK, STAMP))
    return tuple(path.read_bytes() if path.exists() else None for path in paths)


HANDED: dict[str, list[Handed]] = {
    "another notebook": [("A", "01"), ("B", "02")],
    "another notebook of that time": [("A", "01"), ("B", "01")],
    "no time any more": [("A", "01"), ("B", None)],
    "a time now": [("A", None), ("B", "02")],
    "another time": [("A", "01"), ("A", "02")],
    "four attempts": [("A", "01"), ("B", "02"), ("A", "03"), ("C", "04")],
    "four attempts, times for two": [("A", "01"), ("B", None), ("A", "03"), ("C", None)],
    "a link": [("link", "01"), ("B", None)],
}


@pytest.mark.parametrize("what", HANDED)
def test_wherever_it_is_killed_everybody_has_a_submission_and_the_next_collection_comes_to_the_same_end(
    course: Course, tmp_path: Path, works: dict[str, bytes], manifest: Manifest, what: str
) -> None:
    *earlier, last = HANDED[what]
    source = download(tmp_path / "last", amara=(works[last[0]], last[1]), bela=(works["A"], "05"))
    for number, (name, stamp) in enumerate(earlier):
        collect(course, CHAPTER, download(tmp_path / str(number), amara=(works.get(name, works["A"]), stamp)))
    if what == "a link":
        place = course.root / "submitted" / "amara" / CHAPTER / NOTEBOOK
        place.unlink()
        place.symlink_to("nowhere")
    before = pair(course, "amara")
    undisturbed = Course(shutil.copytree(course.root, tmp_path / "undisturbed", symlinks=True))
    collect(undisturbed, CHAPTER, source)
    after = pair(undisturbed, "amara")
    assert after == (works[last[0]], written(last[1])), "a new notebook with no time of its own has none"

    number, killed = 0, True
    while killed:
        mine = Course(shutil.copytree(course.root, tmp_path / "killed", symlinks=True))
        killed = ends_after(number, lambda: collect(mine, CHAPTER, source), mine.root)  # noqa: B023
        where = f"killed before change {number}"
        now = pair(mine, "amara")
        assert now in {before, (before[0], after[1]), after}, f"{where}: a notebook with another's time"
        assert now[0] is None or taken_in(now[0], manifest).gradable, f"{where}: half a notebook"
        for folder in mine.root.glob(f"submitted/*/{CHAPTER}"):
            assert {path.name for path in folder.iterdir()} <= {NOTEBOOK, STAMP}, f"{where}: a draft would be graded"
        collect(mine, CHAPTER, None if number % 2 else source)
        assert not list(mine.root.glob("submitted/**/*.part")), f"{where}: a draft is left"
        collect(mine, CHAPTER, source)
        assert everything(mine.root) == everything(undisturbed.root), where
        shutil.rmtree(mine.root)
        number += 1
    assert number > 5, "it was never killed"


def test_a_notebook_that_is_replaced_again_is_kept_with_its_last_time(
    course: Course, tmp_path: Path, works: dict[str, bytes]
) -> None:
    for stamp, name in {"01": "A", "02": "B", "03": "A", "04": "C"}.items():
        collect(course, CHAPTER, download(tmp_path / stamp, amara=(works[name], stamp)))
    with (course.root / "submitted" / "amara" / CHAPTER / STAMP).open("r+b") as file:
        file.write(b"2027")  # what a person changes there is not changed where it is kept
    kept = [path.read_bytes() for path in course.root.glob(f"replaced/{CHAPTER}/amara/*/{STAMP}")]
    assert sorted(kept) == [written("02"), written("03")]


def test_where_files_cannot_have_two_names_the_earlier_submission_is_copied(
    course: Course, tmp_path: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    collect(course, CHAPTER, download(tmp_path / "1", amara=(works["A"], "01")))
    collect(course, CHAPTER, download(tmp_path / "2", amara=(works["B"], "02")))
    (kept,) = course.root.glob(f"replaced/{CHAPTER}/amara/*")
    assert [(kept / name).read_bytes() for name in (NOTEBOOK, STAMP)] == [works["A"], written("01")]


def full(monkeypatch: pytest.MonkeyPatch, root: Path, left: int) -> None:
    """Leave room for so many bytes more on the disk of a folder."""
    opened = Path.open

    def open_(path: Path, mode: str = "r", *args: Any, **more: Any) -> Any:
        file: Any = opened(path, mode, *args, **more)
        if not set(mode) & set("wxa") or not path.is_relative_to(root):
            return file
        write = file.write

        def written(data: Any) -> Any:
            nonlocal left
            room, left = max(left, 0), left - len(data)
            done = write(data[:room])
            if left < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return done

        file.write = written
        return file

    monkeypatch.setattr(Path, "open", open_)


@pytest.mark.parametrize("room", ["nothing", "half a notebook", "a notebook"])
def test_a_full_disk_leaves_the_earlier_submission_and_says_what_to_do(
    course: Course, tmp_path: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    collect(course, CHAPTER, download(tmp_path / "1", amara=(works["A"], "01")))
    before = everything(course.root / "submitted")
    source = download(tmp_path / "2", amara=(works["B"], "02"))
    left = {"nothing": 0, "half a notebook": len(works["B"]) // 2, "a notebook": len(works["B"]) + 5}[room]
    with monkeypatch.context() as patched:
        full(patched, course.folder("submitted"), left)
        found = collect(course, CHAPTER, source)
    assert everything(course.root / "submitted") == before
    assert (found.new, found.replaced, found.unchanged) == ([], [], []), "nothing was brought in"
    assert found.problems
    assert collect(course, CHAPTER, source).replaced == ["amara"]


def test_a_time_for_which_there_was_no_room_is_named_missing(
    course: Course, tmp_path: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(course, CHAPTER, download(tmp_path / "1", amara=(works["A"], None)))
    with monkeypatch.context() as patched:
        full(patched, course.folder("submitted"), 0)
        collect(course, CHAPTER, download(tmp_path / "2", amara=(works["A"], "05")))
    assert [item.student for item in collect(course, CHAPTER).missing] == ["amara"]


def test_a_list_of_students_that_cannot_be_written_is_told_and_stops_nobody(
    course: Course, tmp_path: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = download(tmp_path / "1", amara=(works["A"], "01"))
    collect(course, CHAPTER, source)
    roster_path(course).unlink()
    with monkeypatch.context() as patched:
        full(patched, course.root, 30)
        found = collect(course, CHAPTER, source)
    assert found.unchanged == ["amara"]
    assert [problem.where for problem in found.problems] == ["students.json"]


STUDENTS = [f"s{number}" for number in range(6)]


@pytest.fixture
def class_of_six(tmp_path: Path, works: dict[str, bytes]) -> Path:
    """A download of six students."""
    return download(tmp_path / "six", **dict.fromkeys(STUDENTS, (works["A"], None)))


def test_without_room_to_note_who_is_to_come_nobody_is_brought_in(
    course: Course, class_of_six: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        full(patched, course.root, 100)
        with pytest.raises(CourseError, match="nothing"):
            collect(course, CHAPTER, class_of_six)
    assert not course.folder("submitted").exists()


def test_who_was_to_come_when_the_process_was_killed_is_named(course: Course, class_of_six: Path) -> None:
    number, seen = 0, set[int]()
    while ends_after(number, lambda: collect(course, CHAPTER, class_of_six), course.root):
        there = {path.parent.name for path in course.root.glob(f"submitted/*/{CHAPTER}") if (path / NOTEBOOK).is_file()}
        named = {item.student for item in collect(course, CHAPTER).missing}
        assert not there or there | named == set(STUDENTS)
        assert not there & named
        seen.add(len(there))
        number += 1
    assert len(seen) > 3, "it was killed between two students"


def test_a_note_of_what_is_to_come_that_is_damaged_is_told_and_kept(course: Course) -> None:
    journal_path(course, CHAPTER).parent.mkdir(exist_ok=True)
    journal_path(course, CHAPTER).write_text("[{", encoding="utf-8")
    with pytest.raises(CourseError, match="damaged"):
        collect(course, CHAPTER)
    assert journal_path(course, CHAPTER).read_text(encoding="utf-8") == "[{"
