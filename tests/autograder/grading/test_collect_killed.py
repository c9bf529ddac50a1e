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


@pytest.mark.parametrize(
    "handed",
    [
        [("A", "01"), ("B", "02")],
        [("A", "01"), ("B", "01")],
        [("A", "01"), ("B", None)],
        [("A", None), ("B", "02")],
        [("A", "01"), ("A", "02")],
        [("A", "01"), ("B", "02"), ("A", "03"), ("C", "04")],
        [("A", "01"), ("B", None), ("A", "03"), ("C", None)],
    ],
    ids=lambda handed: " ".join(f"{name}{stamp or ''}" for name, stamp in handed),
)
def test_wherever_it_is_killed_everybody_has_a_submission_and_the_next_collection_comes_to_the_same_end(
    course: Course, tmp_path: Path, works: dict[str, bytes], manifest: Manifest, handed: list[Handed]
) -> None:
    *earlier, last = [
        download(tmp_path / f"download {i}", amara=(works[name], stamp)) for i, (name, stamp) in enumerate(handed)
    ]
    download(last, bela=(works["A"], "05"))
    for source in earlier:
        collect(course, CHAPTER, source)
    before = pair(course, "amara")
    undisturbed = Course(shutil.copytree(course.root, tmp_path / "undisturbed"))
    collect(undisturbed, CHAPTER, last)
    after = pair(undisturbed, "amara")
    name, stamp = handed[-1]
    assert after == (works[name], written(stamp)), "a new notebook with no time of its own has none"

    number, killed = 0, True
    while killed:
        mine = Course(shutil.copytree(course.root, tmp_path / "killed", symlinks=True))
        killed = ends_after(number, lambda: collect(mine, CHAPTER, last), mine.root)  # noqa: B023
        where = f"killed before change {number} of the files"
        now = pair(mine, "amara")
        assert now[0] is not None, f"{where}: there is no notebook"
        assert take_in(now[0], manifest).gradable, f"{where}: half a notebook"
        assert now in {before, (before[0], after[1]), after}, f"{where}: a notebook with another's time"
        for folder in mine.root.glob(f"submitted/*/{CHAPTER}"):
            assert {path.name for path in folder.iterdir()} <= {NOTEBOOK, STAMP}, f"{where}: a draft would be graded"
        collect(mine, CHAPTER, last)
        assert everything(mine.root) == everything(undisturbed.root), where
        shutil.rmtree(mine.root)
        number += 1
    assert number > 5, "it was never killed"


def test_a_notebook_that_is_a_link_is_replaced_as_well(
    course: Course, tmp_path: Path, works: dict[str, bytes], manifest: Manifest
) -> None:
    folder = course.root / "submitted" / "amara" / CHAPTER
    folder.mkdir(parents=True)
    (folder / NOTEBOOK).symlink_to("nowhere")
    (folder / STAMP).write_text("2026-03-01 10:00:00 UTC", encoding="utf-8")
    source = download(tmp_path / "download", amara=(works["B"], None))
    undisturbed = Course(shutil.copytree(course.root, tmp_path / "undisturbed", symlinks=True))
    assert collect(undisturbed, CHAPTER, source).replaced == ["amara"]
    assert pair(undisturbed, "amara") == (works["B"], None)
    number, killed = 0, True
    while killed:
        mine = Course(shutil.copytree(course.root, tmp_path / "killed", symlinks=True))
        killed = ends_after(number, lambda: collect(mine, CHAPTER, source), mine.root)  # noqa: B023
        collect(mine, CHAPTER, source)
        assert everything(mine.root) == everything(undisturbed.root), f"killed before change {number} of the files"
        shutil.rmtree(mine.root)
        number += 1
    assert number > 5, "it was never killed"


@pytest.mark.parametrize("place", ["in place", "of another student"])
def test_what_a_killed_collection_has_begun_to_write_is_removed_by_the_next(
    course: Course, tmp_path: Path, works: dict[str, bytes], place: str
) -> None:
    source = download(tmp_path / "1", amara=(works["A"], "01"))
    number = 0
    while not (drafts := list(course.root.glob("submitted/**/*.part"))):
        assert ends_after(number, lambda: collect(course, CHAPTER, source), course.root), "no draft was ever seen"
        number += 1
    collect(course, CHAPTER, None if place == "in place" else download(tmp_path / "2", bela=(works["B"], "02")))
    assert not any(draft.exists() for draft in drafts)


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


def test_a_notebook_that_is_replaced_again_is_kept_with_its_last_time(
    course: Course, tmp_path: Path, works: dict[str, bytes]
) -> None:
    for stamp, name in {"01": "A", "02": "B", "03": "A", "04": "C"}.items():
        collect(course, CHAPTER, download(tmp_path / stamp, amara=(works[name], stamp)))
    kept = {path.parent: path.read_bytes() for path in course.root.glob(f"replaced/{CHAPTER}/amara/*/{STAMP}")}
    assert sorted(kept.values()) == [written("02"), written("03")]


