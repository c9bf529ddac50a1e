"""A collection that ends suddenly, wherever it is, costs nobody a submission; the next one comes to the same end."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.collecting.collect import collect
from autograder.collecting.pending import record_path
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.roster.roster import roster_path
from autograder.submission.intake import take_in
from autograder.submission.manifest import Manifest, released_manifest

from .conftest import CHAPTER

Fill = Callable[..., Any]
# What is handed in one after another: which notebook, and when, if that is known.
Handed = tuple[str, str | None]
NOTEBOOK = f"{CHAPTER}.ipynb"
STAMP = "timestamp.txt"
KILLED = 9
_CHANGES = frozenset({"os.rename", "os.remove", "os.link", "os.symlink", "os.mkdir", "os.rmdir", "os.truncate"})


@pytest.fixture
def works(filled: Fill) -> dict[str, bytes]:
    """Three submissions."""
    return {name: nbformat.writes(filled(answer=f"Answer {name}.")).encode() for name in "ABC"}


@pytest.fixture
def manifest(course: Course) -> Manifest:
    """The released chapter."""
    return released_manifest(course, CHAPTER)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a process has written stays when it ends, also what has not reached the disk."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


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
    found: dict[str, bytes | str] = {}
    for path in root.rglob("*"):
        place = path.relative_to(root).as_posix()
        found[place] = str(path.readlink()) if path.is_symlink() else "a folder" if path.is_dir() else path.read_bytes()
    return found


def ends_after(number: int, work: Callable[[], object], root: Path) -> bool:
    """Do something in a process that ends before it changes the files of a folder for another time; say whether it did end so."""
    child = os.fork()
    if not child:
        try:
            _end_after(number, root)
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, KILLED), "the collection failed by itself"
    return code == KILLED


def _end_after(number: int, root: Path) -> None:
    left = number

    def count() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os._exit(KILLED)

    def look(event: str, args: tuple[Any, ...]) -> None:
        writes = event == "open" and bool(args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if (writes or event in _CHANGES) and str(args[0]).startswith(f"{root}/"):
            count()

    os.fsync = lambda _: count()
    sys.addaudithook(look)


def pair(course: Course, student: str) -> tuple[bytes | None, bytes | None]:
    """Return a student's notebook and time stamp."""
    folder = course.root / "submitted" / student / CHAPTER
    notebook, stamp = ((path.read_bytes() if path.exists() else None) for path in (folder / NOTEBOOK, folder / STAMP))
    return notebook, stamp


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
        where = f"killed before change {number} of the files"
        now = pair(mine, "amara")
        assert now in {before, (before[0], after[1]), after}, f"{where}: a notebook with another's time"
        assert now[0] is None or take_in(now[0], manifest).gradable, f"{where}: half a notebook"
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
    assert (kept / NOTEBOOK).read_bytes() == works["A"]
    assert (kept / STAMP).read_bytes() == written("01")


