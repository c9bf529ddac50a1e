"""Folders and archives of submissions: whatever is in them, each student gets theirs, and nothing leads out of where it belongs."""

from __future__ import annotations

import io
import os
import socket
import stat
import struct
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import pytest

from autograder.collecting import archive
from autograder.collecting.collect import collect
from autograder.collecting.collection import Collection
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.roster.roster import is_safe, read_roster

from .material import CHAPTER, OTHER, Work

NOTEBOOK = f"{CHAPTER}.ipynb"


@pytest.fixture
def one(released: dict[str, dict[str, Any]]) -> bytes:
    """A submission."""
    return Work.done(released[CHAPTER]).json()


@pytest.fixture
def two(released: dict[str, dict[str, Any]]) -> bytes:
    """Another submission."""
    work = Work.done(released[CHAPTER])
    work.cells.append({"cell_type": "markdown", "metadata": {}, "source": "Another one."})
    return work.json()


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    """An empty folder for what a platform hands out."""
    path = tmp_path / "downloads"
    path.mkdir()
    return path


def submitted(course: Course) -> dict[str, bytes]:
    """Return what lies where submissions lie, by student."""
    found = course.root.glob(f"submitted/*/{CHAPTER}/{NOTEBOOK}")
    return {path.parent.parent.name: path.read_bytes() for path in found}


def problems(found: Collection) -> dict[str, str]:
    """Return the kinds of a collection's problems, by file."""
    return {problem.where: problem.kind for problem in found.problems}


def put(folder: Path, name: str, data: bytes) -> Path:
    """Write a file and the folders above it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def zipped(files: dict[str, bytes]) -> bytes:
    """Return an archive."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return made.getvalue()


NAMES = (
    "Amara Abara",
    "Zoë O'Brien",
    'quotes "and" more',
    "Robert'); DROP TABLE students;--",
    "-rf",
    "--help",
    "CON",
    "nul.txt",
    "x" * 240,
    "ends in a dot.",
    "李小龙",
    "Ωμέγα",
    "$(reboot)",
    "`id`",
    "%s%n",
    "a\tb",
    "new\nline",
    "back\\slash",
    "..hidden",
    "🦊 fox",
    "\u202eright to left",
)


def test_any_name_gets_a_safe_id_of_its_own_and_its_own_work(course: Course, downloads: Path, one: bytes) -> None:
    for number, name in enumerate(NAMES):
        put(downloads, f"{name}/{NOTEBOOK}", one + b" " * number)
    found = collect(course, CHAPTER, downloads)
    assert len(found.new) == len(NAMES)
    assert all(map(is_safe, found.new))
    assert sorted(len(data) - len(one) for data in submitted(course).values()) == list(range(len(NAMES)))
    assert len(read_roster(course)) == len(NAMES)


def test_a_name_of_which_nothing_is_left_is_named(course: Course, downloads: Path, one: bytes) -> None:
    for name in ("🦊", "...", "'\"'"):
        put(downloads, f"{name}/{NOTEBOOK}", one)
    put(downloads, f"amara/{NOTEBOOK}", one)
    found = collect(course, CHAPTER, downloads)
    assert found.new == ["amara"]
    assert [problem.kind for problem in found.problems] == ["unknown owner"] * 3


def test_names_that_are_equal_but_for_case_accents_or_unicode_do_not_replace_each_other(
    course: Course, downloads: Path, one: bytes
) -> None:
    composed = unicodedata.normalize("NFC", "José")
    names = ("jose", "Jose", composed, unicodedata.normalize("NFD", "José"), "x" * 200 + "1", "x" * 200 + "2")
    for number, name in enumerate(names):
        put(downloads, f"{name}.ipynb", one + b" " * number)
    found = collect(course, CHAPTER, downloads)
    assert len(found.new) == len(names)
    assert len(submitted(course)["jose"]) == len(one), "the one who is spelled like the id has it"
    assert [problem.kind for problem in found.problems] == ["same name"] * 4
    again = collect(course, CHAPTER, downloads)
    assert sorted(again.unchanged) == sorted(found.new), "the next time everybody has the same id"


def test_who_is_alone_the_next_time_keeps_the_id(course: Course, downloads: Path, one: bytes, tmp_path: Path) -> None:
    for name in ("Ada Lovelace", "ADA LOVELACE"):
        put(downloads, f"{name}.ipynb", one)
    first = collect(course, CHAPTER, downloads)
    ids = {student.name: student.id for student in read_roster(course).values()}
    put(tmp_path / "next", "Ada Lovelace.ipynb", one)
    assert collect(course, CHAPTER, tmp_path / "next").unchanged == [ids["Ada Lovelace"]]
    assert len(first.new) == 2


