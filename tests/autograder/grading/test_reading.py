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


def test_the_same_file_gives_the_same_notebook() -> None:
    first, second = (nbformat.writes(read_notebook(as_bytes(GOOD))[0]) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"%PDF-1.7 ...", "not a notebook"),
        (b"PK\x03\x04....", "not a notebook"),
        (b"\xff\xd8\xff\xe0", "not a notebook"),
        (b"\x80\x81\x82", "not text"),
        (b"<!DOCTYPE html><html></html>", "not JSON"),
        (b"import torch\n", "not JSON"),
        (as_bytes(GOOD)[:200], "truncated"),
        (as_bytes(GOOD)[:-1], "truncated"),
        (b"[1, 2]", "not a notebook"),
        (b'{"cells": 3}', "not a notebook"),
        (b'{"worksheets": [{"cells": [{"cell_type": 7}]}], "nbformat": 3}', "not a notebook"),
        (b'{"cells": []}', "empty"),
        (as_bytes({"cells": [{"cell_type": "code", "source": "  "}]}), "empty"),
        (b"[" * 200_000, "not a notebook"),
        (b'{"cells":' * 100_000, "truncated"),
    ],
)
def test_what_is_no_notebook_has_a_name(data: bytes, kind: str) -> None:
    assert kind_of(data) == kind


def test_a_file_that_is_too_large_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_reader, "MAX_BYTES", 100)
    assert kind_of(as_bytes(GOOD)) == "too large"


def test_the_old_format_is_converted() -> None:
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": ""},
        "worksheets": [
            {
                "metadata": {},
                "cells": [
                    {"cell_type": "code", "language": "python", "input": ["x = 1"], "outputs": [], "metadata": {}},
                    {"cell_type": "heading", "level": 2, "source": ["Why"], "metadata": {}},
                ],
            }
        ],
    }
    notebook, problems = read_notebook(as_bytes(old))
    assert [problem.kind for problem in problems] == ["old format"]
    assert [cell.source for cell in notebook.cells] == ["x = 1", "## Why"]


def test_windows_writes_other_bytes_for_the_same_text() -> None:
    text = json.dumps(GOOD)
    for data in (text.encode("utf-8-sig"), text.encode("utf-16")):
        assert len(read_notebook(data)[0].cells) == 2


def test_cells_that_cannot_be_read_are_left_out_and_counted() -> None:
    content = {**GOOD, "cells": [*GOOD["cells"], "text", {"cell_type": "video"}, {"cell_type": "code", "source": 7}]}
    notebook, problems = read_notebook(as_bytes(content))
    assert len(notebook.cells) == 2
    assert [problem.kind for problem in problems] == ["damaged cells"]
    assert "3 of its cells" in problems[0].what


def test_half_a_character_does_not_stop_the_grader() -> None:
    content = {"cells": [{"cell_type": "code", "source": "x = '\ud800'", "metadata": {}}]}
    notebook, _ = read_notebook(as_bytes(content))
    nbformat.writes(notebook).encode("utf-8")


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