class Full:
    """A disk that has room for so many bytes more."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path, left: int) -> None:
        self.left = left
        opened, disk = Path.open, self

        def open_(path: Path, mode: str = "r", *args: Any, **more: Any) -> Any:
            file = opened(path, mode, *args, **more)
            if set(mode) & set("wxa") and path.is_relative_to(root):
                written = file.write

                def write(data: Any) -> Any:
                    disk.left -= len(data)
                    if disk.left < 0:
                        written(data[: len(data) + disk.left] if len(data) + disk.left > 0 else data[:0])
                        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                    return written(data)

                file = _Writing(file, write)
            return file

        monkeypatch.setattr(Path, "open", open_)


class _Writing:
    def __init__(self, file: Any, write: Callable[[Any], Any]) -> None:
        self._file, self.write = file, write

    def __enter__(self) -> _Writing:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@pytest.mark.parametrize("room", ["nothing", "half a notebook", "a notebook"])
def test_a_full_disk_leaves_the_earlier_submission_and_says_what_to_do(
    course: Course, tmp_path: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, room: str
) -> None:
    collect(course, CHAPTER, download(tmp_path / "1", amara=(works["A"], "01")))
    before = everything(course.root / "submitted")
    source = download(tmp_path / "2", amara=(works["B"], "02"))
    left = {"nothing": 0, "half a notebook": len(works["B"]) // 2, "a notebook": len(works["B"]) + 5}[room]
    with monkeypatch.context() as patched:
        Full(patched, course.folder("submitted"), left)
        found = collect(course, CHAPTER, source)
    assert everything(course.root / "submitted") == before
    assert (found.new, found.replaced, found.unchanged) == ([], [], []), "nothing was brought in"
    assert [(problem.kind, "No space" in problem.what) for problem in found.problems][:1] == [("not brought in", True)]
    assert collect(course, CHAPTER, source).replaced == ["amara"]


def test_a_list_of_students_that_cannot_be_written_is_told_and_stops_nobody(
    course: Course, tmp_path: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = download(tmp_path / "1", amara=(works["A"], "01"))
    collect(course, CHAPTER, source)
    roster_path(course).unlink()
    with monkeypatch.context() as patched:
        Full(patched, course.root, 30)
        found = collect(course, CHAPTER, source)
    assert found.unchanged == ["amara"]
    assert [(problem.kind, problem.where) for problem in found.problems] == [("list not written", "students.json")]


STUDENTS = [f"s{number}" for number in range(6)]


@pytest.fixture
def class_of_six(tmp_path: Path, works: dict[str, bytes]) -> Path:
    """A download of six students."""
    return download(tmp_path / "six", **dict.fromkeys(STUDENTS, (works["A"], None)))


def test_who_found_no_room_on_the_disk_is_named_until_the_work_is_there(
    course: Course, tmp_path: Path, class_of_six: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        Full(patched, course.root, 5_000 + 4 * len(works["A"]))
        found = collect(course, CHAPTER, class_of_six)
    lost = [student for student in STUDENTS if student not in found.students]
    assert len(lost) > 1
    assert [item.student for item in found.missing] == lost
    assert [problem.kind for problem in found.problems[: len(lost)]] == ["not brought in"] * len(lost)
    for source in (None, download(tmp_path / "late", bela=(works["B"], None))):
        again = collect(course, CHAPTER, source)
        assert [item.student for item in again.missing] == lost
        (problem,) = again.problems
        assert problem.kind == "not brought in"
        assert all(student in problem.what for student in lost)
        assert str(class_of_six) in problem.do, "the command that brings them in is named"
    by_hand = course.folder("submitted", lost[0], CHAPTER) / NOTEBOOK
    by_hand.parent.mkdir(parents=True, exist_ok=True)
    by_hand.write_bytes(works["C"])
    assert [item.student for item in collect(course, CHAPTER).missing] == lost[1:]
    assert collect(course, CHAPTER, class_of_six).missing == []
    assert not record_path(course, CHAPTER).exists()
    assert (collect(course, CHAPTER).missing, collect(course, CHAPTER).problems) == ([], [])


def test_a_time_that_did_not_come_is_missing_too(
    course: Course, tmp_path: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(course, CHAPTER, download(tmp_path / "1", amara=(works["A"], "01")))
    source = download(tmp_path / "2", amara=(works["A"], "02"))
    with monkeypatch.context() as patched:
        Full(patched, course.folder("submitted"), 3)
        assert [item.student for item in collect(course, CHAPTER, source).missing] == ["amara"]
    assert collect(course, CHAPTER).missing
    assert collect(course, CHAPTER, source).missing == []
    assert pair(course, "amara") == (works["A"], written("02"))


def test_without_room_to_note_who_is_to_come_nobody_is_brought_in(
    course: Course, class_of_six: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        Full(patched, course.root, 100)
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
    record_path(course, CHAPTER).parent.mkdir(exist_ok=True)
    record_path(course, CHAPTER).write_text("[{", encoding="utf-8")
    with pytest.raises(CourseError, match="damaged"):
        collect(course, CHAPTER)
    assert record_path(course, CHAPTER).read_text(encoding="utf-8") == "[{"