@pytest.mark.parametrize("name", [f"{CHAPTER} (1).ipynb", "Untitled.ipynb", f"{CHAPTER}.IPYNB", "homework.ipynb.txt"])
def test_a_renamed_file_is_still_its_students(course: Course, downloads: Path, one: bytes, name: str) -> None:
    put(downloads, f"amara/{name}", one)
    put(downloads, f"bo/{NOTEBOOK}", one)
    found = collect(course, CHAPTER, downloads)
    assert found.new == ["amara", "bo"]
    assert found.problems == []


@pytest.mark.parametrize("name", ["Untitled.ipynb", f"{CHAPTER} (1).ipynb", f"{CHAPTER}.IPYNB"])
def test_the_only_notebook_in_place_is_taken_under_any_name(course: Course, one: bytes, name: str) -> None:
    put(course.root, f"submitted/amara/{CHAPTER}/{name}", one)
    found = collect(course, CHAPTER)
    assert [problem.kind for problem in found.problems] == ["renamed"]
    assert submitted(course) == {"amara": one}


def test_the_last_of_two_attempts_counts_on_canvas_and_on_moodle(
    course: Course, downloads: Path, one: bytes, two: bytes
) -> None:
    put(downloads, f"abaraamara_1001_90001_{NOTEBOOK}", one)
    put(downloads, f"abaraamara_1001_90002_{CHAPTER}-1.ipynb", two)
    put(downloads, f"abaraamara_1001_90003_{CHAPTER}-2.ipynb", two[:500])
    found = collect(course, CHAPTER, downloads)
    assert submitted(course) == {"abaraamara-1001": two}
    assert sorted(problems(found).values()) == ["not counted", "not counted"]


def test_of_several_files_on_moodle_one_counts_and_the_others_are_named(
    course: Course, downloads: Path, one: bytes, two: bytes
) -> None:
    for name, data in ((NOTEBOOK, two), (f"{CHAPTER} (1).ipynb", one)):
        put(downloads, f"Amara Abara_555001_assignsubmission_file_/{name}", data)
    found = collect(course, CHAPTER, downloads)
    assert submitted(course) == {"amara-abara": one}
    assert list(problems(found).values()) == ["not counted"]


def test_nothing_but_another_chapters_notebook_is_named(course: Course, downloads: Path, one: bytes) -> None:
    put(downloads, f"amara/{OTHER}.ipynb", one)
    put(downloads, f"bo/{NOTEBOOK}", one)
    found = collect(course, CHAPTER, downloads)
    assert found.new == ["bo"]
    assert problems(found) == {f"amara/{OTHER}.ipynb": "other chapter"}


# Things that are no files.


