"""Whatever lies in a download, each student gets their own work, nobody gets another's, and the rest is named: ``downloads.toml``."""

from __future__ import annotations

import os
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from autograder.course.folder import Course
from autograder.course.known_names import store_project_chapters
from autograder.errors import CourseError
from autograder.intake.downloads import archive, store
from autograder.intake.downloads.collect import collect
from autograder.intake.downloads.store import Collection
from autograder.intake.notebook.attached_files import KIND
from autograder.intake.people.enrol import enrol
from autograder.intake.roster import is_safe, read_roster, roster_path, safe_id
from tests.corpus.material import CHAPTER, OTHER

from .archives import ARCHIVES, zipped

NOTEBOOK = f"{CHAPTER}.ipynb"
TABLE = Path(__file__).with_name("downloads.toml")
TEXT = TABLE.read_text("utf-8").replace("{chapter}", CHAPTER).replace("{other}", OTHER)
ROWS = {row["name"]: row for row in tomllib.loads(TEXT)["download"]}


def write(folder: Path, files: Sequence[str], contents: Mapping[str, bytes], *, packed: bool = False) -> Path:
    """Write a download: ``path = content`` each, ``one`` by default; what lies in a zip is zipped."""
    archives: dict[str, dict[str, bytes]] = {}
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        name, _, what = file.partition(" = ")
        data = what.encode() if what.startswith("-> ") else _content(what, contents)
        outer, inside, inner = ("all.zip", "/", name) if packed else name.partition(".zip/")
        path = folder / (f"{outer}.zip" if inside and not packed else outer)
        if inside:
            archives.setdefault(path.name if packed else f"{outer}.zip", {})[inner] = data
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        if what.startswith("-> "):
            path.symlink_to(what[3:])
        elif what in ("pipe", "folder"):
            (os.mkfifo if what == "pipe" else os.mkdir)(path)
        else:
            path.write_bytes(data)
    for name, inner_files in archives.items():
        (folder / name).write_bytes(zipped(inner_files))
    return folder / "all.zip" if packed else folder


def _content(what: str, contents: Mapping[str, bytes]) -> bytes:
    if what in ARCHIVES:
        return ARCHIVES[what](contents["one"])
    return contents.get(what or "one", b"")


def lying(course: Course, contents: Mapping[str, bytes]) -> list[str]:
    """Return what is handed in, in the table's words; the chapter's own file without its name."""
    names = {data.strip(): name for name, data in contents.items()}
    found = [
        path
        for path in course.root.glob(f"submitted/*/{CHAPTER}/**/*")
        if not any(part.is_symlink() for part in (path, *path.parents[:4]))
    ]
    parts = {path: path.relative_to(course.root).parts[1:] for path in found}
    places = {path: "/".join((who, *at)).removesuffix(f"/{NOTEBOOK}") for path, (who, _, *at) in parts.items()}
    what = {path: path.read_bytes().strip() for path in found if path.is_file()}
    return sorted(f"{places[path]} = {names.get(data, data.decode())}" for path, data in what.items())


def outcome(
    row: Mapping[str, Any], course: Course, folder: Path, contents: Mapping[str, bytes]
) -> tuple[dict[str, list[str]], Collection]:
    """Collect what a row says; return what the table says of the end."""
    store_project_chapters(course.root, row.get("chapters", ()))
    if "class" in row:
        (folder / "class.csv").write_text("\n".join(row["class"]), encoding="utf-8")
        enrol(course, folder / "class.csv")
    if "before" in row:
        collect(course, CHAPTER, write(folder / "before", row["before"], contents))
    if row.get("in_place"):
        write(course.root / "submitted", row["files"], contents)
        found = collect(course, CHAPTER)
    else:
        source = write(folder / "now", row["files"], contents, packed=row.get("packed", False))
        found = collect(course, CHAPTER, source)
    told = sorted(f"{problem.kind}: {problem.where}" for problem in found.problems)
    end = {"owners": lying(course, contents), "problems": told}
    if "numbers" in row:
        end["numbers"] = sorted(
            " ".join((one.id, one.platform, one.user, one.uploads.get(CHAPTER, "")))
            for one in read_roster(course).values()
        )
    return end, found