def test_a_time_stamp_that_is_changed_by_hand_does_not_change_the_one_that_is_kept(
    course: Course, tmp_path: Path, works: dict[str, bytes]
) -> None:
    for name in "AB":
        collect(course, CHAPTER, download(tmp_path / name, amara=(works[name], "01")))
    with (course.root / "submitted" / "amara" / CHAPTER / STAMP).open("r+b") as file:
        file.write(b"2027")
    (kept,) = course.root.glob(f"replaced/{CHAPTER}/amara/*/{STAMP}")
    assert kept.read_bytes() == written("01")


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
    problem = found.problems[0]
    assert problem.kind == "not brought in"
    assert "No space left on device" in problem.what
    assert "what was handed in before is still there" in problem.what
    assert problem.do == "Make room on the disk, then collect again."
    assert collect(course, CHAPTER, source).replaced == ["amara"]


def test_a_full_disk_is_told_also_where_a_notebook_only_gets_its_name(
    course: Course, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = course.root / "submitted" / "amara" / CHAPTER
    folder.mkdir(parents=True)
    (folder / "homework.ipynb").write_bytes(works["A"])
    before = everything(course.root / "submitted")
    with monkeypatch.context() as patched:
        Full(patched, course.root, 100)
        (problem,) = collect(course, CHAPTER).problems
    assert "No space left on device" in problem.what
    assert problem.do == "Make room on the disk, then collect again."
    assert everything(course.root / "submitted") == before
    assert collect(course, CHAPTER).students == ["amara"]


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
    assert found.problems[0].do == "Make room on the disk, then collect again."


STUDENTS = [f"s{number}" for number in range(6)]


@pytest.fixture
def class_of_six(tmp_path: Path, works: dict[str, bytes]) -> Path:
    """A download of six students."""
    return download(tmp_path / "six", **dict.fromkeys(STUDENTS, (works["A"], None)))


def test_who_found_no_room_on_the_disk_is_named_by_every_later_collection_until_the_work_is_there(
    course: Course, class_of_six: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        Full(patched, course.root, 5_000 + 4 * len(works["A"]))
        found = collect(course, CHAPTER, class_of_six)
    lost = [student for student in STUDENTS if student not in found.students]
    assert lost
    assert [item.student for item in found.missing] == lost
    assert [problem.kind for problem in found.problems[: len(lost)]] == ["not brought in"] * len(lost)
    assert all(student in problem.what for student, problem in zip(lost, found.problems, strict=False))
    for _ in range(2):
        again = collect(course, CHAPTER)
        assert [item.student for item in again.missing] == lost
        (problem,) = again.problems
        assert problem.kind == "not brought in"
        assert f"{', '.join(lost)}." in problem.what
        assert str(class_of_six) in problem.do, "the command that brings them in is told"
    assert collect(course, CHAPTER, class_of_six).missing == []
    assert not record_path(course, CHAPTER).exists()
    assert (collect(course, CHAPTER).missing, collect(course, CHAPTER).problems) == ([], [])


def test_without_room_to_note_who_is_to_come_nobody_is_brought_in(
    course: Course, class_of_six: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        Full(patched, course.root, 100)
        with pytest.raises(CourseError, match="nothing of 03_scaled_dot_product was brought in") as refused:
            collect(course, CHAPTER, class_of_six)
    assert refused.value.do == "Make room on the disk, and give the same command again."
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


def test_what_is_missing_of_an_earlier_download_stays_missing_after_another_one(
    course: Course, tmp_path: Path, class_of_six: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        Full(patched, course.root, 5_000 + 4 * len(works["A"]))
        lost = [item.student for item in collect(course, CHAPTER, class_of_six).missing]
    found = collect(course, CHAPTER, download(tmp_path / "late", bela=(works["B"], None)))
    assert [item.student for item in found.missing] == lost
    assert [problem.kind for problem in found.problems] == ["not brought in"]


def test_a_time_that_did_not_come_is_missing_too(
    course: Course, tmp_path: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(course, CHAPTER, download(tmp_path / "1", amara=(works["A"], "01")))
    source = download(tmp_path / "2", amara=(works["A"], "02"))
    with monkeypatch.context() as patched:
        patched.setattr(
            "autograder.collecting.store.write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full"))
        )
        assert [item.student for item in collect(course, CHAPTER, source).missing] == ["amara"]
    assert collect(course, CHAPTER).missing
    assert collect(course, CHAPTER, source).missing == []
    assert pair(course, "amara") == (works["A"], written("02"))


def test_a_notebook_that_somebody_has_put_there_by_hand_is_not_missing(
    course: Course, class_of_six: Path, works: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        Full(patched, course.root, 5_000 + 4 * len(works["A"]))
        first, *others = [item.student for item in collect(course, CHAPTER, class_of_six).missing]
    place = course.folder("submitted", first, CHAPTER)
    place.mkdir(parents=True, exist_ok=True)
    (place / NOTEBOOK).write_bytes(works["C"])
    assert [item.student for item in collect(course, CHAPTER).missing] == others


def test_a_note_of_what_is_to_come_that_is_damaged_is_told_and_kept(course: Course) -> None:
    record_path(course, CHAPTER).parent.mkdir(exist_ok=True)
    record_path(course, CHAPTER).write_text("[{", encoding="utf-8")
    with pytest.raises(CourseError, match="damaged"):
        collect(course, CHAPTER)
    assert record_path(course, CHAPTER).read_text(encoding="utf-8") == "[{"