def test_links_pipes_sockets_devices_and_empty_folders_are_named_and_never_opened(
    course: Course, downloads: Path, one: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put(downloads, f"bo/{NOTEBOOK}", one)
    secret = put(tmp_path, "secret.ipynb", one)
    for name in ("passwd", "other", "dangling", "loop", "fifo", "folder", "socket"):
        (downloads / name).mkdir()
    (downloads / "passwd" / NOTEBOOK).symlink_to("/etc/passwd")
    (downloads / "other" / NOTEBOOK).symlink_to(downloads / "bo" / NOTEBOOK)
    (downloads / "dangling" / NOTEBOOK).symlink_to(tmp_path / "nowhere")
    (downloads / "loop" / NOTEBOOK).symlink_to(NOTEBOOK)
    (downloads / "away").symlink_to(secret.parent)
    os.mkfifo(downloads / "fifo" / NOTEBOOK)
    (downloads / "folder" / NOTEBOOK).mkdir()
    monkeypatch.chdir(downloads / "socket")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(NOTEBOOK)
        found = collect(course, CHAPTER, downloads)
    assert submitted(course) == {"bo": one}
    names = ("passwd", "other", "dangling", "loop", "fifo", "folder", "socket")
    assert problems(found) == {"away": "file refused"} | {f"{name}/{NOTEBOOK}": "file refused" for name in names}
    told = {problem.where.partition("/")[0]: problem.what for problem in found.problems}
    assert all("link" in told[name] for name in ("passwd", "other", "dangling", "loop", "away"))
    assert all("not opened" in told[name] for name in ("fifo", "socket"))
    assert "empty folder" in told["folder"]


def test_a_file_that_becomes_a_link_meanwhile_is_not_followed(
    course: Course, downloads: Path, one: bytes, tmp_path: Path
) -> None:
    path = put(downloads, "amara.ipynb", one)
    found, _ = archive.entries_of(downloads)
    path.unlink()
    path.symlink_to(put(tmp_path, "secret.ipynb", one))
    with pytest.raises(archive.RefusedError, match="link"):
        found[0].open()


def test_links_in_the_course_lead_nowhere(course: Course, downloads: Path, one: bytes, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / CHAPTER).mkdir(parents=True)
    treasure = put(outside, "treasure", b"gold")
    folder = course.root / "submitted"
    folder.mkdir()
    (folder / "amara").symlink_to(outside)
    for student in ("bo", "cem"):
        (folder / student / CHAPTER).mkdir(parents=True)
    (folder / "bo" / CHAPTER / NOTEBOOK).symlink_to(treasure)
    (folder / "cem" / CHAPTER / f"{NOTEBOOK}.part").symlink_to(treasure)
    for student in ("amara", "bo", "cem", "dora"):
        put(downloads, f"{student}/{NOTEBOOK}", one)
    found = collect(course, CHAPTER, downloads)
    assert problems(found)[f"amara/{NOTEBOOK}"] == "not brought in"
    assert {*found.new, *found.replaced} == {"bo", "cem", "dora"}
    assert treasure.read_bytes() == b"gold"
    assert sorted(path.name for path in outside.iterdir()) == [CHAPTER, "treasure"]
    assert not any((outside / CHAPTER).iterdir())
    assert not (folder / "bo" / CHAPTER / NOTEBOOK).is_symlink()


def test_links_in_place_are_named_and_never_followed(course: Course, one: bytes, tmp_path: Path) -> None:
    mine = put(course.root, f"submitted/bo/{CHAPTER}/{NOTEBOOK}", one)
    folder = course.root / "submitted"
    (folder / "eve").symlink_to(folder / "bo")
    (folder / "mallory" / CHAPTER).mkdir(parents=True)
    (folder / "mallory" / CHAPTER / NOTEBOOK).symlink_to(mine)
    (folder / "trudy" / CHAPTER).mkdir(parents=True)
    os.mkfifo(folder / "trudy" / CHAPTER / "other.ipynb")
    found = collect(course, CHAPTER)
    assert found.students == ["bo"]
    assert problems(found) == {f"submitted/{name}/{CHAPTER}": "file refused" for name in ("eve", "mallory", "trudy")}


# Archives.


def test_names_in_an_archive_that_lead_out_are_refused(course: Course, downloads: Path, one: bytes) -> None:
    evil = ("../evil.ipynb", "/etc/evil.ipynb", "a/../../evil.ipynb", "C:\\evil.ipynb", "\\\\host\\evil.ipynb")
    path = put(downloads, "class.zip", zipped({**dict.fromkeys(evil, one), f"amara/{NOTEBOOK}": one}))
    found = collect(course, CHAPTER, path)
    assert found.new == ["amara"]
    assert [problem.kind for problem in found.problems] == ["file refused"] * len(evil)
    assert not list(downloads.parent.rglob("evil*"))


def test_a_student_cannot_hand_in_for_another_from_within_an_archive(
    course: Course, downloads: Path, one: bytes, two: bytes
) -> None:
    put(downloads, "amara.zip", zipped({NOTEBOOK: one}))
    claims = (f"amara/{CHAPTER}/{NOTEBOOK}", f"amara_1001_99999_{NOTEBOOK}", "Amara_5_assignsubmission_file_/a.ipynb")
    put(downloads, "eve.zip", zipped(dict.fromkeys(claims, two)))
    found = collect(course, CHAPTER, downloads)
    assert found.new == ["amara", "eve"]
    assert submitted(course)["amara"] == one


def test_a_student_cannot_hand_in_for_another_by_the_name_of_a_file(
    course: Course, downloads: Path, one: bytes, two: bytes
) -> None:
    for student in ("amara", "bo"):
        put(downloads, f"{student}/{NOTEBOOK}", one)
    put(downloads, f"eve/amara_1001_99999_{NOTEBOOK}", two)
    found = collect(course, CHAPTER, downloads)
    assert found.new == ["amara", "bo", "eve"]
    assert submitted(course)["amara"] == one


def encrypted(data: bytes) -> bytes:
    """Set the flag of encryption in every header of an archive."""
    made = bytearray(data)
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        place = made.find(signature)
        while place >= 0:
            made[place + offset] |= 1
            place = made.find(signature, place + 4)
    return bytes(made)


def overlapping(data: bytes) -> bytes:
    """Return an archive in which a hundred names share the bytes of one file."""
    start = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    record = data[start:end]
    central = record * 100
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 100, 100, len(central), start, 0)
    return data[:start] + central + tail


