"""What lies beside a notebook is read, whatever it is, and nothing outside of its folder is."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.intake.notebook import attached_files as module
from autograder.intake.notebook import notebook_reader
from autograder.intake.notebook.attached_files import read_companion_files
from autograder.intake.notebook.notebook_reader import UnreadableError, read_file, read_notebook


def read(*folders: Path) -> dict[str, bytes]:
    return {name: base64.b64decode(data) for name, data in read_companion_files(folders).files.items()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "submitted"
    made.mkdir()
    (made / "data.csv").write_bytes(b"1,2\n")
    return made


ODD = [" leading", "a\nb", "ß ü 🙂", "'quoted'", "-rf", "..hidden", "x" * 200]
LEFT = ("03.ipynb", "timestamp.txt", "__pycache__/a.pyc", ".ipynb_checkpoints/b.txt", "sub/__pycache__/c")


def test_files_are_found_by_name_and_nothing_else_is_opened(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "sub" / "deep" / "w.bin").write_bytes(bytes(range(256)))
    (folder / "empty").write_bytes(b"")
    for name in (*ODD, *LEFT):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(name)
    links = ("outside/secret", "nothing", "submitted/loop", "outside", "submitted", ".")
    for name, target in zip(("link", "dangling", "loop", "inner", "round", "up"), links, strict=True):
        (folder / name).symlink_to(tmp_path / target)
    os.mkfifo(folder / "pipe")
    with (folder / "huge").open("wb") as file:
        file.truncate(2**40)
    found = {"data.csv": b"1,2\n", "empty": b"", "sub/deep/w.bin": bytes(range(256))}
    assert read(folder) == found | {name: name.encode() for name in ODD}
    assert all(isinstance(data, str) for data in read_companion_files([folder]).files.values())
    assert read(folder / "inner") == read(folder / "up" / "outside") == read(tmp_path / "none") == read() == {}


@pytest.mark.parametrize(
    ("limit", "number", "found"),
    [("MAX_BYTES", 10, ["a", "c"]), ("MAX_BYTES", 14, ["a", "b", "c"]), ("MAX_FILES", 2, ["a", "b"])],
)
def test_all_folders_share_what_may_be_taken_in_the_order_of_names(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, number: int, found: list[str]
) -> None:
    monkeypatch.setattr(module, limit, number)
    (folder / "data.csv").rename(folder / "a")
    (folder / "a").write_bytes(b"x" * 7)
    (tmp_path / "other").mkdir()
    for name, size in (("c", 3), ("b", 4)):
        (tmp_path / "other" / name).write_bytes(b"x" * size)
    assert list(read(folder, tmp_path / "other")) == found


def test_of_two_files_with_one_name_that_of_the_later_folder_counts(folder: Path, tmp_path: Path) -> None:
    course = tmp_path / "course"
    course.mkdir()
    (course / "data.csv").write_bytes(b"the course's")
    (course / "more.csv").write_bytes(b"more")
    assert read(folder, course) == {"data.csv": b"the course's", "more.csv": b"more"}
    assert read(course, folder)["data.csv"] == b"1,2\n"


def test_what_may_not_be_read_is_left_out_and_the_rest_is_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "locked").write_text("x")
    really = os.open

    def refuse(path: Path, flags: int) -> int:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied")
        return really(path, flags)

    monkeypatch.setattr(module.os, "open", refuse)
    assert list(read(folder)) == ["data.csv"]


GOOD = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {"language_info": {"name": "python"}, "tfcourse": {"problems": []}},
    "cells": [
        {
            "cell_type": "code",
            "id": "a",
            "metadata": {"nbgrader": {"grade_id": "one", "points": 99}, "tags": ["skip-execution"]},
            "source": ["x = 1\n", "y = 2"],
            "outputs": [{"output_type": "error", "ename": "", "evalue": "", "traceback": []}],
            "execution_count": 3,
        },
        {"cell_type": "markdown", "metadata": {}, "source": "text\r\nmore", "attachments": {"a.png": {}}},
    ],
}


def as_bytes(content: Any) -> bytes:
    return json.dumps(content).encode()


def kind_of(data: bytes) -> str:
    with pytest.raises(UnreadableError) as caught:
        read_notebook(data)
    assert caught.value.problem.fatal
    assert caught.value.problem.do
    return caught.value.problem.kind


def test_texts_come_back_and_nothing_else_does() -> None:
    notebook, problems = read_notebook(as_bytes(GOOD))
    assert problems == []
    assert [cell.source for cell in notebook.cells] == ["x = 1\ny = 2", "text\nmore"]
    assert notebook.cells[0].outputs == []
    assert notebook.cells[0].metadata == {"nbgrader": {"grade_id": "one"}}
    assert "attachments" not in notebook.cells[1]
    assert "tfcourse" not in notebook.metadata
    nbformat.validate(notebook)


def test_a_file_that_is_too_large_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_reader, "MAX_BYTES", 100)
    assert kind_of(as_bytes(GOOD)) == "too large"


def test_a_file_is_read_and_nothing_else_is(tmp_path: Path) -> None:
    path = tmp_path / "student" / "chapter" / "a.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"{}")
    assert read_file(path, above=2) == b"{}"
    others = {name: path.with_name(name) for name in ("link", "pipe", "folder", "nothing")}
    others["link"].symlink_to(path)
    os.mkfifo(others["pipe"])
    others["folder"].mkdir()
    for other, words in (("link", "link"), ("pipe", "a pipe"), ("folder", "a folder"), ("nothing", "cannot be read")):
        with pytest.raises(UnreadableError, match=words) as caught:
            read_file(others[other])
        assert caught.value.problem.kind == "file refused"
        assert caught.value.problem.fatal


def test_links_above_a_file_count_as_far_as_they_are_the_students(tmp_path: Path) -> None:
    path = tmp_path / "real" / "chapter" / "a.ipynb"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"{}")
    (tmp_path / "eve").symlink_to(tmp_path / "real")
    through = tmp_path / "eve" / "chapter" / "a.ipynb"
    assert read_file(through, above=1) == b"{}"
    with pytest.raises(UnreadableError, match="link"):
        read_file(through, above=2)