@pytest.mark.parametrize("name", ROWS)
def test_everybody_gets_their_own_work_and_the_rest_is_named(
    name: str, course: Course, tmp_path: Path, contents: dict[str, bytes]
) -> None:
    row = ROWS[name]
    outside = tmp_path / "outside"
    (outside / CHAPTER).mkdir(parents=True)
    end, found = outcome(row, course, tmp_path, contents)
    assert end == {key: row[key] for key in end}
    assert all(map(is_safe, found.new))
    assert "fatal" not in row or [problem.kind for problem in found.problems if problem.fatal] == row["fatal"]
    assert [word for word in row.get("words", ()) if word not in "\n".join(map(str, found.problems))] == []
    assert [path.name for path in outside.rglob("*")] == [CHAPTER]
    assert {path.name for path in tmp_path.iterdir()} <= {"outside", "course", "now", "before", "class.csv"}
    if not row.get("in_place"):
        roster = list(read_roster(course).items())
        assert roster == sorted(roster, key=lambda item: item[0])
        source = tmp_path / "now" / ("all.zip" if row.get("packed") else "")
        again = collect(course, CHAPTER, source)
        assert (again.new, again.replaced) == ([], []), "the same download brings nothing new"
        assert list(read_roster(course).items()) == roster


@pytest.mark.parametrize(
    ("archive", "word"),
    [
        ("broken off", "breaks off"),
        ("nothing", "empty"),
        ("RAR", "RAR"),
        ("noise", "zip"),
        ("encrypted", "encrypted"),
        ("a million names", "more files"),
        ("leading out", "leads out"),
    ],
)
def test_an_archive_of_which_nothing_can_be_used_is_one_error(
    course: Course, tmp_path: Path, contents: dict[str, bytes], archive: str, word: str
) -> None:
    path = tmp_path / "class.zip"
    path.write_bytes(zipped({"../a.ipynb": b"{}"}) if archive == "leading out" else ARCHIVES[archive](contents["one"]))
    with pytest.raises(CourseError, match=word) as raised:
        collect(course, CHAPTER, path)
    assert raised.value.do
    assert lying(course, contents) == []


@pytest.mark.parametrize(("chapter", "source", "word"), [(CHAPTER, "nowhere", "no such"), ("99", ".", "not released")])
def test_a_source_that_is_none_is_refused(course: Course, tmp_path: Path, chapter: str, source: str, word: str) -> None:
    with pytest.raises(CourseError, match=word):
        collect(course, chapter, tmp_path / source)


def test_what_is_replaced_is_kept(course: Course, tmp_path: Path, contents: dict[str, bytes]) -> None:
    found = [
        collect(course, CHAPTER, write(tmp_path / str(number), files, contents))
        for number, files in enumerate(
            (["amara/a.ipynb", "amara/b.ipynb = two", "amara/help.py = text", "bo/c.ipynb"], ["amara.ipynb = three"])
        )
    ]
    assert (found[0].new, found[1].replaced) == (["amara", "bo"], ["amara"])
    kept = {path.name: path for path in course.root.glob(f"replaced/{CHAPTER}/amara/*/*.*")}
    assert {name: path.read_bytes() for name, path in kept.items()} == {
        "a.ipynb": contents["one"],
        "b.ipynb": contents["two"],
        "help.py": contents["text"],
    }
    assert any(
        kept["a.ipynb"].parent.relative_to(course.root).as_posix() in problem.what for problem in found[1].problems
    )