def many(count: int) -> bytes:
    """Return an archive of many empty files, made without the patience that zipfile takes."""
    head = struct.pack("<4s5H3L2H", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, 0, 0, 1, 0) + b"x"
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"x"
    central = entry * count
    tail = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, len(central), len(head), 0)
    return head + central + tail


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("of zeros", "times its size"),
        ("encrypted", "encrypted"),
        ("overlapping", "Entries in the archive overlap"),
        ("a million names", "more files than anybody hands in"),
        ("five thousand names", "more than 2000 files"),
        ("cut", "not a zip archive"),
        ("noise", "not a zip archive"),
        ("of archives", ""),
    ],
)
def test_an_archive_that_is_made_to_burst_costs_nobody_else_anything(
    course: Course, downloads: Path, one: bytes, name: str, words: str
) -> None:
    bomb = {
        "of zeros": lambda: zipped({NOTEBOOK: b" " * 50_000_000}),
        "encrypted": lambda: encrypted(zipped({NOTEBOOK: one})),
        "overlapping": lambda: overlapping(zipped({NOTEBOOK: one})),
        "a million names": lambda: many(1_000_000),
        "five thousand names": lambda: zipped({f"{i}.ipynb": b"" for i in range(5_000)}),
        "cut": lambda: zipped({NOTEBOOK: one})[:200],
        "noise": lambda: b"PK\x03\x04" + bytes((i * i) % 251 for i in range(5_000)),
        "of archives": lambda: zipped({f"{i}.zip": zipped({NOTEBOOK: one}) for i in range(20)}),
    }[name]()
    put(downloads, "eve_2_2_work.zip", bomb)
    put(downloads, f"amara_1_1_{NOTEBOOK}", one)
    found = collect(course, CHAPTER, downloads)
    assert found.new == ["amara-1"]
    eves = [str(problem) for problem in found.problems if "eve" in problem.where]
    assert eves, "nothing was said about this archive"
    assert words in "\n".join(eves)


def test_what_one_archive_unpacks_does_not_count_for_another(
    course: Course, downloads: Path, one: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", 3 * len(one))
    greedy = zipped({f"{i}.ipynb": one + b"\n" * i for i in range(9)})
    put(downloads, "a_1_1_work.zip", greedy)
    put(downloads, "b_2_2_work.zip", zipped({NOTEBOOK: one}))
    monkeypatch.setattr(archive.Budget, "__init__", lambda self: setattr(self, "remaining", 3 * len(one)))
    found = collect(course, CHAPTER, downloads)
    assert found.new == ["a-1", "b-2"]
    assert any("unpacks to more" in problem.what for problem in found.problems)


def test_a_class_archive_that_is_made_to_burst_is_said_at_once(course: Course, downloads: Path) -> None:
    with pytest.raises(CourseError, match="more files than anybody"):
        collect(course, CHAPTER, put(downloads, "class.zip", many(1_000_000)))


def test_a_link_in_an_archive_is_not_followed(course: Course, downloads: Path, one: bytes) -> None:
    made = io.BytesIO()
    link = zipfile.ZipInfo("eve.ipynb")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(link, "/etc/passwd")
        archive.writestr("amara.ipynb", one)
    found = collect(course, CHAPTER, put(downloads, "class.zip", made.getvalue()))
    assert found.new == ["amara"]
    assert problems(found) == {"eve.ipynb": "file refused"}


def test_nothing_is_written_outside_the_course(course: Course, downloads: Path, one: bytes) -> None:
    before = {path: path.lstat().st_mtime_ns for path in downloads.parent.rglob("*") if not _inside(path, course)}
    put(downloads, f"../outside/{NOTEBOOK}", one)
    for name in ("a\\..\\..\\b.ipynb", "~root.ipynb", "%2e%2e%2fx.ipynb"):
        put(downloads, name, one)
    collect(course, CHAPTER, downloads)
    after = {path for path in downloads.parent.rglob("*") if not _inside(path, course)}
    new = {path.relative_to(downloads.parent).parts[0] for path in after - set(before)}
    assert new == {"downloads", "outside"}


def _inside(path: Path, course: Course) -> bool:
    return path.is_relative_to(course.root.parent)
