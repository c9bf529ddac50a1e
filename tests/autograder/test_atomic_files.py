"""Several files, all or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.atomic_files import write_all_or_none
from autograder.errors import CourseError


def everything(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_and_their_folders_are_written_and_keep_their_permissions(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"1")
    (tmp_path / "old").chmod(0o640)
    write_all_or_none({tmp_path / "old": b"2", tmp_path / "a" / "b" / "new": b"3"})
    assert everything(tmp_path) == {"old": b"2", "a/b/new": b"3"}
    assert (tmp_path / "old").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "a/b/new").stat().st_mode & 0o444, "others could not read it"


def test_a_file_in_the_way_of_a_folder_stops_everything(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"1")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CourseError, match="written") as caught:
        write_all_or_none({tmp_path / "old": b"2", tmp_path / "file" / "new": b"3"})
    assert caught.value.where == str(tmp_path / "file" / "new")
    assert everything(tmp_path) == {"old": b"1", "file": b""}


def test_what_took_its_place_already_is_put_back_when_a_later_file_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").write_bytes(b"1")
    replace = Path.replace

    def refuse(self: Path, target: Path) -> Path:
        if target.name == "third":
            raise PermissionError(13, "Permission denied", str(target))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(CourseError, match="Permission denied"):
        write_all_or_none({tmp_path / name: b"2" for name in ("old", "second", "third")})
    assert everything(tmp_path) == {"old": b"1"}