def test_files_beside_a_notebook_over_the_limits_are_named(
    course: Course, tmp_path: Path, contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_FILES", 2)
    monkeypatch.setattr(store, "MAX_BYTES", 20)
    files = ["ada/a.ipynb", "ada/a.py = text", "ada/b.py = early", "ada/c.py = text", "ada/d.py = text", "bo/a.ipynb"]
    found = collect(course, CHAPTER, write(tmp_path / "s", files, contents))
    assert lying(course, contents) == ["ada = one", "ada/a.py = text", "ada/c.py = text", "bo = one"]
    assert len([problem.kind for problem in found.problems if problem.kind == KIND]) == 2


def test_a_mixed_folder_serves_every_chapter(course: Course, tmp_path: Path, contents: dict[str, bytes]) -> None:
    files = [f"amara_1001_90001_{NOTEBOOK}", f"amara_1001_91001_{OTHER}.ipynb = other"]
    for chapter in (CHAPTER, OTHER):
        assert collect(course, chapter, write(tmp_path / "s", files, contents)).new == ["amara-1001"]
    assert read_roster(course)["amara-1001"].uploads == {CHAPTER: "90001", OTHER: "91001"}


def test_links_in_the_course_lead_nowhere(course: Course, tmp_path: Path, contents: dict[str, bytes]) -> None:
    (tmp_path / "outside" / CHAPTER).mkdir(parents=True)
    (tmp_path / "outside" / "gold").write_bytes(b"gold")
    links = [f"bo/{CHAPTER}/{NOTEBOOK}", f"cem/{CHAPTER}/{NOTEBOOK}.part"]
    links = [
        *(f"{link} = -> {tmp_path}/outside/gold" for link in links),
        f"amara = -> {tmp_path}/outside",
        "eve = -> bo",
    ]
    write(course.root / "submitted", links, contents)
    files = ["amara/a.ipynb", "bo/a.ipynb", "cem/a.ipynb", "dora/a.ipynb", "eve/a.ipynb = two"]
    found = collect(course, CHAPTER, write(tmp_path / "s", files, contents))
    refused = [problem.where for problem in found.problems if problem.kind == "not brought in"]
    assert refused == ["amara/a.ipynb", "eve/a.ipynb"]
    assert {*found.new, *found.replaced} == {"bo", "cem", "dora"}
    assert sorted(path.name for path in (tmp_path / "outside").rglob("*")) == [CHAPTER, "gold"]
    assert (tmp_path / "outside" / "gold").read_bytes() == b"gold"
    assert not (course.root / "submitted" / "bo" / CHAPTER / NOTEBOOK).is_symlink()


def test_late_work_is_named_until_its_time_is_written(
    course: Course, tmp_path: Path, contents: dict[str, bytes]
) -> None:
    def kinds(*files: str) -> list[str]:
        return sorted(
            problem.kind for problem in collect(course, CHAPTER, write(tmp_path / files[0], files, contents)).problems
        )

    late = f"bianchicem_LATE_1002_90002_{NOTEBOOK}"
    assert kinds(late) == ["late"]
    when = course.folder("submitted", "bianchicem-1002", CHAPTER) / "timestamp.txt"
    when.write_bytes(contents["time"])
    assert kinds(late) == []
    assert when.read_bytes() == contents["time"]
    assert kinds(f"bianchicem_LATE_1002_90009_{CHAPTER}-1.ipynb = two") == ["late", "replaced"]


def test_a_time_stamp_that_cannot_be_read_is_named_and_keeps_no_notebook_out(
    course: Course, tmp_path: Path, contents: dict[str, bytes]
) -> None:
    path = tmp_path / "s.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        file.writestr(f"amara/{CHAPTER}/{NOTEBOOK}", contents["one"])
        file.writestr(f"amara/{CHAPTER}/timestamp.txt", contents["time"])
    path.write_bytes(path.read_bytes().replace(contents["time"], contents["time"].replace(b"10", b"11")))
    for source, where in ((path, ""), (None, "submitted/")):
        found = collect(course, CHAPTER, source)
        assert found.students == ["amara"]
        assert [(problem.kind, problem.where.removesuffix("/timestamp.txt")) for problem in found.problems] == [
            ("no time", f"{where}amara/{CHAPTER}")
        ]


def test_a_file_that_becomes_a_link_meanwhile_is_not_followed(tmp_path: Path) -> None:
    path = tmp_path / "amara.ipynb"
    path.write_bytes(b"{}")
    found, _ = archive.list_entries(tmp_path)
    path.rename(tmp_path / "secret.ipynb")
    path.symlink_to(tmp_path / "secret.ipynb")
    with pytest.raises(archive.RefusedError, match="link"):
        found[0].open()


def test_what_one_archive_unpacks_does_not_count_for_another(
    course: Course, tmp_path: Path, contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    room = 3 * len(contents["one"])
    monkeypatch.setattr(archive, "MAX_TOTAL_BYTES", room)
    files = [*(f"a_1_1_work.zip/{i}.ipynb" for i in range(9)), f"b_2_2_work.zip/{NOTEBOOK}"]
    found = collect(course, CHAPTER, write(tmp_path / "s", files, contents))
    assert found.new == ["a-1", "b-2"]
    assert any("unpacks" in problem.what for problem in found.problems)
    monkeypatch.setattr(archive, "MAX_BYTES", 1_000)
    found = collect(course, CHAPTER, write(tmp_path / "f", ["dora.ipynb"], contents))
    assert [problem.kind for problem in found.problems] == ["file refused"]


def test_a_roster_that_cannot_be_read_is_not_overwritten(
    course: Course, tmp_path: Path, contents: dict[str, bytes]
) -> None:
    roster_path(course).write_text("{", encoding="utf-8")
    with pytest.raises(CourseError, match="students"):
        collect(course, CHAPTER, write(tmp_path / "s", ["amara.ipynb"], contents))
    assert roster_path(course).read_text(encoding="utf-8") == "{"
    assert lying(course, contents) == []


@pytest.mark.parametrize(
    "text",
    [
        *("../../etc/passwd", "a/b", "..", "C:\\x", "\x00", "x" * 300, "-rf", ".hidden", "Ωμέγα", "a+b", "CON"),
        *("nul.txt", "a.", "x" * 79 + ".y"),
    ],
)
def test_an_id_made_of_anything_is_safe_or_empty(text: str) -> None:
    made = safe_id(text)
    assert made == "" or is_safe(made)
    assert safe_id(made) == made
