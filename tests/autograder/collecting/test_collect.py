"""What a single download does not show: times that come later, limits, and files that change meanwhile."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from autograder.collecting import archive
from autograder.collecting.collect import collect
from autograder.course.folder import Course
from autograder.errors import CourseError
from autograder.roster.roster import is_safe, roster_path, safe_id
from tests.corpus.material import CHAPTER

from .test_downloads import NOTEBOOK, lying, write


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
    found, _ = archive.entries_of(tmp_path)
    path.rename(tmp_path / "secret.ipynb")
    path.symlink_to(tmp_path / "secret.ipynb")
    with pytest.raises(archive.RefusedError, match="link"):
        found[0].open()


def test_what_one_archive_unpacks_does_not_count_for_another(
    course: Course, tmp_path: Path, contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    room = 3 * len(contents["one"])
    monkeypatch.setattr(archive.Budget, "__init__", lambda self: setattr(self, "remaining", room))
    files = [*(f"a_1_1_work.zip/{i}.ipynb" for i in range(9)), f"b_2_2_work.zip/{NOTEBOOK}"]
    found = collect(course, CHAPTER, write(tmp_path / "s", files, contents))
    assert found.new == ["a-1", "b-2"]
    assert any("unpacks to more" in problem.what for problem in found.problems)
    monkeypatch.setattr(archive, "MAX_BYTES", 1_000)
    found = collect(course, CHAPTER, write(tmp_path / "f", ["dora.ipynb"], contents))
    assert [problem.kind for problem in found.problems] == ["file refused"]


def test_a_roster_that_cannot_be_read_is_not_overwritten(
    course: Course, tmp_path: Path, contents: dict[str, bytes]
) -> None:
    roster_path(course).write_text("{", encoding="utf-8")
    with pytest.raises(CourseError, match="list of students"):
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
