"""Submissions are brought in from wherever they come, and no bad file keeps another out."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.collecting import archive
from autograder.collecting.collect import collect
from autograder.collecting.collection import Collection
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.roster.roster import is_safe, read_roster, roster_path, safe_id

from .conftest import CHAPTER, OTHER

Fill = Callable[..., Any]
NOTEBOOK = f"{CHAPTER}.ipynb"


@pytest.fixture
def one(filled: Fill, right: dict[str, str]) -> bytes:
    """A submission."""
    return nbformat.writes(filled(**right)).encode()


@pytest.fixture
def two(filled: Fill) -> bytes:
    """Another submission."""
    return nbformat.writes(filled(answer="Another one.")).encode()


def zipped(files: dict[str, bytes], path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 3, 1, 10, 20, 30)), data, zipfile.ZIP_DEFLATED)
    return path


def folder(files: dict[str, bytes], path: Path) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def submitted(course: Course) -> dict[str, bytes]:
    found = course.root.glob(f"submitted/*/{CHAPTER}/{NOTEBOOK}")
    return {path.parent.parent.name: path.read_bytes() for path in found}


def kinds(collection: Collection) -> list[str]:
    return sorted(problem.kind for problem in collection.problems)


@pytest.mark.parametrize("packed", [True, False])
def test_canvas_names_are_understood(course: Course, tmp_path: Path, one: bytes, two: bytes, packed: bool) -> None:
    files = {
        f"abaraamara_1001_90001_{NOTEBOOK}": one,
        f"bianchicem_LATE_1002_90002_{CHAPTER}-1.ipynb": one,
        f"dangemre_1003_90003_{NOTEBOOK}": one,
        f"dangemre_1003_90007_{CHAPTER}-1.ipynb": two,
        "eriksenhana_1004_90004_homework.pdf": b"%PDF",
        f"anon_x7Gq_90005_{NOTEBOOK}": one,
    }
    source = zipped(files, tmp_path / "s.zip") if packed else folder(files, tmp_path / "s")
    found = collect(course, CHAPTER, source)
    assert found.new == ["abaraamara-1001", "anon-x7gq", "bianchicem-1002", "dangemre-1003"]
    assert submitted(course)["dangemre-1003"] == two
    assert kinds(found) == ["late", "no notebook", "not counted"]
    roster = read_roster(course)
    assert (roster["bianchicem-1002"].platform, roster["bianchicem-1002"].user) == ("canvas", "1002")
    assert roster["bianchicem-1002"].uploads == {CHAPTER: "90002"}


def test_late_work_is_named_until_its_time_is_written(course: Course, tmp_path: Path, one: bytes, two: bytes) -> None:
    late = folder({f"bianchicem_LATE_1002_90002_{NOTEBOOK}": one}, tmp_path / "s")
    assert kinds(collect(course, CHAPTER, late)) == ["late"]
    when = course.folder("submitted", "bianchicem-1002", CHAPTER) / "timestamp.txt"
    when.write_text("2026-03-29 10:00:00 UTC", encoding="utf-8")
    assert kinds(collect(course, CHAPTER, late)) == []
    assert when.read_text(encoding="utf-8") == "2026-03-29 10:00:00 UTC"
    again = folder({f"bianchicem_LATE_1002_90009_{CHAPTER}-1.ipynb": two}, tmp_path / "again")
    assert kinds(collect(course, CHAPTER, again)) == ["late", "replaced"]


def test_a_canvas_number_keeps_its_id_when_the_name_changes(
    course: Course, tmp_path: Path, one: bytes, filled: Fill
) -> None:
    collect(course, CHAPTER, folder({f"abaraamara_1001_90001_{NOTEBOOK}": one}, tmp_path / "a"))
    other = nbformat.writes(filled(OTHER)).encode()
    found = collect(course, OTHER, folder({f"benaliamara_1001_91001_{OTHER}.ipynb": other}, tmp_path / "b"))
    assert found.new == ["abaraamara-1001"]
    assert read_roster(course)["abaraamara-1001"].uploads == {CHAPTER: "90001", OTHER: "91001"}


def test_moodle_names_are_understood(course: Course, tmp_path: Path, one: bytes, two: bytes) -> None:
    files = {
        f"Amara Abara_555001_assignsubmission_file_/{NOTEBOOK}": one,
        f"Zoltán Wójcik_555002_assignsubmission_file/{NOTEBOOK}": two,
        f"Noor Demir_555003_assignsubmission_file_{NOTEBOOK}": one,
        "Jun Xu_555004_assignsubmission_onlinetext/onlinetext.html": b"<p>sorry</p>",
    }
    found = collect(course, CHAPTER, zipped(files, tmp_path / "m.zip"))
    assert found.new == ["amara-abara", "noor-demir", "zoltan-wojcik"]
    assert kinds(found) == ["no notebook"]
    assert read_roster(course)["zoltan-wojcik"].name == "Zoltán Wójcik"
    assert read_roster(course)["zoltan-wojcik"].uploads == {CHAPTER: "555002"}


def test_two_students_of_one_name_are_told_apart_and_pointed_out(
    course: Course, tmp_path: Path, one: bytes, two: bytes
) -> None:
    files = {
        f"Jun Xu_555001_assignsubmission_file_/{NOTEBOOK}": one,
        f"Jun Xu_555002_assignsubmission_file_/{NOTEBOOK}": two,
    }
    found = collect(course, CHAPTER, folder(files, tmp_path / "m"))
    assert found.new == ["jun-xu-555001", "jun-xu-555002"]
    assert kinds(found) == ["same name", "same name"]


def download(files: dict[str, bytes], path: Path) -> Path:
    """Write files into a folder; what lies in a zip is zipped."""
    for name in dict.fromkeys(name.partition(".zip/")[0] for name in files if ".zip/" in name):
        path.mkdir(exist_ok=True)
        inner = {other.partition(".zip/")[2]: files[other] for other in files if other.startswith(f"{name}.zip/")}
        zipped(inner, path / f"{name}.zip")
    return folder({name: data for name, data in files.items() if ".zip/" not in name}, path)


HONEST = ["alice/a.ipynb", "bob/b.ipynb", "carol/c.ipynb"]


@pytest.mark.parametrize(
    ("honest", "mine"),
    [
        (HONEST, ["mallory/alice/x(9).ipynb", "mallory/z/x.ipynb"]),
        (HONEST, [f"mallory/alice/{CHAPTER}/x.ipynb"]),
        (HONEST, [f"mallory/{CHAPTER}/alice/{CHAPTER}/x.ipynb"]),
        ([f"{name}/{CHAPTER}/{NOTEBOOK}" for name in ("alice", "bob")], [f"mallory/{OTHER}/alice/{CHAPTER}/x.ipynb"]),
        (
            [f"{name}/homework/a.ipynb" for name in ("alice", "bob", "carol")],
            [f"mallory/{name}/x.ipynb" for name in ("alice", "one", "two", "three", "four")],
        ),
        (HONEST, [f"mallory/alice_{i}_assignsubmission_file_/x.ipynb" for i in range(20)]),
        (HONEST, [f"mallory/alice_1_{i}_x.ipynb" for i in range(20)]),
        (["alice.ipynb", "bob.ipynb", "carol.ipynb"], ["mallory/alice.ipynb"]),
        (["alice.ipynb", "bob.ipynb", "mallory.ipynb"], ["mallory/alice.ipynb"]),
        (["alice.ipynb", "bob.ipynb", "carol.zip/n.ipynb"], ["mallory.zip/alice.ipynb", "mallory.zip/bob/n.ipynb"]),
        ([f"class/{name}" for name in HONEST], ["class/mallory/alice/n.ipynb", "class/mallory/class/bob/n.ipynb"]),
    ],
    ids=[
        "a folder",
        "nbgrader's",
        "nbgrader's twice",
        "another chapter's",
        "many folders",
        "Moodle's",
        "Canvas's",
        "beside files",
        "beside files, known",
        "in archives",
        "below the class's",
    ],
)
def test_what_a_student_calls_a_folder_replaces_nobodys_work(
    course: Course, tmp_path: Path, one: bytes, two: bytes, honest: list[str], mine: list[str]
) -> None:
    collect(course, CHAPTER, download(dict.fromkeys(honest, one), tmp_path / "1"))
    before = {name: data for name, data in submitted(course).items() if name != "mallory"}
    found = collect(course, CHAPTER, download(dict.fromkeys(honest, one) | dict.fromkeys(mine, two), tmp_path / "2"))
    assert set(found.replaced) <= {"mallory"}
    assert {name: data for name, data in submitted(course).items() if name != "mallory"} == before


@pytest.mark.parametrize(
    "mine",
    [
        ["mallory.zip", "alice.ipynb"],
        ["mallory.zip", f"alice/{CHAPTER}/{NOTEBOOK}"],
        ["mallory.zip", f"alice/{CHAPTER}/{NOTEBOOK}", f"mallory/{CHAPTER}/{NOTEBOOK}"],
        ["mallory.zip", "alice_1_2_x.ipynb", "mallory_3_4_x.ipynb"],
        ["", "mallory/alice/x.ipynb"],
        ["", f"mallory/alice/{CHAPTER}/x.ipynb"],
        ["", "mallory/alice.ipynb"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_one_student_alone_replaces_nobodys_work(
    course: Course, tmp_path: Path, one: bytes, two: bytes, mine: list[str], known: bool
) -> None:
    students = ("alice", "bob", *(("mallory",) if known else ()))
    collect(course, CHAPTER, folder({f"{name}.ipynb": one for name in students}, tmp_path / "1"))
    archive, *names = mine
    late = tmp_path / "late"
    late.mkdir()
    if archive:
        zipped(dict.fromkeys(names, two), late / archive)
    else:
        folder(dict.fromkeys(names, two), late)
    collect(course, CHAPTER, late)
    assert [submitted(course)[name] for name in ("alice", "bob")] == [one, one]
    if known:
        assert submitted(course)["mallory"] == two


def test_what_lies_in_the_folder_of_a_known_student_is_theirs(
    course: Course, tmp_path: Path, one: bytes, two: bytes
) -> None:
    collect(course, CHAPTER, folder(dict.fromkeys(["alice.ipynb", "mallory.ipynb"], one), tmp_path / "1"))
    collect(course, CHAPTER, folder(dict.fromkeys(["mallory/alice.ipynb", "mallory/x.ipynb"], two), tmp_path / "2"))
    assert submitted(course) == {"alice": one, "mallory": two}


def test_a_time_that_a_student_has_written_is_not_believed(course: Course, tmp_path: Path, one: bytes) -> None:
    names = [*HONEST, f"mallory/{CHAPTER}/x.ipynb"]
    source = folder(dict.fromkeys(names, one), tmp_path / "s")
    folder({f"mallory/{CHAPTER}/timestamp.txt": b"2020-01-01 00:00:00 UTC"}, source)
    assert collect(course, CHAPTER, source).new == ["alice", "bob", "carol", "mallory"]
    assert not list(course.root.glob("submitted/*/*/timestamp.txt"))


def test_most_of_a_download_in_the_folders_of_one_is_doubtful(course: Course, tmp_path: Path, one: bytes) -> None:
    names = [*(f"class/{name}/n.ipynb" for name in ("ada", "ben", "cem", "dee")), "solutions/n.ipynb"]
    found = collect(course, CHAPTER, folder(dict.fromkeys(names, one), tmp_path / "s"))
    assert set(submitted(course)) == {"solutions"}
    assert [problem.kind for problem in found.problems] == ["unknown owner"] * 4
    assert "directly in the folder or archive that you name with --submissions" in found.problems[0].do


@pytest.mark.parametrize(
    ("names", "students"),
    [
        (["ada/homework/n.ipynb", "ben/homework/n.ipynb"], {"ada", "ben"}),
        (["class/ada/work/n.ipynb", "class/ben/work/n.ipynb", "class/cem/n.ipynb"], {"ada", "ben", "cem"}),
        (["ada/n.ipynb", "ben/work/n.ipynb", "cem/work/n.ipynb"], {"ada", "ben", "cem"}),
        (["ada/n.ipynb", "ben/my-work/n.ipynb", "cem/desktop/n.ipynb"], {"ada", "ben", "cem"}),
        ([f"{OTHER}/ada/m.ipynb", f"{CHAPTER}/ada/n.ipynb", f"{CHAPTER}/ben/n.ipynb"], {"ada", "ben"}),
        (["ada/one/n.ipynb", "ada/two/n.ipynb", "ben/n.ipynb"], {"ada", "ben"}),
        ([f"{CHAPTER}/{CHAPTER}/{NOTEBOOK}"], {CHAPTER}),
        ([f"submitted/ada/{CHAPTER}/{NOTEBOOK}"], {"ada"}),
    ],
    ids=[
        "all have one",
        "below the class's folder",
        "one of them",
        "each another",
        "folders of chapters",
        "several",
        "like a chapter",
        "alone",
    ],
)
def test_a_folder_within_a_students_folder_is_nobodys_name(
    course: Course, tmp_path: Path, one: bytes, names: list[str], students: set[str]
) -> None:
    collect(course, CHAPTER, folder(dict.fromkeys(names, one), tmp_path / "s"))
    assert set(submitted(course)) == students


@pytest.mark.parametrize(
    "files",
    [
        ("amara.ipynb", "cem-demir.ipynb"),
        (f"{CHAPTER}_amara.ipynb", f"cem demir - {NOTEBOOK}"),
        ("amara/homework.ipynb", f"Cem Demir/{NOTEBOOK}"),
        ("week 3/amara.ipynb", "week 3/Cem_Demir.ipynb"),
        (
            f"submitted/amara/{NOTEBOOK}".replace(NOTEBOOK, f"{CHAPTER}/{NOTEBOOK}"),
            f"submitted/cem-demir/{CHAPTER}/{NOTEBOOK}",
        ),
        ("amara.ipynb.json", "cem-demir.ipynb.txt"),
    ],
)
def test_plain_folders_name_the_student_somewhere(
    course: Course, tmp_path: Path, one: bytes, files: tuple[str, str]
) -> None:
    found = collect(course, CHAPTER, folder(dict.fromkeys(files, one), tmp_path / "s"))
    assert found.new == ["amara", "cem-demir"]
    assert found.problems == []


def test_a_notebook_without_an_owner_is_reported(course: Course, tmp_path: Path, one: bytes) -> None:
    found = collect(course, CHAPTER, folder({NOTEBOOK: one, "amara.ipynb": one, "李.ipynb": one}, tmp_path / "s"))
    assert found.new == ["amara", "u674e"]
    assert [(p.kind, p.where) for p in found.problems] == [("unknown owner", NOTEBOOK)]


def test_nbgraders_own_layout_keeps_ids_and_time_stamps(course: Course, tmp_path: Path, one: bytes) -> None:
    files = {
        f"Amara.B_1/{CHAPTER}/{NOTEBOOK}": one,
        f"Amara.B_1/{CHAPTER}/timestamp.txt": b"2026-03-01 10:00:00 UTC\n",
        f"Amara.B_1/{OTHER}/{OTHER}.ipynb": one,
    }
    found = collect(course, CHAPTER, folder(files, tmp_path / "s"))
    assert found.new == ["Amara.B_1"]
    stamp = course.root / "submitted" / "Amara.B_1" / CHAPTER / "timestamp.txt"
    assert stamp.read_text() == "2026-03-01 10:00:00 UTC"
    assert found.problems == []


@pytest.mark.parametrize("place", ["work.zip", "sub"])
def test_a_time_stamp_of_a_student_s_own_counts_for_nothing(
    course: Course, tmp_path: Path, one: bytes, two: bytes, place: str
) -> None:
    own, late = b"2020-01-01 00:00:00 UTC\n", b"2026-03-01 10:00:00 UTC\n"
    mine = {f"{CHAPTER} (9).ipynb": two, "timestamp.txt": own}
    if place.endswith(".zip"):
        packed = {f"amara/{CHAPTER}/{place}": zipped(mine, tmp_path / place).read_bytes()}
    else:
        packed = {f"amara/{CHAPTER}/{place}/{name}": data for name, data in mine.items()}
    files = {
        f"amara/{CHAPTER}/timestamp.txt": late,
        **packed,
        f"bela/{CHAPTER}/{NOTEBOOK}": one,
        f"bela/{CHAPTER}/timestamp.txt": late,
    }
    assert collect(course, CHAPTER, folder(files, tmp_path / "s")).new == ["amara", "bela"]
    for student in ("amara", "bela"):
        stamp = course.root / "submitted" / student / CHAPTER / "timestamp.txt"
        assert stamp.read_text() == late.decode().strip()


@pytest.mark.parametrize("layout", ["nbgrader", "plain"])
def test_who_hands_in_something_else_than_a_notebook_is_named(
    course: Course, tmp_path: Path, one: bytes, layout: str
) -> None:
    inside = f"/{CHAPTER}" if layout == "nbgrader" else ""
    files = {
        f"amara{inside}/{NOTEBOOK}": one,
        f"ben{inside}/homework.py": b"print()",
        f"ben{inside}/notes.txt": b"mine",
        f"carl{inside}/work.pdf": b"%PDF",
    }
    found = collect(course, CHAPTER, folder(files, tmp_path / "s"))
    assert found.new == ["amara"]
    assert [(p.kind, p.what.partition(",")[0]) for p in found.problems] == [
        ("no notebook", "ben handed in 2 file(s)"),
        ("no notebook", "carl handed in 1 file(s)"),
    ]


def test_a_folder_beside_the_students_that_holds_one_notebook_each_needs_no_notebook_of_its_own(
    course: Course, tmp_path: Path, one: bytes
) -> None:
    files = {"amara.ipynb": one, "bela.ipynb": one, "figures/plot.png": b"\x89PNG"}
    assert collect(course, CHAPTER, folder(files, tmp_path / "s")).problems == []


def test_a_chapter_that_is_not_released_is_no_student(course: Course, tmp_path: Path, one: bytes) -> None:
    unreleased = "09_later"
    files = {
        f"amara/{CHAPTER}/{NOTEBOOK}": one,
        f"amara/{unreleased}/{unreleased}.ipynb": one,
        f"bela/{unreleased}/{unreleased}.ipynb": one,
    }
    found = collect(course, CHAPTER, folder(files, tmp_path / "s"), chapters=[CHAPTER, unreleased])
    assert found.new == ["amara"]
    assert [(p.kind, p.where) for p in found.problems] == [("other chapter", f"bela/{unreleased}/{unreleased}.ipynb")]


def test_dates_of_files_decide_nothing_unless_they_are_trusted(course: Course, tmp_path: Path, one: bytes) -> None:
    source = zipped({"amara.ipynb": one}, tmp_path / "s.zip")
    stamp = course.root / "submitted" / "amara" / CHAPTER / "timestamp.txt"
    collect(course, CHAPTER, source)
    assert not stamp.exists()
    collect(course, CHAPTER, source, trust_dates=True)
    assert stamp.read_text() == "2026-03-01 10:20:30 UTC"


def test_nothing_is_overwritten_without_a_word(course: Course, tmp_path: Path, one: bytes, two: bytes) -> None:
    first = collect(course, CHAPTER, folder({"amara.ipynb": one}, tmp_path / "1"))
    again = collect(course, CHAPTER, folder({"amara.ipynb": one}, tmp_path / "2"))
    other = collect(course, CHAPTER, folder({"amara.ipynb": two}, tmp_path / "3"))
    assert (first.new, again.unchanged, other.replaced) == (["amara"], ["amara"], ["amara"])
    assert again.problems == []
    assert kinds(other) == ["replaced"]
    (kept,) = course.root.glob(f"replaced/{CHAPTER}/amara/*/{NOTEBOOK}")
    assert kept.read_bytes() == one
    assert kept.parent.relative_to(course.root).as_posix() in other.problems[0].what


def test_the_last_file_that_can_be_graded_counts(course: Course, tmp_path: Path, one: bytes, two: bytes) -> None:
    files = {"amara.ipynb": one, "amara (1).ipynb": two, "amara (2).ipynb": two[:300]}
    found = collect(course, CHAPTER, folder(files, tmp_path / "s"))
    assert submitted(course) == {"amara": two}
    assert kinds(found) == ["not counted", "not counted"]
    assert any("truncated" in problem.what for problem in found.problems)


def test_the_date_of_a_file_does_not_decide_which_of_two_counts(
    course: Course, tmp_path: Path, one: bytes, two: bytes
) -> None:
    source = folder({"amara/a.ipynb": two, "amara/b.ipynb": one, "cem/c.ipynb": one}, tmp_path / "s")
    os.utime(source / "amara" / "b.ipynb", (1_000_000_000, 1_000_000_000))
    collect(course, CHAPTER, source)
    assert list(submitted(course)) == ["cem"]
    beside = sorted(path.name for path in course.folder("submitted", "amara", CHAPTER).iterdir())
    assert beside == ["a.ipynb", "b.ipynb"]


def test_what_cannot_be_graded_is_brought_in_with_its_name(
    course: Course, tmp_path: Path, one: bytes, filled: Fill
) -> None:
    files = {
        f"abaraamara_1_1_{NOTEBOOK}": b"%PDF-1.4",
        f"demircem_2_2_{NOTEBOOK}": nbformat.writes(filled(OTHER)).encode(),
        f"xujun_3_3_{NOTEBOOK}": one,
    }
    found = collect(course, CHAPTER, folder(files, tmp_path / "s"))
    assert found.new == ["abaraamara-1", "demircem-2", "xujun-3"]
    assert {p.where: p.kind for p in found.problems} == {
        f"abaraamara_1_1_{NOTEBOOK}": "not a notebook",
        f"demircem_2_2_{NOTEBOOK}": "wrong chapter",
    }


def test_other_chapters_in_a_mixed_folder_are_left_for_later(
    course: Course, tmp_path: Path, one: bytes, filled: Fill
) -> None:
    other = nbformat.writes(filled(OTHER)).encode()
    source = folder({f"amara_{NOTEBOOK}": one, f"amara_{OTHER}.ipynb": other}, tmp_path / "s")
    assert collect(course, CHAPTER, source).new == ["amara"]
    assert collect(course, OTHER, source).new == ["amara"]


def test_a_zip_in_a_download_is_looked_into(course: Course, tmp_path: Path, one: bytes) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("work/solution.ipynb", one)
        archive.writestr("__MACOSX/work/._solution.ipynb", b"\0")
    files = {"demircem_2_2_work.zip": inner.getvalue(), "xujun_3_3_broken.zip": b"PK\x03\x04 broken"}
    found = collect(course, CHAPTER, zipped(files, tmp_path / "s.zip"))
    assert found.new == ["demircem-2"]
    assert kinds(found) == ["file refused"]


def encrypted(path: Path) -> Path:
    """Set the flag of encryption in every header of an archive."""
    made = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        place = made.find(signature)
        while place >= 0:
            made[place + offset] |= 1
            place = made.find(signature, place + 4)
    path.write_bytes(made)
    return path


DOWNLOAD = "Download it again, or unpack it yourself and name the folder."
REFUSED = "Put the notebooks themselves, unpacked, into a folder, and name that."


@pytest.mark.parametrize(
    ("kind", "what", "do"),
    [
        ("cut", "It is not a zip archive that can be read: it breaks off before the list of its files", DOWNLOAD),
        ("empty", "It is not a zip archive that can be read: it is empty", DOWNLOAD),
        ("rar", "It is not a zip archive that can be read: it is a RAR archive", DOWNLOAD),
        (
            "encrypted",
            "all 2 files in it were refused, the first of them amara.ipynb: It is encrypted: it asks for",
            REFUSED,
        ),
        (
            "leading out",
            "all 2 files in it were refused, the first of them ../amara.ipynb: Its name leads out",
            REFUSED,
        ),
    ],
)
def test_an_archive_of_which_nothing_can_be_used_says_why_and_what_to_do(
    course: Course, tmp_path: Path, one: bytes, kind: str, what: str, do: str
) -> None:
    up = "../" if kind == "leading out" else ""
    path = zipped({f"{up}amara.ipynb": one, f"{up}Zoë O'Brien 🦊.ipynb": one}, tmp_path / "s.zip")
    if kind == "encrypted":
        encrypted(path)
    else:
        data = path.read_bytes()
        path.write_bytes({"cut": data[:-30], "empty": b"", "rar": b"Rar!\x1a\x07", "leading out": data}[kind])
    with pytest.raises(CourseError) as raised:
        collect(course, CHAPTER, path)
    assert raised.value.what.startswith(what)
    assert raised.value.do == do
    assert submitted(course) == {}


def test_a_student_s_archive_that_gives_nothing_is_named(course: Course, tmp_path: Path, one: bytes) -> None:
    work = zipped({NOTEBOOK: one}, tmp_path / "work.zip").read_bytes()
    files = {
        f"xujun_1_1_{NOTEBOOK}": one,
        "abaraamara_2_2_cut.zip": work[:-30],
        "bianchicem_3_3_empty.zip": zipped({}, tmp_path / "x.zip").read_bytes(),
        "dangemre_4_4_password.zip": encrypted(zipped({NOTEBOOK: one}, tmp_path / "x.zip")).read_bytes(),
        "eriksenhana_5_5_twice.zip": zipped({"inner.zip": work}, tmp_path / "x.zip").read_bytes(),
    }
    found = collect(course, CHAPTER, zipped(files, tmp_path / "s.zip"))
    assert found.new == ["xujun-1"]
    told = {problem.where.partition("_")[0]: problem for problem in found.problems}
    assert {name: problem.what.partition(", which")[0] for name, problem in told.items()} == {
        "abaraamara": "It is not a zip archive that can be read: it breaks off before the list of its files",
        "bianchicem": "There is no file in the archive.",
        "dangemre": "It is encrypted: it asks for a password.",
        "eriksenhana": "eriksenhana handed in 1 file(s), and no notebook. An archive within an archive is not looked into.",
    }
    assert {problem.do for name, problem in told.items() if name != "eriksenhana"} == {
        "Ask for the notebook alone, as .ipynb."
    }


def test_a_file_that_is_refused_in_the_class_s_archive_is_not_blamed_on_a_student(
    course: Course, tmp_path: Path, one: bytes
) -> None:
    found = collect(course, CHAPTER, zipped({"../evil.ipynb": one, "amara.ipynb": one}, tmp_path / "s.zip"))
    assert [problem.do for problem in found.problems] == ["Unpack the archive yourself and look at it."]


@pytest.mark.parametrize(
    ("files", "counts", "why"),
    [
        (("a.ipynb", f"sub dir/{NOTEBOOK}"), f"sub dir/{NOTEBOOK}", "its name is the chapter's"),
        (("a.ipynb", "a (1).ipynb"), "a (1).ipynb", "it has the higher number"),
        (("a.ipynb", "broken.ipynb"), "a.ipynb", "the other cannot be graded: truncated"),
    ],
)
def test_of_several_notebooks_it_is_said_which_counts_and_why(
    course: Course, tmp_path: Path, one: bytes, two: bytes, files: tuple[str, str], counts: str, why: str
) -> None:
    source = tmp_path / "s"
    for name in files:
        data = two[:300] if name.startswith("broken") else two if name == counts else one
        folder({f"Zoë O'Brien 🦊_5_assignsubmission_file_/{name}": data}, source)
    found = collect(course, CHAPTER, source)
    assert list(submitted(course).values()) == [two]
    (problem,) = found.problems
    assert problem.kind == "not counted"
    assert problem.what.endswith(f"/{counts} of the same student counts, for {why}.")
    assert problem.do.startswith("If this one should count: tfcourse choose ") is ("cannot be graded" not in why)


def test_names_that_lead_out_of_the_archive_are_refused(course: Course, tmp_path: Path, one: bytes) -> None:
    evil = ("../../evil.ipynb", "/etc/evil.ipynb", "C:\\evil.ipynb", "a/../../evil.ipynb", "..\\evil.ipynb")
    found = collect(course, CHAPTER, zipped({**dict.fromkeys(evil, one), "amara.ipynb": one}, tmp_path / "s.zip"))
    assert found.new == ["amara"]
    assert kinds(found) == ["file refused"] * len(evil)
    assert not list(tmp_path.rglob("evil*"))


def test_links_are_not_followed(course: Course, tmp_path: Path, one: bytes) -> None:
    source = folder({"amara.ipynb": one, "secret/key.ipynb": one}, tmp_path / "s")
    (source / "cem.ipynb").symlink_to(tmp_path / "s" / "secret" / "key.ipynb")
    (source / "dir").symlink_to(tmp_path)
    link = zipfile.ZipInfo("bjorn.ipynb")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(source / "more.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    found = collect(course, CHAPTER, source)
    assert kinds(found) == ["file refused"] * 3
    assert all("link" in problem.what for problem in found.problems)
    assert "cem" not in submitted(course)


def test_what_would_burst_is_refused_before_and_while_it_is_read(
    course: Course, tmp_path: Path, one: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = b'{"cells": [' + b" " * 30_000_000
    found = collect(course, CHAPTER, zipped({"cem.ipynb": bomb, "amara.ipynb": one}, tmp_path / "s.zip"))
    assert found.new == ["amara"]
    assert "times its size" in found.problems[0].what
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", 10)
    with pytest.raises(archive.RefusedError):
        archive.Budget(10).spend(11)
    monkeypatch.setattr(archive, "MAX_BYTES", 1_000)
    found = collect(course, CHAPTER, folder({"dora.ipynb": one}, tmp_path / "f"))
    assert kinds(found) == ["file refused"]


def test_a_lie_about_a_size_is_noticed(
    course: Course, tmp_path: Path, one: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = zipped({"amara.ipynb": one}, tmp_path / "s.zip")
    data = path.read_bytes()
    size, crc = len(one).to_bytes(4, "little"), (10).to_bytes(4, "little")
    path.write_bytes(data.replace(size, crc))
    found = collect(course, CHAPTER, path)
    assert found.new == []
    assert kinds(found) == ["file refused"]


def test_a_source_that_is_no_source_is_said_at_once(course: Course, tmp_path: Path) -> None:
    with pytest.raises(CourseError, match="no such file"):
        collect(course, CHAPTER, tmp_path / "nowhere")
    (tmp_path / "x.zip").write_bytes(b"no zip")
    with pytest.raises(CourseError, match="not a zip archive"):
        collect(course, CHAPTER, tmp_path / "x.zip")
    with pytest.raises(CourseError, match="not released"):
        collect(course, "99_nothing", tmp_path)


def test_submissions_that_are_in_place_are_left_alone(
    course: Course, hand_in: Callable[..., Path], filled: Fill
) -> None:
    path = hand_in("amara", filled())
    before = path.read_bytes()
    renamed = hand_in("cem", filled()).rename(course.root / "submitted" / "cem" / CHAPTER / "homework.ipynb")
    hand_in("not safe!", filled())
    hand_in("dora", filled()).unlink()
    found = collect(course, CHAPTER)
    assert found.students == ["amara", "cem"]
    assert path.read_bytes() == before
    assert renamed.exists()
    assert set(submitted(course)) == {"amara", "cem", "not safe!"}
    # Of the name that nbgrader cannot use, grading tells.
    assert kinds(found) == ["no notebook", "renamed"]


def test_what_lies_in_the_wrong_place_is_named_with_the_right_one(
    course: Course, hand_in: Callable[..., Path], filled: Fill, one: bytes
) -> None:
    hand_in("amara", filled())
    folder(
        {
            "ben.ipynb": one,
            "Zoë O'Brien 🦊.IPYNB": one,
            f"{CHAPTER}/cem/{NOTEBOOK}": one,
            f"{CHAPTER}/dora/homework.ipynb": one,
            "eve/homework.ipynb": one,
            "notes.txt": b"",
        },
        course.root / "submitted",
    )
    found = collect(course, CHAPTER)
    assert found.students == ["amara"]
    assert {problem.kind for problem in found.problems} == {"wrong place"}
    beside, turned = (
        f"here, not in a student's folder of {CHAPTER}: passed over.",
        "The folders are the wrong way round",
    )
    assert [(problem.where, problem.what) for problem in found.problems] == [
        ("submitted", f"2 notebooks (Zoë O'Brien 🦊.IPYNB, ben.ipynb) {beside}"),
        (f"submitted/{CHAPTER}", f"{turned}: 2 folders (cem, dora) in the chapter's: passed over."),
        ("submitted/eve", f"1 notebook (homework.ipynb) {beside}"),
    ]
    for problem in found.problems:
        assert f"submitted/STUDENT/{CHAPTER}/{NOTEBOOK}" in problem.do
        assert "--submissions" in problem.do


def test_what_lies_in_the_right_place_is_not_taken_for_the_wrong_one(
    course: Course, hand_in: Callable[..., Path], filled: Fill, one: bytes
) -> None:
    hand_in("amara", filled())
    folder({f"amara/{NOTEBOOK}": one, f"{CHAPTER}/{CHAPTER}/{NOTEBOOK}": one}, course.root / "submitted")
    found = collect(course, CHAPTER)
    assert found.problems == []
    assert found.students == [CHAPTER, "amara"], "a student may be called like a chapter"


def test_a_time_stamp_that_cannot_be_read_is_told_and_keeps_no_notebook_out(
    course: Course, tmp_path: Path, one: bytes
) -> None:
    stamp = b"2026-03-01 10:00:00 UTC"
    path = tmp_path / "s.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for student in ("amara", "bela"):
            archive.writestr(f"{student}/{CHAPTER}/{NOTEBOOK}", one)
        archive.writestr(f"amara/{CHAPTER}/timestamp.txt", stamp)
    path.write_bytes(path.read_bytes().replace(stamp, stamp.replace(b"10", b"11")))
    found = collect(course, CHAPTER, path)
    assert found.new == ["amara", "bela"]
    assert [(problem.kind, problem.where) for problem in found.problems] == [
        ("no time", f"amara/{CHAPTER}/timestamp.txt")
    ]
    assert "nothing is taken off" in found.problems[0].what
    assert "timestamp.txt" in found.problems[0].do
    (again,) = collect(course, CHAPTER).problems
    assert (again.kind, again.where) == ("no time", f"submitted/amara/{CHAPTER}/timestamp.txt")
    assert "damaged in the download" in again.what


def test_a_link_to_another_students_folder_is_not_followed(
    course: Course, tmp_path: Path, one: bytes, two: bytes
) -> None:
    collect(course, CHAPTER, folder({"bo.ipynb": one}, tmp_path / "1"))
    (course.root / "submitted" / "amara").symlink_to("bo")
    found = collect(course, CHAPTER, folder({"amara.ipynb": two, "cem.ipynb": two}, tmp_path / "2"))
    assert found.new == ["cem"]
    assert kinds(found) == ["not brought in"]
    assert (course.root / "submitted" / "bo" / CHAPTER / NOTEBOOK).read_bytes() == one


def test_a_roster_that_cannot_be_read_is_not_overwritten(course: Course, tmp_path: Path, one: bytes) -> None:
    roster_path(course).write_text("{", encoding="utf-8")
    with pytest.raises(CourseError, match="list of students"):
        collect(course, CHAPTER, folder({"amara.ipynb": one}, tmp_path / "s"))
    assert roster_path(course).read_text(encoding="utf-8") == "{"


def test_the_roster_is_the_same_whatever_the_order(course: Course, tmp_path: Path, one: bytes) -> None:
    source = folder({"zoe.ipynb": one, "amara.ipynb": one}, tmp_path / "s")
    collect(course, CHAPTER, source)
    first = roster_path(course).read_bytes()
    collect(course, CHAPTER, source)
    assert roster_path(course).read_bytes() == first
    assert list(json.loads(first)) == ["amara", "zoe"]


@pytest.mark.parametrize(
    "text",
    [
        "../../etc/passwd",
        "a/b",
        "..",
        "C:\\x",
        "\x00",
        "x" * 300,
        "-rf",
        ".hidden",
        "Ωμέγα",
        "a+b",
        "CON",
        "nul.txt",
        "a.",
        "x" * 79 + ".y",
    ],
)
def test_an_id_made_of_anything_is_safe_or_empty(text: str) -> None:
    made = safe_id(text)
    assert made == "" or is_safe(made)
    assert safe_id(made) == made
