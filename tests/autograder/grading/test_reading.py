"""Any file is read, or it is said what it is."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.submission import notebook_reader
from autograder.submission.notebook_reader import UnreadableError, read_file, read_notebook

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
