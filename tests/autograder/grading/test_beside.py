"""What lies beside a notebook is read, whatever it is, and nothing outside of its folder is."""

from __future__ import annotations

import base64
import os
import socket
from pathlib import Path

import pytest

from autograder.submission import attached_files as module
from autograder.submission.attached_files import attached_files


def read(*folders: Path) -> dict[str, bytes]:
    return {name: base64.b64decode(data) for name, data in attached_files(folders).items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "submitted"
    made.mkdir()
    (made / "data.csv").write_bytes(b"1,2\n")
    return made


def test_files_are_found_by_their_path_in_the_folder(folder: Path) -> None:
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "sub" / "deep" / "w.bin").write_bytes(bytes(range(256)))
    (folder / "empty").write_bytes(b"")
    assert read(folder) == {"data.csv": b"1,2\n", "empty": b"", "sub/deep/w.bin": bytes(range(256))}


def test_what_is_given_is_plain_text_that_json_can_hold(folder: Path) -> None:
    assert attached_files([folder]) == {"data.csv": "MSwyCg=="}


def test_notebooks_and_what_jupyter_leaves_behind_are_not_files_of_the_notebooks(folder: Path) -> None:
    for name in ("03.ipynb", "timestamp.txt", "__pycache__/a.pyc", ".ipynb_checkpoints/b.txt", "sub/__pycache__/c"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    assert list(read(folder)) == ["data.csv"]


def test_of_two_files_with_one_name_that_of_the_later_folder_counts(folder: Path, tmp_path: Path) -> None:
    course = tmp_path / "course"
    course.mkdir()
    (course / "data.csv").write_bytes(b"the course's")
    (course / "more.csv").write_bytes(b"more")
    assert read(folder, course) == {"data.csv": b"the course's", "more.csv": b"more"}
    assert read(course, folder)["data.csv"] == b"1,2\n"


def test_a_link_to_a_file_is_not_followed(folder: Path, tmp_path: Path) -> None:
    secret = tmp_path / "gradebook.db"
    secret.write_text("secret")
    (folder / "link").symlink_to(secret)
    (folder / "dangling").symlink_to(tmp_path / "nothing")
    (folder / "loop").symlink_to(folder / "loop")
    assert list(read(folder)) == ["data.csv"]


def test_a_link_to_a_folder_is_not_followed_wherever_it_is(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (folder / "inner").symlink_to(outside)
    (folder / "round").symlink_to(folder)
    assert list(read(folder)) == ["data.csv"]
    whole = tmp_path / "whole"
    whole.symlink_to(outside)
    assert read(whole) == {}
    student = tmp_path / "student"
    student.symlink_to(tmp_path)
    assert read(student / "outside") == {}


def test_pipes_and_sockets_are_left_alone_and_nobody_waits_for_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(folder / "pipe")
    # The path of a socket may be short only.
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("s")
        assert list(read(folder)) == ["data.csv"]


def test_what_may_not_be_read_is_left_out_and_the_rest_is_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "locked").write_text("x")
    really = os.open

    def refuse(path: Path, flags: int) -> int:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied")
        return really(path, flags)

    monkeypatch.setattr(module.os, "open", refuse)
    assert list(read(folder)) == ["data.csv"]


def test_a_file_that_goes_beyond_the_size_is_left_out_and_a_smaller_one_after_it_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 10)
    (folder / "a").write_bytes(b"x" * 7)
    (folder / "b").write_bytes(b"x" * 4)
    (folder / "c").write_bytes(b"x" * 3)
    (folder / "data.csv").unlink()
    assert list(read(folder)) == ["a", "c"]


def test_the_size_is_that_of_all_folders_together(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 6)
    other = tmp_path / "other"
    other.mkdir()
    (other / "e").write_bytes(b"123")
    (other / "f").write_bytes(b"12")
    assert list(read(folder, other)) == ["data.csv", "f"]


def test_a_file_whose_size_is_a_hole_costs_nothing(folder: Path) -> None:
    with (folder / "huge").open("wb") as file:
        file.truncate(2**40)
    assert list(read(folder)) == ["data.csv"]


def test_only_so_many_files_are_taken_in_the_order_of_their_names(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_FILES", 3)
    for number in range(6):
        (folder / f"{5 - number}").write_text("x")
    assert list(read(folder)) == ["0", "1", "2"]


def test_odd_names_are_names(folder: Path) -> None:
    names = [" leading", "a\nb", "ß ü 🙂", "'quoted'", "-rf", "..hidden", "x" * 200]
    for name in names:
        (folder / name).write_text(name)
    assert read(folder) == {"data.csv": b"1,2\n"} | {name: name.encode() for name in names}


def test_no_name_leads_out_of_the_folder(folder: Path) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "a").write_text("x")
    for name in attached_files([folder / "sub" / ".." / "sub", folder]):
        assert not name.startswith("/")
        assert ".." not in Path(name).parts


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    assert read(tmp_path / "none") == {}
    assert read() == {}


def test_the_same_files_in_another_order_on_the_disk_are_the_same_files(tmp_path: Path) -> None:
    for made, order in (("one", "abcdef"), ("two", "fbdaec")):
        for name in order:
            (tmp_path / made / name).mkdir(parents=True)
            (tmp_path / made / name / "x").write_text(name)
    assert list(attached_files([tmp_path / "one"]).items()) == list(attached_files([tmp_path / "two"]).items())
